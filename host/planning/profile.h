/* What is known of every board of a ring and of every wire: the numbers that planners work with. */
#ifndef RP_PLANNING_PROFILE_H
#define RP_PLANNING_PROFILE_H

#include <stdio.h>

#include "plan/measured.h"
#include "planning/curve.h"
#include "run/runfile.h"

enum { RP_PROFILE_DIGEST = 17 };

/* As a board says of its device; in HELLO by these numbers. */
typedef enum {
    RP_DEVICE_MEMORY_UNKNOWN,
    RP_DEVICE_MEMORY_OWN,
    RP_DEVICE_MEMORY_SHARED /* it is the host's */
} rp_device_memory;

/* Of one layer on one board; of a backward whole, and of its halves where it is split. */
typedef struct {
    rp_curve pass[RP_MEASURED_PASSES];
    double update_s;
} rp_profile_layer;

typedef struct {
    const char *name;   /* of the board */
    const char *device; /* as it says, or NULL */
    const char *like;   /* the board that was measured: itself, or one that is alike */
    bool known;         /* there are numbers */
    uint64_t memory_bytes;
    rp_device_memory device_memory;
    double flash_rate[2]; /* bytes a second that its flash is written and read; 0: not known */
    rp_profile_layer *layer;      /* [layer_count]; shared by boards that are alike */
    double copy_s[2][2];          /* to and from the device, of RP_MEASURED_COPY_BYTES */
    bool has_besides;             /* what ops cost besides their layers was measured, too: */
    double besides_s[RP_BESIDES]; /* see plan/measured.h; 0: the run has none */
    double handling_spread;
    double slower; /* its ops take so many times as long now; 0: once, as measured */
} rp_profile_board;

/* From one end to another, or back. */
typedef struct {
    double latency_s;
    double bytes_per_s; /* of the largest messages; 0: not known */
    bool shared;        /* both ways, or others too, take turns */
    bool is_assumed;    /* nothing was measured, and nothing is emulated */
    double slower;      /* it is busy so many times as long now; 0: once, as measured */
    rp_curve busy; /* seconds that a message of so many bytes keeps it busy, behind the latency;
                      no points: in proportion */
} rp_profile_wire;

/* Lies in an arena. */
typedef struct {
    const char *model;
    char digest[RP_PROFILE_DIGEST]; /* of the model and a sample's shape */
    uint32_t micro;                 /* of the run */
    uint32_t layer_count, board_count;
    uint32_t size_count, sizes[RP_MEASURED_SIZES_MAX]; /* that boards are asked for */
    rp_profile_board *board;                           /* [board_count] */
    uint32_t *place;       /* [board_count]: which of them is at this place of the ring */
    rp_profile_wire *wire; /* [(board_count + 1)^2], from * (board_count + 1) + to; the last end is
                              the host */
} rp_profile;

/* Of a run whose boards are not known yet.
 * errors MEMORY */
rp_err rp_profile_open(rp_arena *arena, const rp_runfile *run, uint32_t boards,
                       rp_profile *out) RP_MUST_CHECK;

/* What a board has measured: `values` as plan/measured.h, every one of which is checked, with or
 * without what ops cost besides; or, with
 * `count` of 2 for each layer, of a board that measures the run's microbatch only.
 * errors  PEER: another count, a time that is negative or not finite, a layer without any */
rp_err rp_profile_take(rp_arena *arena, rp_profile *profile, uint32_t board, const double *values,
                       size_t count) RP_MUST_CHECK;
/* What a board has measured of its flash; anything but two positive rates is none. */
void rp_profile_take_flash(rp_profile *profile, uint32_t board, double write_rate,
                           double read_rate);
/* A board that need not be measured: it is like another one. */
void rp_profile_take_like(rp_profile *profile, uint32_t board, uint32_t other);

/* Of a wire from board to board: seconds from sending a message of so many bytes (`samples`) to its
 * ack, rising in bytes. The smallest one goes there and back in no time but the latency.
 * errors  USAGE: fewer than two points, or such that can not be */
rp_err rp_profile_take_wire(rp_profile *profile, uint32_t from, uint32_t to,
                            const rp_curve_point *point, uint32_t count) RP_MUST_CHECK;
void rp_profile_take_shared(rp_profile *profile, uint32_t a, uint32_t b, bool shared);

/* Which boards the ring has now, by their names in its order; one that is not known counts as the
 * first. */
void rp_profile_place(rp_profile *profile, const char *const *name, uint32_t count);
const rp_profile_board *rp_profile_board_at(const rp_profile *profile, uint32_t place);

/* Of so many bytes to the device of the board at a place, or from it; 0: it has none. Pure. */
double rp_profile_copy_s(const rp_profile *profile, uint32_t place, bool from_device, double bytes);

/* What the board at a place takes for an op besides its layers: that it is given to the device and
 * its end seen (0: not measured); for so many parameters, to predict or to average them once; for
 * so many elements of a boundary, to encode or decode them. Pure. */
double rp_profile_handling_s(const rp_profile *profile, uint32_t place);
double rp_profile_prediction_s(const rp_profile *profile, uint32_t place, double floats);
double rp_profile_average_s(const rp_profile *profile, uint32_t place, double floats);
double rp_profile_codec_s(const rp_profile *profile, uint32_t place, rp_codec codec, bool decode,
                          double floats);

/* The board at a place takes `factor` times as long as it did, with whatever holds it back; > 0. */
void rp_profile_slow_down(rp_profile *profile, uint32_t place, double factor);
/* .. as long as was measured. */
double rp_profile_slower(const rp_profile *profile, uint32_t place);

/* The wire between the boards at two places is busy `factor` times as long as it was; > 0. */
void rp_profile_slow_wire(rp_profile *profile, uint32_t from, uint32_t to, double factor);
/* .. as long as was measured, or as the run file emulates it. */
double rp_profile_wire_slower(const rp_profile *profile, uint32_t from, uint32_t to);

/* From the host to the board at a place, or back. */
const rp_profile_wire *rp_profile_feed_at(const rp_profile *profile, uint32_t place, bool back);
/* Between the boards at two places. */
const rp_profile_wire *rp_profile_wire_at(const rp_profile *profile, uint32_t from, uint32_t to);
/* How long a message of so many bytes keeps a wire busy; 0: its rate is not known. Pure. */
double rp_profile_wire_s(const rp_profile_wire *wire, double bytes);

/* Seconds of some layers for an op on so many samples, on the board at a place. Pure. */
double rp_profile_pass_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end,
                         rp_measured_pass pass, double samples);
/* The same of any kind of op, an update too. */
double rp_profile_op_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end,
                       rp_op_kind kind, double samples);
/* [2 * layer_count], forward and backward of each layer for the run's microbatch: of one board, or
 * of the one that has the layer, stage k being on board k modulo the run's boards; where stages are
 * split, its backward on the board as far from the last one. */
void rp_profile_seconds_of(const rp_profile *profile, uint32_t place, double *out);
void rp_profile_seconds(const rp_profile *profile, const rp_runfile *run, const rp_cut *cut,
                        double *out);
/* Boards differ: another one has been measured for some than for the first. */
bool rp_profile_is_uneven(const rp_profile *profile, uint32_t boards);

/* 16 hex digits of the model's text, its layers and a sample's shape. */
rp_err rp_profile_digest(const rp_runfile *run, char out[RP_PROFILE_DIGEST]) RP_MUST_CHECK;

/* ---- text: profile_text.c -------------------------------------------------------------------- */

/* profile.json: {"version", "model", "model_digest", "microbatch", "board", "layers": [{name, kind,
 * forward_s, backward_s}] of the first board, "boards": [{name, device, like, memory_bytes,
 * device_memory, copies, flash_bytes_per_s,
 * "besides": {handling_s, handling_spread, prediction_s, average_s: [of 16 Ki, of 256 Ki], codecs:
 * [{codec, encode_s, decode_s}]}, layers: [{name, update_s, forward: [{samples, seconds, spread}],
 * backward, backward_input, backward_weight}]}], "wires": [{from, to, latency_s, bytes_per_s,
 * shared, assumed}]}. errors IO
 */
rp_err rp_profile_write(FILE *file, const rp_runfile *run, const rp_profile *profile) RP_MUST_CHECK;

/* Of this run's model. errors USAGE with file and key; MEMORY */
rp_err rp_profile_read(rp_arena *arena, const char *path, const rp_runfile *run,
                       rp_profile *out) RP_MUST_CHECK;
/* It has every board of the run; `path` stands in the message. errors USAGE */
rp_err rp_profile_check_boards(const char *path, const rp_runfile *run,
                               const rp_profile *profile) RP_MUST_CHECK;

#endif
