/* Costs of a cut on given boards and links, and choices that compare them: cut, codecs, advance. */
#ifndef RP_PLANNING_COST_H
#define RP_PLANNING_COST_H

#include "planning/advance.h"
#include "planning/profile.h"
#include "run/runfile.h"

/* In this file:
 * - The boundary before `layer` is what crosses a cut there. Its bytes and seconds are infinite if
 *   more tensors cross it than a parcel has parts.
 * - `profile` may be NULL, except where a stage's op or a cut by board is computed.
 * - A wire is as emulated if the run file emulates links, else as measured. A wire that was not
 *   measured counts as the slowest measured one of either of its boards, or as 200 MB/s.
 * - `layer_seconds` is [2 * layer_count]: forward and backward of each layer for one microbatch.
 * - `measured` is [boards^2], at from * boards + to: bytes per second of a wire; 0: as the run file
 *   says. NULL: all are 0. */

/* Seconds that the boundary before `layer` occupies a wire for a microbatch, activations and
 * gradients together, with the run's codecs; of the hop where that takes longest. */
double rp_cost_boundary_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer);

/* Bytes of a microbatch's activations at the boundary before `layer`, with the codec of the first
 * boundary. */
double rp_cost_boundary_bytes(const rp_runfile *run, uint32_t layer);

/* Seconds that `bytes` occupy the wire between two boards, when wires on one medium share its rate
 * equally. */
double rp_cost_wire_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                      double bytes);

/* Seconds that `bytes` occupy the wire between two boards when it has its medium alone. */
double rp_cost_turn_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                      double bytes);

/* Latency of the wire between two boards in seconds; `otherwise_s` if it is unknown. */
double rp_cost_delay_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                       double otherwise_s);

/* Key of the medium on which the emulated wire between two boards takes turns with other wires; 0:
 * none, or links are not emulated. */
uint64_t rp_cost_medium(const rp_runfile *run, uint32_t from, uint32_t to);
/* Number of pairs of neighbours with a wire on this medium. */
uint32_t rp_cost_pairs_on(const rp_runfile *run, uint64_t medium);
/* The medium of most pairs of neighbours; 0: no medium has more than one pair. */
uint64_t rp_cost_common_medium(const rp_runfile *run);

/* Seconds that `bytes` occupy the wire from the host to a board; 0: unknown. */
double rp_cost_feed_s(const rp_runfile *run, const rp_profile *profile, uint32_t to, double bytes);

/* Seconds that a parcel of `samples` occupies the wire of boundary `k`, which is before `layer`,
 * with the run's codec: activations, or gradients back. */
double rp_cost_parcel_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer,
                        uint32_t k, bool gradients, uint32_t samples);

/* Sets `rate` as `measured` above: the rates of wires that were measured, with slowdowns. */
void rp_cost_rates(const rp_runfile *run, const rp_profile *profile, double *rate);

/* The longest emulated latency between stages, in seconds. */
double rp_cost_link_delay_s(const rp_runfile *run);

/* The cut with the shortest slowest stage, for boards that are alike. errors of rp_cut_balance() */
rp_err rp_cost_choose_cut(rp_arena *arena, const rp_runfile *run, const double *layer_seconds,
                          rp_cut *out) RP_MUST_CHECK;

/* The cut with the shortest slowest stage when stage k is on the board at place k: by each board's
 * times and throttle. errors of rp_balance() */
rp_err rp_cost_choose_cut_by_board(rp_arena *arena, const rp_runfile *run,
                                   const rp_profile *profile, rp_cut *out) RP_MUST_CHECK;

/* Seconds of an op on the layers [first, end) at a place, at least those of the throttle, with the
 * slowdown, without additional costs. Pure. */
double rp_cost_op_s(const rp_runfile *run, const rp_profile *profile, uint32_t place,
                    uint32_t first, uint32_t end, rp_op_kind kind, uint32_t samples);

/* A stage of layers [first, end) at a place. `lower`, `upper`: the boundary before `first`, before
 * `end`, is to another board. */
typedef struct {
    uint32_t place, stage, stages, first, end;
    bool lower, upper;
} rp_cost_stage;
/* rp_cost_op_s() with additional costs, except handling: codecs of the stage's boundaries to other
 * boards, predictions and averages of its weights. Pure. */
double rp_cost_whole_op_s(const rp_runfile *run, const rp_profile *profile,
                          const rp_cost_stage *stage, rp_op_kind kind, uint32_t samples);

/* Chooses for `links.codec: auto`, for each boundary and direction (`out`: [stages - 1]), the
 * mildest codec with which a microbatch occupies its wire no longer than the slowest board computes
 * or the inputs take. If no codec achieves that, it is the strongest one that usually keeps to
 * links.max_error. All traffic of one wire, or of wires on one medium, counts together; the
 * boundary that saves most time gets the next stronger codec. errors MEMORY */
rp_err rp_cost_choose_codecs(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                             const double *measured, rp_codec (*out)[2]) RP_MUST_CHECK;

/* `links.codec: auto` may choose this codec. */
bool rp_cost_may_choose(rp_codec codec);
/* The strongest codec that usually keeps to links.max_error. */
rp_codec rp_cost_strongest(const rp_runfile *run, bool gradients);
/* The next stronger codec, at most the strongest one. */
rp_codec rp_cost_stronger(const rp_runfile *run, rp_codec codec, bool gradients);
/* The next milder codec, down to f32, which loses nothing. */
rp_codec rp_cost_milder(rp_codec codec, bool gradients);

/* Chooses `ring.copy_steps: auto`: steps between copies, so that a copy on all boards, which costs
 * `copy_s`, takes at most 2 % of the time of these steps. */
uint32_t rp_cost_choose_copy_steps(double step_s, double copy_s);

/* Chooses `advance: auto`, at most `advance_max`. The latency between boards is that of emulated
 * links, else `link_delay_s`. errors of rp_advance_choose() */
rp_err rp_cost_choose_advance(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                              double link_delay_s, const double *measured, uint32_t advance_max,
                              rp_advance_choice *out) RP_MUST_CHECK;

/* The fraction of the time in which boards compute, if all ops take equally long: `busy` with the
 * run's microbatch, `better` with `*micro` samples, the batch divided by the number of boards.
 * errors of rp_advance_busy() */
rp_err rp_cost_compare_micro(const rp_runfile *run, uint32_t *micro, double *busy,
                             double *better) RP_MUST_CHECK;

#endif
