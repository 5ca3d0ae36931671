#include "sched/ledger.h"

static rp_err take_spare(rp_piece_pool *pool, rp_piece **out) {
    rp_err err = RP_OK;
    if (!pool->spare) {
        enum { PIECES = 64 };
        rp_piece *more;
        RP_TRY(RP_ARENA_NEW(pool->arena, PIECES, &more));
        for (uint32_t i = 0; i < PIECES; i++) {
            more[i].next = pool->spare;
            pool->spare = &more[i];
        }
    }
    *out = pool->spare;
    pool->spare = (*out)->next;
fail:
    return err;
}

/* Inserts after `before`; NULL: at the front. */
static rp_err insert_piece(rp_piece_pool *pool, rp_ledger *to, rp_piece *before,
                           const rp_piece *content) {
    rp_piece *added;
    rp_err err;
    RP_TRY(take_spare(pool, &added));
    *added = *content;
    added->before = before;
    added->next = before ? before->next : to->first;
    *(before ? &before->next : &to->first) = added;
    *(added->next ? &added->next->before : &to->last) = added;
    to->count++;
fail:
    return err;
}

static void remove_piece(rp_piece_pool *pool, rp_ledger *from, rp_piece *p) {
    *(p->before ? &p->before->next : &from->first) = p->next;
    *(p->next ? &p->next->before : &from->last) = p->before;
    p->next = pool->spare;
    pool->spare = p;
    from->count--;
}

rp_err rp_ledger_append(rp_piece_pool *pool, rp_ledger *to, const rp_piece *content) {
    return insert_piece(pool, to, to->last, content);
}

static rp_range common_part(const rp_piece *p, uint64_t step, rp_range samples) {
    return p->step == step ? rp_range_common(p->samples, samples) : (rp_range){0};
}

/* Whether the newest piece has all the samples: then no search is needed. This is common because
 * the newest is often used first. */
static bool lies_in_last(const rp_ledger *from, uint64_t step, rp_range samples) {
    return from->last && samples.count > 0 &&
           common_part(from->last, step, samples).count == samples.count;
}

bool rp_ledger_covers(const rp_ledger *from, uint64_t step, rp_range samples, double *time) {
    uint32_t count = 0;
    const rp_piece *first = lies_in_last(from, step, samples) ? from->last : from->first;
    for (const rp_piece *p = first; p && count < samples.count; p = p->next) {
        const uint32_t part = common_part(p, step, samples).count;
        if (part > 0 && p->time > *time) {
            *time = p->time;
        }
        count += part;
    }
    return count >= samples.count;
}

/* Removes a part of a piece. */
static rp_err cut_piece(rp_piece_pool *pool, rp_ledger *from, rp_piece *p, rp_range part) {
    const uint32_t part_end = part.first + part.count;
    const uint32_t left = part.first - p->samples.first;
    const uint32_t right = p->samples.first + p->samples.count - part_end;
    rp_err err = RP_OK;
    if (left > 0 && right > 0) {
        rp_piece tail = *p;
        tail.samples = (rp_range){part_end, right};
        RP_TRY(insert_piece(pool, from, p, &tail));
    }
    if (left > 0) {
        p->samples.count = left;
    } else if (right > 0) {
        p->samples = (rp_range){part_end, right};
    } else {
        remove_piece(pool, from, p);
    }
fail:
    return err;
}

rp_err rp_ledger_take(rp_piece_pool *pool, rp_ledger *from, uint64_t step, rp_range samples,
                      uint64_t *version) {
    rp_err err = RP_OK;
    uint32_t taken = 0;
    rp_piece *next = lies_in_last(from, step, samples) ? from->last : from->first;
    while (next && taken < samples.count) {
        rp_piece *p = next;
        const rp_range part = common_part(p, step, samples);
        next = p->next;
        if (part.count == 0) {
            continue;
        }
        if (version && p->version < *version) {
            *version = p->version;
        }
        taken += part.count;
        RP_TRY(cut_piece(pool, from, p, part));
    }
fail:
    return err;
}

uint32_t rp_ledger_touched(const rp_ledger *from, uint64_t step, rp_range samples) {
    uint32_t count = 0;
    uint32_t found = 0;
    for (const rp_piece *p = from->first; p && found < samples.count; p = p->next) {
        const uint32_t part = common_part(p, step, samples).count;
        count += part > 0;
        found += part;
    }
    return count;
}
