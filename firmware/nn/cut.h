/* A cut: where the stages of a pipeline begin, and which tensors cross between them. Pure. */
#ifndef RP_NN_CUT_H
#define RP_NN_CUT_H

#include "nn/model.h"

enum {
    RP_CUT_STAGES_MAX = 4096, /* for a simulated ring; real ones: RP_RING_BOARDS_MAX */
    RP_CUT_TENSORS_MAX = 8    /* through one boundary, as the parts of one parcel */
};

typedef struct {
    uint32_t stage_count;
    /* Stage k has the layers [first[k], first[k + 1]); first[0] = 0, first[stage_count] = all.
     * Borrowed: copies of a cut share it. */
    const uint32_t *first;
} rp_cut;

/* The tensors sent from stage b - 1 to stage b: every tensor made before the boundary and read
 * after it, so a skip connection over several stages passes through each of them. */
typedef struct {
    uint32_t count;
    uint32_t producer[RP_CUT_TENSORS_MAX]; /* RP_LAYER_DATA first, then layers in ascending order */
    size_t sample_bytes;                   /* all tensors, one sample */
} rp_boundary;

/* Whether both cuts have the same stages. */
bool rp_cut_is_same(const rp_cut *a, const rp_cut *b);

/* Parses the list of the layers at which stages 1, 2, ... begin; it may be empty (one stage). The
 * cut is allocated in `arena`.
 * errors  USAGE with the line and the layer: unknown, not after the previous one, the model's
 * first */
rp_err rp_cut_parse(rp_arena *arena, const rp_model *model, const rp_node *list,
                    rp_cut *out) RP_MUST_CHECK;

/* Checks that first[0] is 0, each stage has a layer, and every boundary has at most
 * RP_CUT_TENSORS_MAX tensors. errors USAGE naming the stage or layer */
rp_err rp_cut_check(const rp_model *model, const rp_cut *cut) RP_MUST_CHECK;

/* A layer of the stage whose backward needs all samples of a forward at once, or NULL. */
const rp_layer *rp_cut_whole_layer(const rp_model *model, const rp_cut *cut, uint32_t stage);

/* Boundary b in [1, stage_count). errors LIMIT: too many tensors */
rp_err rp_cut_boundary(const rp_model *model, const rp_cut *cut, uint32_t b,
                       rp_boundary *out) RP_MUST_CHECK;
/* The boundary before the layer `first`, for planners. */
rp_err rp_cut_boundary_at(const rp_model *model, uint32_t first, rp_boundary *out) RP_MUST_CHECK;

/* The cut whose largest stage costs least; of equal cuts, the one with the earliest first boundary,
 * then the earliest second, and so on. A stage costs the sum of its layers and of the boundaries at
 * both its ends.
 *
 *   layer_cost     [count], finite and >= 0
 *   boundary_cost  [count]: cost of cutting before layer i (entry 0 unused), or NULL = free;
 *                  infinite = no cut here
 *
 * errors  USAGE when there are fewer layers than stages or no cut is allowed
 * source  the linear partition problem, by dynamic programming over suffixes: O(stages count^2),
 *         exact */
rp_err rp_cut_balance(rp_arena *arena, const double *layer_cost, const double *boundary_cost,
                      uint32_t count, uint32_t stages, rp_cut *out) RP_MUST_CHECK;

#endif
