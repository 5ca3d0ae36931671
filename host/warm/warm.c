#include "warm/warm_own.h"

#include <string.h>

#include "base/log.h"

/* A board stops up to a second before the host does; less than this is not worth a retry. */
static const int64_t LEAST_NS = 2 * RP_NS_PER_S;

rp_err rp_warm_open(rp_arena *arena, const rp_warm_needs *needs, rp_warm **out) {
    rp_err err;
    RP_ASSERT(needs->within_s > 0);
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    **out = (rp_warm){.needs = *needs, .arena = arena};
fail:
    return err;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t left_ns(const rp_warm *warm) {
    const int64_t left = warm->end_ns - warm->needs.ring->now_ns;
    return left > 0 ? left : 0;
}

int64_t rp_warm_begin_ns(rp_warm *warm) {
    if (!warm) {
        return 0;
    }
    if (warm->end_ns == 0) {
        warm->end_ns = warm->needs.ring->now_ns + warm->needs.within_s * RP_NS_PER_S;
    }
    RP_ASSERT(warm->end_ns > 0);
    return left_ns(warm) + RP_RING_HELLO_NS;
}

uint32_t rp_warm_order_s(const rp_warm *warm) {
    const int64_t left_s = warm ? left_ns(warm) / RP_NS_PER_S : 0;
    return !warm ? 0 : left_s > 0 ? (uint32_t)left_s : 1;
}

/* The ring does not wait for a spare that is away. */
int64_t rp_warm_patience_ns(const rp_warm *warm) {
    if (!warm || !warm->waits || warm->row) {
        return 0;
    }
    const rp_ring *ring = warm->needs.ring;
    const int64_t rest_ns = warm->end_ns - (ring->greeted_ns ? ring->greeted_ns : ring->now_ns);
    return rest_ns > 0 ? rest_ns : 1;
}

/* ---- who stands where ------------------------------------------------------------------------ */

static uint32_t count_rounds(const rp_warm *warm) {
    RP_ASSERT(warm->places > 0);
    return (warm->spares + warm->places - 1) / warm->places * warm->places;
}

/* The spare at this place in this round; NULL: the ring's own board. */
static rp_warm_row *spare_at(const rp_warm *warm, uint32_t place) {
    RP_ASSERT(warm->row && place < warm->places);
    const uint32_t shift = warm->round % warm->places;
    const uint32_t first = warm->round - shift; /* first of a group of as many spares as places */
    const uint32_t i = first + (place + warm->places - shift) % warm->places;
    rp_warm_row *row = i < warm->spares ? &warm->row[warm->places + i] : NULL;
    return row && !row->missing ? row : NULL;
}

static bool has_spares(const rp_warm *warm) {
    for (uint32_t k = 0; k < warm->places; k++) {
        if (spare_at(warm, k)) {
            return true;
        }
    }
    return false;
}

bool rp_warm_rests(const rp_warm *warm, uint32_t place) {
    return warm && warm->row && !spare_at(warm, place);
}

uint32_t rp_warm_places(const rp_warm *warm) {
    return warm->places;
}

rp_warm_place rp_warm_place_of(const rp_warm *warm, uint32_t place) {
    const rp_warm_row *spare = spare_at(warm, place);
    const rp_warm_row *row = spare ? spare : &warm->row[place];
    return (rp_warm_place){.name = row->name,
                           .entry = warm->roster ? &warm->roster[row - warm->row] : NULL,
                           .built = row->built,
                           .instead_of = spare ? warm->row[place].name : NULL};
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static rp_err open_rows(rp_warm *warm) {
    const rp_ring *ring = warm->needs.ring;
    const rp_runfile *run = warm->needs.run;
    const uint32_t count = ring->count + run->spares;
    rp_err err;
    RP_ASSERT(!warm->row && ring->count > 0);
    warm->places = ring->count;
    warm->spares = run->spares;
    RP_TRY(RP_ARENA_NEW(warm->arena, count, &warm->row));
    if (!run->local) {
        RP_TRY(RP_ARENA_NEW(warm->arena, count, &warm->roster));
        memcpy(warm->roster, run->roster, count * sizeof *warm->roster);
    }
    for (uint32_t i = 0; i < count; i++) {
        rp_warm_row *row = &warm->row[i];
        if (i < warm->places) {
            row->name = ring->board[i].name;
            row->built = ring->board[i].build.before;
        } else {
            row->name = run->roster[i].name;
            RP_TRY(RP_ARENA_NEW(warm->arena, warm->places, &row->took));
        }
    }
fail:
    return err;
}

static void note_round(rp_warm *warm) {
    for (uint32_t k = 0; k < warm->places; k++) {
        rp_warm_row *spare = spare_at(warm, k);
        if (spare) {
            spare->built = warm->needs.ring->board[k].build.before;
            spare->took[k] = 1;
        }
    }
}

static rp_warm_outcome find_round(rp_warm *warm) {
    while (warm->round < count_rounds(warm) && !has_spares(warm)) {
        warm->round++;
    }
    return warm->round < count_rounds(warm) ? RP_WARM_ROUND : RP_WARM_OVER;
}

rp_err rp_warm_end_round(rp_warm *warm, rp_warm_outcome *out) {
    rp_err err = RP_OK;
    if (warm->row) {
        RP_ASSERT(warm->round < count_rounds(warm));
        note_round(warm);
        warm->round++;
    } else {
        RP_TRY(open_rows(warm));
    }
    *out = find_round(warm);
fail:
    return err;
}

rp_err rp_warm_finish(const rp_warm *warm, rp_err *incomplete) {
    uint32_t missing = 0;
    RP_ASSERT(warm->row && warm->round == count_rounds(warm));
    *incomplete = RP_OK;
    for (uint32_t i = 0; i < warm->spares; i++) {
        const rp_warm_row *row = &warm->row[warm->places + i];
        if (row->missing && missing++ == 0) {
            *incomplete = rp_fail(RP_ERR_FAULT, "the ring is warm, the spare board %s is not: %s",
                                  row->name, row->missing);
        }
    }
    return rp_warm_show(warm);
}

/* ---- faults ---------------------------------------------------------------------------------- */

bool rp_warm_may_wait(const rp_warm *warm, const rp_warm_fault *fault) {
    return warm && warm->end_ns != 0 && left_ns(warm) >= LEAST_NS && !fault->interrupted &&
           fault->err == RP_ERR_FAULT && fault->is_lost && fault->board != RP_NO_BOARD;
}

void rp_warm_wait(rp_warm *warm, const rp_warm_fault *fault) {
    RP_ASSERT(rp_warm_may_wait(warm, fault));
    rp_log_warn("%s; warming goes on, for %u s at most", fault->text, rp_warm_order_s(warm));
    warm->waits = true;
}

bool rp_warm_may_leave(const rp_warm *warm, const rp_warm_fault *fault) {
    return warm && warm->row && fault->err != RP_OK && !fault->interrupted &&
           fault->err != RP_ERR_INTERRUPTED;
}

/* Whether a spare caused the fault: the one named by it, or all that are not done if none is
 * named. */
static bool is_blamed(const rp_warm *warm, const rp_warm_fault *fault, const rp_warm_row *row) {
    for (uint32_t k = 0; k < warm->places; k++) {
        const rp_board_state *board = &warm->needs.ring->board[k];
        if (row == spare_at(warm, k)) {
            const bool is_done = fault->while_greeting ? board->hello : board->ready;
            return fault->board == RP_NO_BOARD ? !is_done : fault->board == k;
        }
    }
    return false;
}

/* A fault that no spare caused ends the part of all spares with places left to build for. */
rp_err rp_warm_leave(rp_warm *warm, const rp_warm_fault *fault, rp_warm_outcome *out) {
    bool *blamed;
    bool any = false;
    char *why;
    rp_err err;
    RP_ASSERT(rp_warm_may_leave(warm, fault));
    RP_TRY(rp_arena_string(warm->arena, fault->text, &why));
    RP_TRY(RP_ARENA_NEW(warm->arena, warm->spares + (size_t)1, &blamed));
    for (uint32_t i = 0; i < warm->spares; i++) {
        blamed[i] = is_blamed(warm, fault, &warm->row[warm->places + i]);
        any = any || blamed[i];
    }
    for (uint32_t i = 0; i < warm->spares; i++) {
        rp_warm_row *row = &warm->row[warm->places + i];
        const bool is_left = any ? blamed[i] : memchr(row->took, 0, warm->places) != NULL;
        row->missing = !row->missing && is_left ? why : row->missing;
    }
    *out = find_round(warm);
fail:
    return err;
}
