/* Measurements that boards make of themselves: which boards are asked, and their answers. */
#include <stdio.h>
#include <string.h>

#include "measure/measure_own.h"

/* ---- which boards are asked ------------------------------------------------------------------ */

/* How many of the first `end` boards measure themselves. */
static uint32_t count_measured(const rp_measure *m, uint32_t end) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < end; k++) {
        count += rp_measure_board_for(m, k) == k;
    }
    return count;
}

bool rp_measure_is_building(const rp_measure *m) {
    return m->builders > 0;
}

void rp_measure_end_building(rp_measure *m) {
    m->builders = 0;
    for (uint32_t k = 0; k < m->needs.ring->count; k++) {
        m->needs.ring->board[k].measure.profiled = false;
    }
}

bool rp_measure_wants(const rp_measure *m, uint32_t board) {
    RP_ASSERT(board < m->needs.ring->count);
    return m->builders > 0 ? board < m->builders : rp_measure_board_for(m, board) == board;
}

bool rp_measure_may_ask(const rp_measure *m, uint32_t board) {
    const rp_ring *ring = m->needs.ring;
    RP_ASSERT(rp_measure_wants(m, board));
    for (uint32_t k = 0; m->builders == 0 && k < ring->count; k++) {
        const rp_board_state *other = &ring->board[k];
        if (k != board && other->machine.asked && !other->measure.profiled &&
            rp_measure_share_machine(ring, k, board)) {
            return false;
        }
    }
    return true;
}

bool rp_measure_are_boards_done(const rp_measure *m, rp_sink_part *part) {
    const uint32_t layers = m->needs.run->model->layer_count;
    bool all = true;
    part->unit = "layers";
    part->done = part->total = 0;
    for (uint32_t k = 0; k < m->needs.ring->count; k++) {
        const rp_board_state *board = &m->needs.ring->board[k];
        if (rp_measure_wants(m, k)) {
            part->done += board->measure.profiled ? layers : board->build.now.layers_timed;
            part->total += layers;
            all = all && board->measure.profiled;
        }
    }
    RP_ASSERT(part->done <= part->total);
    return all;
}

uint32_t rp_measure_find_missing(const rp_measure *m) {
    const rp_ring *ring = m->needs.ring;
    uint32_t k = 0;
    RP_ASSERT(ring->count > 0);
    while (k + 1 < ring->count && (!rp_measure_wants(m, k) || ring->board[k].measure.profiled)) {
        k++;
    }
    return k;
}

/* Boards of one machine share a kernel cache, so as many boards as there are cores first build the
 * layers' kernels. Afterwards one board at a time measures, while the machine does nothing else. */
static uint32_t count_builders(const rp_measure *m, uint32_t cores) {
    const uint32_t builders = cores < m->needs.ring->count ? cores : m->needs.ring->count;
    return builders > 1 && !rp_profile_cache_is_complete(m) ? builders : 0;
}

rp_err rp_measure_begin(rp_measure *m, uint32_t cores) {
    const rp_runfile *run = m->needs.run;
    const rp_ring *ring = m->needs.ring;
    const uint32_t most = run->boards + run->spares;
    const uint32_t known = most > ring->count ? most : ring->count;
    rp_err err;
    RP_ASSERT(!m->has_profile);
    RP_ASSERT(ring->count > 0 && ring->count <= m->board_count);
    rp_arena_finish(&m->arena); /* after a fault, a measurement may be repeated */
    rp_arena_init(&m->arena, "profile", 0);
    RP_TRY(rp_profile_open(&m->arena, run, known, &m->profile));
    RP_TRY(rp_profile_open(&m->arena, run, known, &m->kept));
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *state = &ring->board[k];
        rp_profile_board *own = &m->profile.board[k];
        own->name = own->like = state->name;
        own->device = state->device;
        own->memory_bytes = state->hardware.memory_bytes;
        own->device_memory = state->hardware.device_memory;
        RP_TRY(rp_profile_cache_read(m, k));
    }
    rp_wires_begin(m);
    m->builders = count_builders(m, cores);
fail:
    return err;
}

void rp_measure_describe_order(const rp_measure *m, uint32_t board, char *out, size_t bytes) {
    const rp_ring *ring = m->needs.ring;
    const uint32_t all = count_measured(m, ring->count);
    RP_ASSERT(rp_measure_wants(m, board));
    (void)snprintf(out, bytes, "profiling: %s board %s, %u of %u%s",
                   rp_profile_probe_is_due(m, board) ? "probing" : "measuring",
                   ring->board[board].name, count_measured(m, board + 1), all,
                   all == ring->count ? "" : " that differ");
}

/* ---- answers --------------------------------------------------------------------------------- */

static rp_err take_values(rp_measure *m, uint32_t board, const double *values, size_t count) {
    const rp_err err = rp_profile_take(&m->arena, &m->profile, board, values, count);
    if (err == RP_OK) {
        rp_profile_cache_write(m, board);
    }
    return err == RP_ERR_PEER ? rp_fail(RP_ERR_PEER, "board %s: the profile does not fit: %s",
                                        m->needs.ring->board[board].name, rp_err_message())
                              : err;
}

rp_err rp_measure_take(rp_measure *m, uint32_t board, const rp_ProfileDone *done,
                       const rp_part *part, rp_measure_answer *out) {
    const size_t count = part->bytes / sizeof(double);
    rp_arena arena;
    double *values; /* aligned copy */
    rp_err err;
    RP_ASSERT(board < m->needs.ring->count && board < m->profile.board_count);
    *out = (rp_measure_answer){0};
    if (m->builders > 0) { /* a board that builds measures nothing */
        m->needs.ring->board[board].measure.profiled = true;
        return RP_OK;
    }
    rp_profile_take_flash(&m->profile, board, (double)done->flash_write, (double)done->flash_read);
    rp_arena_init(&arena, "measured", 0);
    RP_TRY(RP_ARENA_NEW(&arena, count + 1, &values));
    memcpy(values, part->data, count * sizeof *values);
    RP_TRY(rp_profile_probe_is_due(m, board) ? rp_profile_probe_take(m, board, values, count, out)
                                             : take_values(m, board, values, count));
    RP_ASSERT(out->again != m->profile.board[board].known);
    m->needs.ring->board[board].measure.profiled = !out->again;
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_measure_end(rp_measure *m) {
    RP_ASSERT(m->builders == 0 && m->wires.at == m->wires.count);
    for (uint32_t k = 0; k < m->needs.ring->count; k++) {
        const uint32_t other = rp_measure_board_for(m, k);
        if (other != k) {
            rp_profile_take_like(&m->profile, k, other);
        }
        RP_ASSERT(m->profile.board[k].known);
    }
    rp_profile_seconds_of(&m->profile, 0, m->layer_seconds);
    m->has_profile = true;
}
