#include "agent/port_out.h"

enum { ALIGN = 64 };

struct rp_port_slot {
    enum { FREE, TAKEN, FILLED, SENT } state;
    rp_port_out *port;
    char *memory; /* NULL while the slot is free */
    uint64_t step;
    rp_range samples;
    rp_range slice[RP_PORT_EDGES_MAX]; /* for each edge */
    bool evaluating;
    uint32_t time;      /* tokens of a sample */
    uint32_t next_edge; /* first edge that has not got its slice */
    uint32_t unacked;   /* slices */
};

struct rp_port_out {
    rp_port_out_options options;
    rp_port_slot *slot;
    uint32_t next; /* slot of the next op */
    uint32_t send; /* slot that is sent next */
    char **spare;  /* memory of free slots, last freed at the end */
    uint32_t spares;
};

static bool is_used(const rp_port_out *port) {
    return port->options.edge_count > 0 && port->options.form.tensor_count > 0;
}

rp_err rp_port_out_open(rp_arena *arena, const rp_port_out_options *options, rp_port_out **out) {
    rp_err err;
    rp_port_out *port;
    char *memory = NULL;
    size_t slot_bytes = 0;
    RP_ASSERT(options->edge_count <= RP_PORT_EDGES_MAX && options->slot_count > 0);
    RP_TRY(RP_ARENA_NEW(arena, 1, &port));
    port->options = *options;
    for (uint32_t i = 0; i < options->form.tensor_count; i++) {
        slot_bytes += rp_port_bytes(&options->form, i, options->micro);
    }
    RP_TRY(RP_ARENA_NEW(arena, options->slot_count, &port->slot));
    RP_TRY(RP_ARENA_NEW(arena, options->slot_count, &port->spare));
    slot_bytes = (slot_bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (is_used(port) && !options->shared) {
        RP_TRY(RP_ARENA_NEW(arena, slot_bytes * options->slot_count, &memory));
    }
    for (uint32_t i = 0; is_used(port) && i < options->slot_count; i++) {
        port->slot[i].port = port;
        port->spare[port->spares++] = options->shared ? options->shared : memory + slot_bytes * i;
    }
    *out = port;
fail:
    return err;
}

bool rp_port_out_has_room(const rp_port_out *port) {
    return !is_used(port) || port->slot[port->next].state == FREE;
}

rp_port_slot *rp_port_out_take(rp_port_out *port, const rp_op *op, bool evaluating,
                               const rp_range *slice) {
    if (!is_used(port)) {
        return NULL;
    }
    rp_port_slot *slot = &port->slot[port->next];
    RP_ASSERT(slot->state == FREE &&
              (op->samples.count <= port->options.micro || port->options.form.is_sum));
    slot->state = TAKEN;
    slot->memory = port->spare[--port->spares];
    slot->step = op->step;
    slot->samples = op->samples;
    for (uint32_t e = 0; e < port->options.edge_count; e++) {
        const uint64_t end = (uint64_t)op->samples.first + op->samples.count;
        RP_ASSERT(slice[e].count == 0 || (slice[e].first >= op->samples.first &&
                                          (uint64_t)slice[e].first + slice[e].count <= end));
        slot->slice[e] = slice[e];
    }
    slot->evaluating = evaluating;
    slot->time = 0;
    slot->next_edge = slot->unacked = 0;
    port->next = (port->next + 1) % port->options.slot_count;
    return slot;
}

void rp_port_out_parts(const rp_port_out *port, const rp_port_slot *slot, void **part) {
    size_t offset = 0;
    for (uint32_t i = 0; i < port->options.form.tensor_count; i++) {
        part[i] = slot->memory + offset;
        offset += rp_port_bytes(&port->options.form, i, port->options.micro);
    }
}

void rp_port_out_set_time(rp_port_slot *slot, uint32_t time) {
    RP_ASSERT(slot->state == TAKEN && rp_port_has_time(&slot->port->options.form, time));
    slot->time = time;
}

void rp_port_out_fill(rp_port_slot *slot) {
    RP_ASSERT(slot->state == TAKEN);
    slot->state = FILLED;
}

/* Not before the last slice is sent, because `unacked` may be 0 between two of them. */
static void free_when_over(rp_port_slot *slot) {
    if (slot->state == SENT && slot->unacked == 0) {
        slot->state = FREE;
        slot->port->spare[slot->port->spares++] = slot->memory;
        slot->memory = NULL;
    }
}

static void slice_acked(void *context) {
    rp_port_slot *slot = context;
    slot->unacked--;
    free_when_over(slot);
}

/* The samples of a slot that go over an edge; there are some. */
static rp_parcel cut_slice(const rp_port_out *port, rp_port_slot *slot, uint32_t edge) {
    const rp_port_form *form = &port->options.form;
    rp_parcel parcel = {.step = slot->step,
                        .samples = slot->slice[edge],
                        .evaluating = slot->evaluating,
                        .time = slot->time,
                        .part_count = form->tensor_count};
    void *part[RP_PARTS_MAX];
    rp_port_out_parts(port, slot, part);
    for (uint32_t i = 0; i < form->tensor_count; i++) {
        const uint32_t skipped = parcel.samples.first - slot->samples.first;
        const size_t offset =
            skipped && !form->is_sum ? rp_port_bytes_at(form, slot->time, i, skipped) : 0;
        parcel.part[i] = rp_part_of_bytes(
            (char *)part[i] + offset, rp_port_bytes_at(form, slot->time, i, parcel.samples.count));
        parcel.part[i].dtype = form->dtype[i];
    }
    return parcel;
}

static void release_local(void *owner, void *memory) {
    ((rp_port_local *)owner)->done(memory);
}

rp_err rp_port_local_send(void *context, const rp_parcel *parcel, void (*done)(void *slot),
                          void *slot) {
    rp_port_local *local = context;
    rp_parcel own = *parcel;
    local->done = done;
    own.source = local->source;
    own.release = release_local;
    own.owner = local;
    own.memory = slot;
    return rp_port_in_push(local->port, &own);
}

static rp_err send_slot(rp_port_out *port, rp_port_slot *slot) {
    while (slot->next_edge < port->options.edge_count) {
        const rp_port_edge *edge = &port->options.edge[slot->next_edge];
        if (slot->slice[slot->next_edge].count > 0) {
            const rp_parcel parcel = cut_slice(port, slot, slot->next_edge);
            slot->unacked++;
            const rp_err err = edge->send(edge->context, &parcel, slice_acked, slot);
            if (err != RP_OK) {
                slot->unacked--;
                return err;
            }
        }
        slot->next_edge++;
    }
    slot->state = SENT;
    free_when_over(slot);
    return RP_OK;
}

rp_err rp_port_out_send(rp_port_out *port) {
    while (is_used(port) && port->slot[port->send].state == FILLED) {
        const rp_err err = send_slot(port, &port->slot[port->send]);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        port->send = (port->send + 1) % port->options.slot_count;
    }
    return RP_OK;
}

bool rp_port_out_is_quiet(const rp_port_out *port) {
    for (uint32_t i = 0; i < port->options.slot_count; i++) {
        if (port->slot[i].state != FREE) {
            return false;
        }
    }
    return true;
}
