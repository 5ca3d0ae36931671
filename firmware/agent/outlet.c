#include "agent/outlet.h"

rp_err rp_outlet_open(rp_arena *arena, rp_link *link, rp_Kind kind, rp_crossing crossing,
                      uint32_t micro, rp_outlet *out) {
    *out = (rp_outlet){.link = link, .kind = kind, .crossing = crossing, .micro = micro};
    rp_err err = RP_OK;
    for (uint32_t i = 0; link && crossing.count && i < RP_OUTLET_SLOTS; i++) {
        RP_TRY(RP_ARENA_NEW(arena, crossing.sample_bytes * micro, &out->slot[i].memory));
    }
fail:
    return err;
}

static bool used(const rp_outlet *out) {
    return out->link && out->crossing.count > 0;
}

bool rp_outlet_free(const rp_outlet *out) {
    return !used(out) || out->slot[out->next].state == RP_OUTLET_FREE;
}

rp_outlet_slot *rp_outlet_take(rp_outlet *out, const rp_op *op) {
    if (!used(out)) {
        return NULL;
    }
    rp_outlet_slot *slot = &out->slot[out->next];
    slot->state = RP_OUTLET_FILLING;
    slot->op = *op;
    out->next = (out->next + 1) % RP_OUTLET_SLOTS;
    return slot;
}

void rp_outlet_parts(const rp_outlet *out, const rp_outlet_slot *slot, void **parts) {
    size_t offset = 0;
    for (uint32_t i = 0; i < out->crossing.count; i++) {
        parts[i] = slot->memory + offset;
        offset += rp_shape_count(&out->crossing.sample[i]) * out->micro * sizeof(float);
    }
}

static void sent(void *context) {
    ((rp_outlet_slot *)context)->state = RP_OUTLET_FREE;
}

rp_err rp_outlet_send(rp_outlet *out, uint32_t stage, bool evaluating) {
    while (out->slot[out->send].state == RP_OUTLET_READY) {
        rp_outlet_slot *slot = &out->slot[out->send];
        rp_Header header = rp_Header_init_zero;
        header.kind = out->kind;
        header.step = slot->op.step;
        header.first = slot->op.samples.first;
        header.count = slot->op.samples.count;
        header.stage = stage;
        header.code = evaluating;
        void *memory[RP_CUT_TENSORS_MAX];
        rp_part part[RP_CUT_TENSORS_MAX];
        rp_outlet_parts(out, slot, memory);
        for (uint32_t i = 0; i < out->crossing.count; i++) {
            rp_shape shape = rp_shape_batch(header.count, &out->crossing.sample[i]);
            rp_frame_add_shape(&header, &shape);
            part[i] = (rp_part){memory[i], rp_shape_count(&shape) * sizeof(float)};
        }
        rp_err err = rp_link_send(out->link, &header, part, out->crossing.count, false, sent, slot);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        slot->state = RP_OUTLET_UNACKED;
        out->send = (out->send + 1) % RP_OUTLET_SLOTS;
    }
    return RP_OK;
}

bool rp_outlet_quiet(const rp_outlet *out) {
    for (uint32_t i = 0; i < RP_OUTLET_SLOTS; i++) {
        if (out->slot[i].state != RP_OUTLET_FREE) {
            return false;
        }
    }
    return true;
}
