#include "link/receiver.h"

typedef struct place place;

struct place {
    rp_message message; /* first member: the slot is found from its message's address */
    rp_buffer *part[RP_PARTS_MAX];
    bool data;
    bool used;
    place *next;
};

struct rp_receiver {
    rp_receiver_options options;
    place *pool;
    uint32_t capacity;
    uint32_t fresh; /* index of the first slot never used, whose memory is untouched */
    place *free, *first, *last;
    uint32_t data_held;   /* accepted, not released */
    uint64_t data_count;  /* accepted in this stream */
    uint64_t expected;    /* seq */
    uint64_t asked_again; /* value of `expected` when a replay was last requested */
    bool starved;         /* a message was dropped because the pool was full */
    bool ack_due, ack_overdue;
    bool news, old_news; /* since the last wait began, and before it */
};

rp_err rp_receiver_new(rp_arena *arena, const rp_receiver_options *options, rp_receiver **out) {
    rp_receiver *r;
    *out = NULL;
    rp_err err = RP_ARENA_NEW(arena, 1, &r);
    if (err != RP_OK) {
        return err;
    }
    r->options = *options;
    r->capacity = options->window + options->control_max;
    r->expected = 1;
    err = RP_ARENA_NEW(arena, r->capacity, &r->pool);
    *out = err == RP_OK ? r : NULL;
    return err;
}

static void drop_parts(place *p) {
    for (uint32_t i = 0; i < p->message.part_count; i++) {
        rp_buffer_drop(&p->part[i]);
    }
}

void rp_receiver_drop_all(rp_receiver *r) {
    for (uint32_t i = 0; r && i < r->fresh; i++) {
        if (r->pool[i].used) {
            drop_parts(&r->pool[i]);
        }
    }
}

void rp_receiver_meet(rp_receiver *r) {
    r->expected = 1;
    r->data_count = 0;
    r->asked_again = 0;
    r->starved = false;
}

static bool has_place(const rp_receiver *r) {
    return r->free || r->fresh < r->capacity;
}

static place *get_place(rp_receiver *r) {
    place *p = r->free;
    if (p) {
        r->free = p->next;
        return p;
    }
    return &r->pool[r->fresh++];
}

/* Appends to the list that rp_receiver_take() takes from. */
static void append_message(rp_receiver *r, const rp_Frame *frame, rp_buffer **parts,
                           uint32_t part_count) {
    place *p = get_place(r);
    p->next = NULL;
    p->used = true;
    p->data = rp_frame_is_data(frame);
    p->message.frame = *frame;
    p->message.part_count = part_count;
    for (uint32_t i = 0; i < part_count; i++) {
        p->part[i] = parts[i];
        p->message.part[i] = rp_frame_part(frame, i, parts[i]->data, parts[i]->bytes);
        parts[i] = NULL;
    }
    if (r->last) {
        r->last->next = p;
    } else {
        r->first = p;
    }
    r->last = p;
    r->news = true;
    r->data_held += p->data ? 1 : 0;
}

static rp_receipt accept_next(rp_receiver *r, const rp_Frame *frame, rp_buffer **parts,
                              uint32_t part_count, bool keep) {
    rp_part views[RP_PARTS_MAX];
    const bool data = rp_frame_is_data(frame);
    for (uint32_t i = 0; i < part_count; i++) {
        views[i] = (rp_part){.data = parts[i]->data, .bytes = parts[i]->bytes};
    }
    if ((data && r->data_count == rp_receiver_credit(r)) ||
        rp_frame_check_parts(frame, views, part_count) != RP_OK) {
        return RP_RECEIPT_DAMAGED;
    }
    if (!has_place(r)) {
        r->starved = true;
        return RP_RECEIPT_NO_ROOM;
    }
    r->expected++;
    r->data_count += data ? 1 : 0;
    if (keep) {
        append_message(r, frame, parts, part_count);
    }
    return RP_RECEIPT_NEXT;
}

rp_receipt rp_receiver_offer(rp_receiver *r, const rp_Frame *frame, rp_buffer **parts,
                             uint32_t part_count, bool keep) {
    r->ack_due = true;
    if (frame->seq != r->expected) {
        return frame->seq < r->expected ? RP_RECEIPT_DUPLICATE : RP_RECEIPT_GAP;
    }
    return accept_next(r, frame, parts, part_count, keep);
}

void rp_receiver_owe_ack(rp_receiver *r) {
    r->ack_due = true;
}

bool rp_receiver_ask_again(rp_receiver *r) {
    if (r->asked_again == r->expected || r->starved) {
        return false;
    }
    r->asked_again = r->expected;
    return true;
}

/* A full pool is not reported as a loss, because the repetition would be dropped as well. */
bool rp_receiver_on_probe(rp_receiver *r, uint64_t seq) {
    if (seq < r->expected || r->starved) {
        return false;
    }
    r->asked_again = r->expected;
    return true;
}

rp_err rp_receiver_take(rp_receiver *r, rp_message **out) {
    place *p = r->first;
    *out = NULL;
    if (!p) {
        return RP_ERR_AGAIN; /* not a fault: not logged */
    }
    r->first = p->next;
    if (!r->first) {
        r->last = NULL;
    }
    *out = &p->message;
    return RP_OK;
}

bool rp_receiver_release(rp_receiver *r, rp_message **message) {
    place *p = (place *)*message;
    *message = NULL;
    if (!p) {
        return false;
    }
    RP_ASSERT(p >= r->pool && p < r->pool + r->capacity && p->used);
    drop_parts(p);
    p->used = false;
    p->next = r->free;
    r->free = p;
    if (p->data) {
        r->data_held--;
        r->ack_due = true; /* carries the new credit */
    }
    const bool again = r->starved;
    if (again) {
        r->starved = false;
        r->asked_again = r->expected;
    }
    return again;
}

uint64_t rp_receiver_ack(const rp_receiver *r) {
    return r->expected - 1;
}

uint64_t rp_receiver_credit(const rp_receiver *r) {
    return r->data_count + r->options.window - r->data_held;
}

void rp_receiver_acked(rp_receiver *r) {
    r->ack_due = r->ack_overdue = false;
}

bool rp_receiver_owes_ack(const rp_receiver *r) {
    return r->ack_due;
}

bool rp_receiver_end_round(rp_receiver *r) {
    const bool overdue = r->ack_overdue;
    r->ack_overdue = r->ack_due;
    return overdue;
}

void rp_receiver_begin_wait(rp_receiver *r) {
    r->old_news = r->news;
    r->news = false;
}

bool rp_receiver_has_news(const rp_receiver *r) {
    return r->news || r->old_news;
}
