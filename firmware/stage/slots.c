#include "stage/slots.h"

void rp_slots_clear(rp_slots *slots) {
    for (uint32_t i = 0; i < slots->count; i++) {
        slots->slot[i].busy = false;
    }
}

static uint32_t take_free(rp_slots *slots, const rp_op *op, bool evaluating, rp_range range) {
    for (uint32_t i = 0; i < slots->count; i++) {
        if (!slots->slot[i].busy) {
            slots->slot[i] = (rp_slot){.busy = true,
                                       .evaluating = evaluating,
                                       .step = op->step,
                                       .samples = range,
                                       .left = range.count};
            return i;
        }
    }
    return RP_NO_SLOT;
}

uint32_t rp_slots_take(rp_slots *slots, const rp_op *op, bool evaluating) {
    return take_free(slots, op, evaluating, op->samples);
}

static bool range_contains(const rp_range *all, const rp_range *some) {
    return some->first >= all->first && some->count <= all->count &&
           some->first - all->first <= all->count - some->count;
}

rp_stash rp_slots_find(const rp_slots *slots, const rp_op *op, bool evaluating) {
    for (uint32_t i = 0; i < slots->count; i++) {
        const rp_slot *slot = &slots->slot[i];
        if (slot->busy && slot->evaluating == evaluating && slot->step == op->step &&
            range_contains(&slot->samples, &op->samples)) {
            return (rp_stash){.slot = i,
                              .first = op->samples.first - slot->samples.first,
                              .whole = op->samples.count == slot->samples.count};
        }
    }
    return (rp_stash){.slot = RP_NO_SLOT};
}

rp_stash rp_slots_place(rp_slots *slots, const rp_op *op, bool evaluating, rp_range range) {
    const bool whole = range.count == op->samples.count;
    rp_stash at = {.slot = RP_NO_SLOT};
    RP_ASSERT(range_contains(&range, &op->samples));
    if (!whole) {
        at = rp_slots_find(slots, op, evaluating);
    }
    if (at.slot == RP_NO_SLOT) {
        at = (rp_stash){.slot = take_free(slots, op, evaluating, range),
                        .first = op->samples.first - range.first,
                        .whole = whole};
    }
    return at;
}

void rp_slots_release(rp_slots *slots, uint32_t index, const rp_op *op) {
    rp_slot *slot = &slots->slot[index];
    RP_ASSERT(slot->busy && op->samples.count <= slot->left);
    slot->left -= op->samples.count;
    slot->busy = slot->left > 0;
}

bool rp_slots_set_time(rp_slots *slots, uint32_t index, uint32_t time) {
    rp_slot *slot = &slots->slot[index];
    const bool same = !slot->has_time || slot->time == time;
    slot->has_time = true;
    slot->time = same ? time : slot->time;
    return same;
}
