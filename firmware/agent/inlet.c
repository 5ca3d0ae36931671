#include "agent/inlet.h"

#include <string.h>

rp_err rp_inlet_open(rp_arena *arena, rp_link *link, rp_Kind kind, rp_crossing crossing,
                     uint32_t aside_max, rp_inlet *out) {
    *out = (rp_inlet){.link = link, .kind = kind, .crossing = crossing, .aside_max = aside_max};
    return RP_ARENA_NEW(arena, aside_max + 1, &out->aside);
}

void rp_inlet_release(rp_inlet *in, rp_message **message) {
    if (!*message) {
        return;
    }
    if (in->own && *message >= in->own && *message < in->own + in->own_count) {
        *message = NULL;
        return;
    }
    rp_link_release(in->link, message);
}

void rp_inlet_close(rp_inlet *in) {
    rp_inlet_release(in, &in->head);
    for (uint32_t i = 0; i < in->aside_count; i++) {
        rp_inlet_release(in, &in->aside[i]);
    }
    in->aside_count = 0;
}

bool rp_of_evaluation(const rp_message *message) {
    return message->header.code != 0;
}

static bool header_is(const rp_Header *header, const rp_op *op) {
    return header->step == op->step && header->first == op->samples.first &&
           header->count == op->samples.count;
}

rp_err rp_inlet_check(const rp_inlet *in, const rp_op *op) {
    const rp_message *message = in->head;
    const rp_Header *header = &message->header;
    if (header->kind != in->kind || !header_is(header, op) ||
        message->part_count != in->crossing.count) {
        return rp_fail(RP_ERR_PEER,
                       "parcel kind %d of step %llu [%u, +%u) with %u parts came where kind %d of "
                       "step %llu [%u, +%u) with %u was due",
                       (int)header->kind, (unsigned long long)header->step, header->first,
                       header->count, message->part_count, (int)in->kind,
                       (unsigned long long)op->step, op->samples.first, op->samples.count,
                       in->crossing.count);
    }
    for (uint32_t i = 0; i < message->part_count; i++) {
        size_t want = rp_shape_count(&in->crossing.sample[i]) * op->samples.count * sizeof(float);
        if (message->part[i].bytes != want) {
            return rp_fail(RP_ERR_PEER, "part %u has %zu bytes, the plan says %zu", i,
                           message->part[i].bytes, want);
        }
    }
    return RP_OK;
}

static rp_err set_aside(rp_inlet *in, rp_message *message) {
    if (in->aside_count == in->aside_max) {
        rp_link_release(in->link, &message);
        return rp_fail(RP_ERR_LIMIT, "more than %u parcels wait for training", in->aside_max);
    }
    in->aside[in->aside_count++] = message;
    return RP_OK;
}

rp_err rp_inlet_put_aside(rp_inlet *in) {
    for (;;) {
        rp_message *message;
        rp_err err = rp_link_recv(in->link, &message);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        err = set_aside(in, message);
        if (err != RP_OK) {
            return err;
        }
    }
}

/* The next message that belongs to what runs now, or RP_ERR_AGAIN. */
static rp_err take_head(rp_inlet *in, bool evaluating) {
    if (!evaluating && in->aside_count > 0) {
        in->head = in->aside[0];
        in->aside_count--;
        memmove(in->aside, in->aside + 1, in->aside_count * sizeof(rp_message *));
        return RP_OK;
    }
    for (;;) {
        rp_err err = rp_link_recv(in->link, &in->head);
        if (err != RP_OK || rp_of_evaluation(in->head) == evaluating) {
            return err;
        }
        rp_message *message = in->head;
        in->head = NULL;
        if (!evaluating) {
            rp_link_release(in->link, &message);
            return rp_fail(RP_ERR_PEER, "a parcel of an evaluation came in training");
        }
        err = set_aside(in, message);
        if (err != RP_OK) {
            return err;
        }
    }
}

rp_err rp_inlet_peek(rp_inlet *in, bool evaluating, const rp_op *op, bool *ready) {
    *ready = false;
    if (!in->head) {
        rp_err err = take_head(in, evaluating);
        if (err == RP_ERR_AGAIN) {
            return RP_OK;
        }
        if (err != RP_OK) {
            return err;
        }
    }
    rp_err err = rp_inlet_check(in, op);
    *ready = err == RP_OK;
    return err;
}

rp_err rp_inlet_restore(rp_arena *arena, rp_inlet *in, uint32_t count, uint32_t micro) {
    rp_err err;
    if (count > in->aside_max || in->aside_count > 0 || in->own) {
        return rp_fail(RP_ERR_LIMIT, "%u parcels of a checkpoint can not be taken over", count);
    }
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &in->own));
    in->own_count = count;
    for (uint32_t m = 0; m < count; m++) {
        rp_message *message = &in->own[m];
        message->part_count = in->crossing.count;
        for (uint32_t i = 0; i < in->crossing.count; i++) {
            const size_t bytes = rp_shape_count(&in->crossing.sample[i]) * micro * sizeof(float);
            char *memory;
            RP_TRY(RP_ARENA_NEW(arena, bytes, &memory));
            message->part[i] = (rp_part){memory, bytes};
        }
        in->aside[in->aside_count++] = message;
    }
fail:
    return err;
}
