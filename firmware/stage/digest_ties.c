/* Tied weights of the digest executor: the row of gradients, and the sums over all uses. */
#include <string.h>

#include "stage/digest_own.h"

static rp_digest *gradient_of(const digest_executor *e, const rp_layout_use *use) {
    return &digest_block(e, (rp_block){RP_BLOCK_GRADIENT, 0})[use->trained];
}

void rp_digest_read_row(const digest_executor *e, rp_block block, char *out) {
    const rp_layout *layout = e->as.base.layout;
    memset(out, 0, layout->tie_row_bytes);
    for (uint32_t i = 0; i < layout->use_count; i++) {
        const rp_layout_use *use = &layout->use[i];
        if (use->sent && use->trained != RP_NOT_TRAINED) {
            memcpy(out + use->place, &digest_block(e, block)[use->trained], sizeof(rp_digest));
        }
    }
}

static rp_digest term_of(const digest_executor *e, const rp_command *command,
                         const rp_layout_use *use) {
    rp_digest term;
    if (use->trained != RP_NOT_TRAINED) {
        return *gradient_of(e, use);
    }
    const char *row = rp_tie_row_of(command->tie.row, command->tie.count, use->stage);
    memcpy(&term, row + use->place, sizeof term);
    return term;
}

void rp_digest_run_tie(digest_executor *e, const rp_command *command) {
    const rp_layout *layout = e->as.base.layout;
    for (uint32_t first = 0, end = 0; first < layout->use_count; first = end) {
        const bool adds = rp_layout_adds_up(layout, first, e->as.base.job);
        rp_digest sum = {0};
        for (; end < layout->use_count && layout->use[end].owner == layout->use[first].owner;
             end++) {
            if (adds) { /* without a flush only the owner */
                const rp_digest term = term_of(e, command, &layout->use[end]);
                sum = end == first ? term : rp_digest_tie(sum, term);
            }
        }
        for (uint32_t i = first; adds && i < end; i++) {
            if (layout->use[i].trained != RP_NOT_TRAINED) {
                *gradient_of(e, &layout->use[i]) = sum;
            }
        }
    }
}

/* Values of far uses in a slot: after its statistics. */
static rp_digest *value_of(const digest_executor *e, const rp_pass *pass,
                           const rp_layout_use *use) {
    const rp_layout *layout = e->as.base.layout;
    const uint32_t number = use->part - (layout->part_count - layout->far_count);
    rp_digest *slot = e->slots + pass->stash.slot * e->slot_digests;
    return slot + e->rows_digests + layout->layer_count + number;
}

void rp_digest_take_values(digest_executor *e, const rp_pass *pass) {
    const rp_layout *layout = e->as.base.layout;
    for (uint32_t i = 0; pass->tie_count > 0 && i < layout->use_count; i++) {
        const rp_layout_use *use = &layout->use[i];
        if (use->part != RP_NO_STORAGE) {
            const char *row = rp_tie_row_of(pass->tie, pass->tie_count, use->owner_stage);
            memcpy(value_of(e, pass, use), row + use->owner_place, sizeof(rp_digest));
        }
    }
}

const rp_digest *rp_digest_select_values(digest_executor *e, const rp_pass *pass) {
    const rp_layout *layout = e->as.base.layout;
    rp_digest *block = digest_block(e, pass->weights);
    if (layout->far_count == 0) {
        return block;
    }
    memcpy(e->seen, block, layout->trained_count * sizeof *block);
    for (uint32_t i = 0; i < layout->use_count; i++) {
        const rp_layout_use *use = &layout->use[i];
        if (use->part != RP_NO_STORAGE) {
            e->seen[use->trained] = *value_of(e, pass, use);
        }
    }
    return e->seen;
}
