/* Private to layout.c and layout_*.c. */
#ifndef RP_STAGE_LAYOUT_OWN_H
#define RP_STAGE_LAYOUT_OWN_H

#include "stage/layout.h"

/* The model's index of the stage's layer at `position`. */
static inline uint32_t rp_layout_layer(const rp_layout *layout, uint32_t position) {
    return layout->first_layer + position;
}

static inline uint32_t rp_layout_tensor_of(const rp_layout *layout, uint32_t producer) {
    return producer == RP_LAYER_DATA ? layout->data_tensor : layout->tensor_of[producer];
}

static inline size_t rp_layout_sample_bytes(const rp_shape *sample) {
    return rp_shape_count(sample) * sizeof(float);
}

/* Bytes of a sample in the slot. */
static inline size_t rp_layout_kept_bytes(const rp_layout_storage *storage) {
    return storage->packed ? storage->sample_bytes / sizeof(float) * sizeof(uint16_t)
                           : storage->sample_bytes;
}

typedef struct {
    uint32_t readers;      /* layers of this stage that read it */
    uint32_t last;         /* position of the last reader */
    bool read_in_backward; /* by a reader (needs_x) or by its producer (needs_y) */
    bool enters;           /* it enters a group or the loss, so recomputation starts from it */
} rp_use;

/* layout_group.c. The first function forms the groups and marks the tensors that enter them, before
 * storage is placed. The second one determines afterwards what is recomputed, and its buffers.
 * errors MEMORY */
rp_err rp_layout_open_groups(rp_arena *arena, const rp_job *job, rp_layout *layout,
                             rp_use *use) RP_MUST_CHECK;
rp_err rp_layout_place_groups(rp_arena *arena, const rp_job *job, rp_layout *layout,
                              const rp_use *use) RP_MUST_CHECK;

/* layout_stash.c: the parts of a slot, and which of them are offloaded. Needs the number of slots.
 * errors MEMORY */
rp_err rp_layout_part_stash(rp_arena *arena, const rp_job *job, rp_layout *layout,
                            uint32_t align) RP_MUST_CHECK;

/* layout_ties.c: uses of tied tensors, bytes of their rows, and the scratch memory for their sums.
 * Needs the trained parameters. errors MEMORY */
rp_err rp_layout_find_uses(rp_arena *arena, const rp_job *job, rp_layout *layout,
                           uint32_t align) RP_MUST_CHECK;

/* layout_place.c: storage of values and gradients by lifetime, and its buffers. errors MEMORY */
rp_err rp_layout_place(rp_arena *arena, const rp_job *job, rp_layout *layout) RP_MUST_CHECK;

#endif
