/* Times and rates of every board and wire of a ring, measured or given: the input of planners. */
#ifndef RP_PLANNING_PROFILE_H
#define RP_PLANNING_PROFILE_H

#include <stdio.h>

#include "plan/measured.h"
#include "planning/curve.h"
#include "run/runfile.h"

enum { RP_PROFILE_DIGEST = 17 };

/* Where a board's device has its memory; HELLO carries these numbers. */
typedef enum {
    RP_DEVICE_MEMORY_UNKNOWN,
    RP_DEVICE_MEMORY_OWN,
    RP_DEVICE_MEMORY_SHARED /* with the board's processor */
} rp_device_memory;

/* Times of one layer on one board: passes by samples of an op (plan/measured.h), and the update. */
typedef struct {
    rp_curve pass[RP_MEASURED_PASSES];
    double update_s;
} rp_profile_layer;

typedef struct {
    const char *name;
    const char *device; /* name that the board reports; may be NULL */
    const char *like;   /* name of the measured board with these times: itself, or one like it */
    bool known;         /* there are times */
    uint64_t memory_bytes;
    rp_device_memory device_memory;
    double flash_rate[2];    /* bytes per second of its flash, to write and to read; 0: unknown */
    rp_profile_layer *layer; /* [layer_count]; boards that are alike share it */
    double copy_s[2][2];     /* to and from the device, of RP_MEASURED_COPY_BYTES */
    bool has_besides;        /* the additional costs of ops were measured */
    double besides_s[RP_BESIDES]; /* additional costs of ops: plan/measured.h; 0: not needed */
    double handling_spread;
    double slower; /* slowdown since the measurement, as a factor of all times; 0 means 1 */
} rp_profile_board;

/* One direction between two boards, or between a board and the host. */
typedef struct {
    double latency_s;
    double bytes_per_s; /* of the largest messages; 0: unknown */
    bool shared;        /* takes turns with its other direction, or with other wires */
    bool is_assumed;    /* neither measured nor emulated */
    double slower;      /* slowdown since the measurement, as a factor of busy times; 0 means 1 */
    rp_curve busy; /* seconds that a message occupies the wire, by its bytes (`samples`), without
                      the latency; no points: proportional to the bytes */
} rp_profile_wire;

/* All arrays are in the arena of rp_profile_open(). A place is a position in the ring. */
typedef struct {
    const char *model;
    char digest[RP_PROFILE_DIGEST]; /* rp_profile_digest() */
    uint32_t micro;                 /* samples of the run's microbatch */
    uint32_t layer_count, board_count;
    uint32_t size_count, sizes[RP_MEASURED_SIZES_MAX]; /* samples of an op that boards measure */
    rp_profile_board *board;                           /* [board_count] */
    uint32_t *place;       /* [board_count]: index in `board`, by place */
    rp_profile_wire *wire; /* [(board_count + 1)^2], at from * (board_count + 1) + to; the index
                              board_count is the host */
} rp_profile;

/* An empty profile: boards without names and times; wires as emulated, else assumed.
 * errors MEMORY */
rp_err rp_profile_open(rp_arena *arena, const rp_runfile *run, uint32_t boards,
                       rp_profile *out) RP_MUST_CHECK;

/* Stores and checks the values that a board measured, in the layout of plan/measured.h with or
 * without additional costs. `count` may also be 2 for each layer: forward and backward at the run's
 * microbatch only.
 * errors  PEER: a wrong count, a time that is negative or not finite, a layer without times */
rp_err rp_profile_take(rp_arena *arena, rp_profile *profile, uint32_t board, const double *values,
                       size_t count) RP_MUST_CHECK;
/* Stores the rates of a board's flash; unless both are finite and positive, they are unknown. */
void rp_profile_take_flash(rp_profile *profile, uint32_t board, double write_rate,
                           double read_rate);
/* Gives a board that is not measured the times of `other`, which is like it. */
void rp_profile_take_like(rp_profile *profile, uint32_t board, uint32_t other);

/* Stores the times of a wire between boards. A point: bytes of a message (`samples`), and seconds
 * from sending it to its ack; rising in bytes. The time of the smallest message counts as twice the
 * latency.
 * errors  USAGE: fewer than two points; those of rp_curve_fit() */
rp_err rp_profile_take_wire(rp_profile *profile, uint32_t from, uint32_t to,
                            const rp_curve_point *point, uint32_t count) RP_MUST_CHECK;
void rp_profile_take_shared(rp_profile *profile, uint32_t a, uint32_t b, bool shared);

/* Sets which board is at each place, by the names of the ring in its order. An unknown name gets
 * the times of board 0. */
void rp_profile_place(rp_profile *profile, const char *const *name, uint32_t count);
const rp_profile_board *rp_profile_board_at(const rp_profile *profile, uint32_t place);

/* Seconds to copy `bytes` to or from the device at a place; 0: there is no device. Pure. */
double rp_profile_copy_s(const rp_profile *profile, uint32_t place, bool from_device, double bytes);

/* Additional costs of ops at a place, in seconds; 0: not measured. Handling is submitting an op to
 * the device and noticing its end. `floats` is the number of parameters that are predicted or
 * averaged once, or of elements of a boundary that are encoded or decoded. Pure. */
double rp_profile_handling_s(const rp_profile *profile, uint32_t place);
double rp_profile_prediction_s(const rp_profile *profile, uint32_t place, double floats);
double rp_profile_average_s(const rp_profile *profile, uint32_t place, double floats);
double rp_profile_codec_s(const rp_profile *profile, uint32_t place, rp_codec codec, bool decode,
                          double floats);

/* Multiplies the slowdown of the board at a place by `factor` > 0. It also applies to times that
 * ring.throttle sets. */
void rp_profile_slow_down(rp_profile *profile, uint32_t place, double factor);
/* Slowdown of the board at a place; 1: as measured. */
double rp_profile_slower(const rp_profile *profile, uint32_t place);

/* Multiplies the slowdown of the wire between two places by `factor` > 0. */
void rp_profile_slow_wire(rp_profile *profile, uint32_t from, uint32_t to, double factor);
/* Slowdown of the wire between two places; 1: as measured, or as the run file emulates it. */
double rp_profile_wire_slower(const rp_profile *profile, uint32_t from, uint32_t to);

/* The wire from the host to the board at a place, or with `back` its other direction. */
const rp_profile_wire *rp_profile_feed_at(const rp_profile *profile, uint32_t place, bool back);
/* The wire between the boards at two places. */
const rp_profile_wire *rp_profile_wire_at(const rp_profile *profile, uint32_t from, uint32_t to);
/* Seconds that a message of `bytes` occupies a wire; 0: its rate is unknown. Pure. */
double rp_profile_wire_s(const rp_profile_wire *wire, double bytes);

/* Seconds of one pass of the layers [first, end) at a place, for an op on `samples`. Pure. */
double rp_profile_pass_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end,
                         rp_measured_pass pass, double samples);
/* Seconds of an op of any kind, including an update. */
double rp_profile_op_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end,
                       rp_op_kind kind, double samples);
/* Forward and backward of each layer for the run's microbatch, with slowdowns, into `out`:
 * [2 * layer_count]. All layers at one place, or with a cut each at the places of its stage
 * (rp_runfile_forward_place(), rp_runfile_backward_place()). */
void rp_profile_seconds_of(const rp_profile *profile, uint32_t place, double *out);
void rp_profile_seconds(const rp_profile *profile, const rp_runfile *run, const rp_cut *cut,
                        double *out);
/* The first `boards` places differ in measured times or in slowdown. */
bool rp_profile_is_uneven(const rp_profile *profile, uint32_t boards);

/* 16 hex digits of the model's text and the shapes of its layers' outputs. */
rp_err rp_profile_digest(const rp_runfile *run, char out[RP_PROFILE_DIGEST]) RP_MUST_CHECK;

/* ---- text: profile_text.c -------------------------------------------------------------------- */

/* Writes profile.json:
 *   {"version", "model", "model_digest", "microbatch", "board",
 *    "layers": [{name, kind, forward_s, backward_s}], of the first board
 *    "boards": [{name, device, like, memory_bytes, device_memory, to_device_s, from_device_s,
 *      flash_bytes_per_s: [write, read],
 *      "besides": {handling_s, handling_spread, prediction_s, average_s: [16 Ki, 256 Ki values],
 *        codecs: [{codec, encode_s, decode_s}]},
 *      layers: [{name, update_s, forward: [{samples, seconds, spread}], backward, backward_input,
 *        backward_weight}]}],
 *    "wires": [{from, to, latency_s, bytes_per_s, shared, assumed,
 *      sizes: [{bytes, seconds, spread}]}]}
 * errors IO */
rp_err rp_profile_write(FILE *file, const rp_runfile *run, const rp_profile *profile) RP_MUST_CHECK;

/* Reads profile.json, which must be of this run's model.
 * errors  USAGE: a wrong value, with file and key; MEMORY */
rp_err rp_profile_read(rp_arena *arena, const char *path, const rp_runfile *run,
                       rp_profile *out) RP_MUST_CHECK;
/* errors  USAGE: the profile lacks a board of the run; the message names `path` */
rp_err rp_profile_check_boards(const char *path, const rp_runfile *run,
                               const rp_profile *profile) RP_MUST_CHECK;

#endif
