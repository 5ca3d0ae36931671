/* What a cut costs on these links, from a profile of the layers: plain numbers in, choices out. */
#ifndef RP_PLANNING_COST_H
#define RP_PLANNING_COST_H

#include "planning/advance.h"
#include "planning/profile.h"
#include "run/runfile.h"

/* `layer_seconds` everywhere: [2 * layer_count], forward and backward of each layer for one
 * microbatch. */

/* Seconds that a cut in front of `layer` keeps its wire busy for a microbatch: activations one way,
 * gradients the other, as the run's codecs leave them; of the hop where that takes longest. As the
 * wires were measured, or the run file emulates them. One that was not measured is as slow as the
 * slowest that was at either of its boards, or has 200 MB/s where none was. `profile` may be NULL.
 * Infinite where more tensors cross than a parcel has parts. */
double rp_cost_boundary_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer);

/* One way in front of `layer`, of a microbatch, with the codec of the first boundary's activations;
 * infinite where more tensors cross than a parcel has parts. */
double rp_cost_boundary_bytes(const rp_runfile *run, uint32_t layer);

/* Seconds that so many bytes keep the wire between two boards busy, and how long what it carries is
 * on its way besides; `otherwise_s`: where nobody knows. `profile` may be NULL. */
double rp_cost_wire_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                      double bytes);
double rp_cost_delay_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                       double otherwise_s);

/* The same while nobody else has a turn on what the wire shares. */
double rp_cost_turn_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                      double bytes);

/* What the wire between two boards takes turns on, where wires are emulated; 0: on nothing. How
 * many pairs of neighbours do so on it; and what most pairs take turns on, if it is more than one.
 */
uint64_t rp_cost_medium(const rp_runfile *run, uint32_t from, uint32_t to);
uint32_t rp_cost_pairs_on(const rp_runfile *run, uint64_t medium);
uint64_t rp_cost_common_medium(const rp_runfile *run);

/* .. from the host to a board; 0: nobody knows. */
double rp_cost_feed_s(const rp_runfile *run, const rp_profile *profile, uint32_t to, double bytes);

/* The same for one way of a cut in front of `layer`, boundary `k`, with the run's codec, of so many
 * samples. */
double rp_cost_parcel_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer,
                        uint32_t k, bool gradients, uint32_t samples);

/* [boards^2], from * boards + to: bytes a second of the wires that were measured; 0 of others. */
void rp_cost_rates(const rp_runfile *run, const rp_profile *profile, double *rate);

/* How long what a board sends is on its way, where links are emulated: of the slowest hop. */
double rp_cost_link_delay_s(const rp_runfile *run);

/* The cut whose slowest stage is fastest. errors of rp_cut_balance() */
rp_err rp_cost_choose_cut(rp_arena *arena, const rp_runfile *run, const double *layer_seconds,
                          rp_cut *out) RP_MUST_CHECK;

/* The same with boards that differ, stage k on the board at place k: by what each takes for it, and
 * by how slow it is made (ring.throttle). With boards that are alike, rp_cost_choose_cut(). errors
 * of rp_balance() */
rp_err rp_cost_choose_cut_by_board(rp_arena *arena, const rp_runfile *run,
                                   const rp_profile *profile, rp_cut *out) RP_MUST_CHECK;

/* Seconds of a stage's op on the board at a place, with what holds it back. Pure. */
double rp_cost_op_s(const rp_runfile *run, const rp_profile *profile, uint32_t place,
                    uint32_t first, uint32_t end, rp_op_kind kind, uint32_t samples);

/* .. with what the board does for it besides its layers: codecs of what crosses the boundaries in
 * front of `first` and `end` (`lower`, `upper`: to another board), predictions and averages of its
 * weights. Pure. */
typedef struct {
    uint32_t place, stage, stages, first, end;
    bool lower, upper;
} rp_cost_stage;
double rp_cost_whole_op_s(const rp_runfile *run, const rp_profile *profile,
                          const rp_cost_stage *stage, rp_op_kind kind, uint32_t samples);

/* links.codec: auto. For each boundary and direction (`out`: [stages - 1]) the mildest codec with
 * which its wire takes no longer for a microbatch than the slowest board or the inputs do; the
 * strongest where none does, of those that usually keep to links.max_error. What goes over the same
 * wire, or over wires that take turns, counts together, and what saves most of its time gets the
 * next stronger codec. `measured`: bytes a second from board to board, [from * boards + to], 0
 * where a wire is as the run file says; NULL: all are. errors MEMORY */
rp_err rp_cost_choose_codecs(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                             const double *measured, rp_codec (*out)[2]) RP_MUST_CHECK;

/* It may choose it. */
bool rp_cost_may_choose(rp_codec codec);
/* Of those that usually keep to links.max_error. */
rp_codec rp_cost_strongest(const rp_runfile *run, bool gradients);
/* The next one that loses more, of those; the strongest stays. */
rp_codec rp_cost_stronger(const rp_runfile *run, rp_codec codec, bool gradients);

/* ring.copy_steps: auto. How many steps between copies, so that what they cost, `copy_s` all in
 * all, is 2 % of their time at most. */
uint32_t rp_cost_choose_copy_steps(double step_s, double copy_s);

/* The next codec that loses less, of activations or of gradients; f32 loses nothing. */
rp_codec rp_cost_milder(rp_codec codec, bool gradients);

/* What each advance would give when a parcel is `link_delay_s` on its way from board to board, or,
 * where links are emulated, as long as its wire says; at most `advance_max` is chosen. `measured`
 * as above. errors of rp_advance_choose() */
rp_err rp_cost_choose_advance(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                              double link_delay_s, const double *measured, uint32_t advance_max,
                              rp_advance_choice *out) RP_MUST_CHECK;

/* The share of the time that boards work with this run's microbatch, and with one of a batch shared
 * out over the stages; every op takes as long as any other. errors of rp_advance_busy() */
rp_err rp_cost_compare_micro(const rp_runfile *run, uint32_t *micro, double *busy,
                             double *better) RP_MUST_CHECK;

#endif
