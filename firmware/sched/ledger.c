#include "sched/ledger.h"

static rp_err insert_piece(rp_piece_pool *pool, rp_ledger *to, rp_piece **link,
                           const rp_piece *content) {
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
    rp_piece *added = pool->spare;
    pool->spare = added->next;
    *added = *content;
    added->next = *link;
    *link = added;
    to->count++;
fail:
    return err;
}

rp_err rp_ledger_append(rp_piece_pool *pool, rp_ledger *to, const rp_piece *content) {
    rp_piece **end = &to->first;
    while (*end) {
        end = &(*end)->next;
    }
    return insert_piece(pool, to, end, content);
}

static rp_range common_part(const rp_piece *p, uint64_t step, rp_range samples) {
    return p->step == step ? rp_range_common(p->samples, samples) : (rp_range){0};
}

bool rp_ledger_covers(const rp_ledger *from, uint64_t step, rp_range samples, double *time) {
    uint32_t count = 0;
    for (const rp_piece *p = from->first; p; p = p->next) {
        const uint32_t part = common_part(p, step, samples).count;
        if (part > 0 && p->time > *time) {
            *time = p->time;
        }
        count += part;
    }
    return count >= samples.count;
}

rp_err rp_ledger_take(rp_piece_pool *pool, rp_ledger *from, uint64_t step, rp_range samples,
                      uint64_t *version) {
    rp_err err = RP_OK;
    rp_piece **link = &from->first;
    while (*link) {
        rp_piece *p = *link;
        const rp_range part = common_part(p, step, samples);
        if (part.count == 0) {
            link = &p->next;
            continue;
        }
        if (version && p->version < *version) {
            *version = p->version;
        }
        const uint32_t part_end = part.first + part.count;
        const uint32_t left = part.first - p->samples.first;
        const uint32_t right = p->samples.first + p->samples.count - part_end;
        if (left > 0 && right > 0) {
            rp_piece tail = *p;
            tail.samples = (rp_range){part_end, right};
            RP_TRY(insert_piece(pool, from, &p->next, &tail));
        }
        if (left > 0) {
            p->samples.count = left;
            link = &p->next;
        } else if (right > 0) {
            p->samples = (rp_range){part_end, right};
            link = &p->next;
        } else {
            *link = p->next;
            p->next = pool->spare;
            pool->spare = p;
            from->count--;
        }
    }
fail:
    return err;
}

uint32_t rp_ledger_touched(const rp_ledger *from, uint64_t step, rp_range samples) {
    uint32_t count = 0;
    for (const rp_piece *p = from->first; p; p = p->next) {
        count += common_part(p, step, samples).count > 0;
    }
    return count;
}
