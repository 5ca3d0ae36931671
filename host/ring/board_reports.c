/* Takes what boards report: HELLO, BUILDING, READY, and the facts of FINISHED. Numbers from outside
 * are bounded before they are stored. */
#include "ring/connect.h"
#include "ring/ring_own.h"
#include "wire/trace.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Larger than any board can have. */
static const uint64_t BYTES_MAX = UINT64_C(1) << 44;
static const uint32_t KERNELS_MAX = 1 << 20;
static const uint64_t COUNT_MAX = UINT64_C(1)
                                  << 52; /* in a segment, so that sums do not overflow */
static const double ENERGY_MAX_J = 1e12;

/* A number that no board can have counts as 0, which means unknown. */
static uint64_t bound_value(uint64_t said, uint64_t most) {
    return said <= most ? said : 0;
}

/* 0: unknown, or not possible. */
static double bound_real(double value, double least, double most) {
    return value >= least && value <= most ? value : 0;
}

/* ---- greeting -------------------------------------------------------------------------------- */

void rp_ring_begin_greeting(rp_ring *ring, bool knows_boards) {
    RP_ASSERT(ring->board && ring->now_ns >= ring->greeted_ns);
    ring->wire = (rp_wire_range){RP_WIRE_MIN, RP_WIRE_MAX};
    ring->features = RP_WIRE_FEATURES;
    ring->knows_boards = knows_boards;
    ring->greeted_ns = ring->greeted_ns ? ring->greeted_ns : ring->now_ns;
}

void rp_ring_end_greeting(rp_ring *ring) {
    ring->greeted_ns = 0;
}

void rp_ring_expect_hello(rp_ring *ring, uint32_t board, bool is_expected) {
    RP_ASSERT(board < ring->count);
    ring->board[board].hello = !is_expected;
}

static const rp_board_state *find_dialling(const rp_ring *ring) {
    uint32_t k = 0;
    while (k < ring->count && !ring->board[k].address.dials) {
        k++;
    }
    return k < ring->count ? &ring->board[k] : NULL;
}

/* Checks the software of a board, and names the end that has to be updated. */
rp_err rp_ring_check_software(rp_ring *ring, uint32_t place, const rp_Hello *board) {
    const char *name = ring->board[place].name;
    char older[96];
    if (!rp_wire_narrow(&ring->wire, board->wire_min, board->wire_max)) {
        const bool host_is_older = board->wire_min > RP_WIRE_MAX;
        const bool board_is_older = board->wire_max < RP_WIRE_MIN;
        (void)snprintf(older, sizeof older, "%s%s", board_is_older ? "the board " : "",
                       board_is_older  ? name
                       : host_is_older ? "the host"
                                       : "the older of its boards");
        return rp_fail(RP_ERR_PEER,
                       "board %s (ringpipe %s) speaks wire versions %u to %u, this host (ringpipe "
                       "%s) and its other boards %u to %u: update ringpipe on %s",
                       name, board->software, board->wire_min, board->wire_max, RP_VERSION,
                       ring->wire.min, ring->wire.max, older);
    }
    if (!(board->features & RP_WIRE_FEATURE_PLAN)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s (ringpipe %s) does not read a plan with its assignment, which "
                       "this host (ringpipe %s) sends: update ringpipe on the board",
                       name, board->software, RP_VERSION);
    }
    if (!(board->features & RP_WIRE_FEATURE_NEIGHBOURS)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s (ringpipe %s) can connect to the next board only, but this host "
                       "(ringpipe %s) gives it a link to each neighbour of the plan: update "
                       "ringpipe on the board",
                       name, board->software, RP_VERSION);
    }
    const rp_board_state *dialling = find_dialling(ring);
    if (dialling && !(board->features & RP_WIRE_FEATURE_DIALS)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s (ringpipe %s) does not support boards that dial, such as %s: "
                       "update ringpipe on the board",
                       name, board->software, dialling->name);
    }
    return RP_OK;
}

rp_err rp_ring_take_hello(rp_ring *ring, uint32_t board, const rp_Hello *hello, bool *is_new) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count && !state->hello);
    if (!rp_board_is_clock_time(hello->clock_ns)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s: its clock is at %" PRId64 " ns, which is out of range",
                       state->name, hello->clock_ns);
    }
    ring->features &= hello->features;
    state->hello = true;
    state->silence.has_ended = false;
    state->silence.why = RP_SILENT_UNKNOWN;
    state->silence.is_reported = false;
    *is_new = !state->device;
    if (!*is_new) {
        return RP_OK; /* greeted again: unchanged */
    }
    (void)snprintf(state->device_text, sizeof state->device_text, "%s", hello->device);
    state->device = state->device_text;
    (void)snprintf(state->hardware.kind, sizeof state->hardware.kind, "%s", hello->kind);
    state->hardware.memory_bytes = hello->memory_bytes;
    state->hardware.device_memory = hello->device_memory <= RP_DEVICE_MEMORY_SHARED
                                        ? (rp_device_memory)hello->device_memory
                                        : RP_DEVICE_MEMORY_UNKNOWN;
    (void)snprintf(state->hardware.machine, sizeof state->hardware.machine, "%s", hello->machine);
    state->clock_offset_ns = ring->now_ns - hello->clock_ns;
    state->hardware.gemm = hello->gemm == RP_GEMM_PANEL ? RP_GEMM_PANEL : RP_GEMM_CLBLAST;
    return RP_OK;
}

/* ---- building, ready ------------------------------------------------------------------------- */

void rp_ring_take_building(rp_ring *ring, uint32_t board, const rp_Building *said) {
    rp_board_building *now = &ring->board[board].build.now;
    now->kernels = said->kernels < KERNELS_MAX ? said->kernels : KERNELS_MAX;
    now->ready = said->ready < now->kernels ? said->ready : now->kernels;
    now->built = said->built < now->ready ? said->built : now->ready;
    now->build_ns = (int64_t)bound_value((uint64_t)said->build_ns, (uint64_t)RP_RING_BUILD_NS);
    now->read_ns = (int64_t)bound_value((uint64_t)said->read_ns, (uint64_t)RP_RING_BUILD_NS);
    now->layers = ring->run->model->layer_count;
    now->layers_timed = said->layers_timed < now->layers ? said->layers_timed : now->layers;
    now->layers = said->layers ? now->layers : 0;
    RP_ASSERT(now->built <= now->ready && now->ready <= now->kernels);
}

void rp_ring_end_building(rp_ring *ring, uint32_t board) {
    rp_board_build *build = &ring->board[board].build;
    rp_board_building *all = &build->before;
    RP_ASSERT(board < ring->count);
    all->kernels += build->now.kernels;
    all->ready += build->now.ready;
    all->built += build->now.built;
    all->build_ns += build->now.build_ns;
    all->read_ns += build->now.read_ns;
    build->now = (rp_board_building){0};
}

void rp_ring_take_built(rp_ring *ring, uint32_t board, const rp_board_building *built) {
    RP_ASSERT(board < ring->count);
    ring->board[board].build.before = *built;
    ring->board[board].build.now = (rp_board_building){0};
}

void rp_ring_expect_ready(rp_ring *ring, uint32_t board, bool is_expected) {
    RP_ASSERT(board < ring->count);
    ring->board[board].ready = !is_expected;
}

static void take_memory(rp_board_usage *memory, const rp_Ready *ready) {
    const uint32_t before = memory->weight_copies_max;
    const uint32_t now = ready->weight_copies;
    *memory = (rp_board_usage){.device_bytes = bound_value(ready->device_bytes, BYTES_MAX),
                               .weight_bytes = bound_value(ready->weight_bytes, BYTES_MAX),
                               .slots = ready->slots,
                               .resident_bytes = bound_value(ready->resident_bytes, BYTES_MAX),
                               .copy_bytes = bound_value(ready->copy_bytes, BYTES_MAX),
                               .parcel_bytes = bound_value(ready->parcel_bytes, BYTES_MAX),
                               .stash_bytes = bound_value(ready->stash_bytes, BYTES_MAX),
                               .limit_bytes = bound_value(ready->limit_bytes, BYTES_MAX),
                               .own_memory = ready->own_memory,
                               .weight_copies = now,
                               .weight_copies_max = now > before ? now : before,
                               .probe_copies = ready->probe_copies};
}

/* Checks that READY answers an order to this board, and that its ports fit the plan. */
static rp_err check_ready(const rp_board_state *state, const rp_Ready *ready, const rp_plan *plan,
                          uint32_t hops) {
    if (!state->machine.asked || state->ready) {
        return rp_fail(RP_ERR_PEER, "board %s sent READY without being asked", state->name);
    }
    if (plan && ready->hop_port_count != hops) {
        return rp_fail(RP_ERR_PEER, "board %s listens for %u neighbours, but the plan has %u",
                       state->name, (uint32_t)ready->hop_port_count, hops);
    }
    return RP_OK;
}

rp_err rp_ring_take_ready(rp_ring *ring, uint32_t board, const rp_Ready *ready,
                          const rp_plan *plan) {
    rp_board_state *state = &ring->board[board];
    const int64_t build_ns = ready->build_ns > 0 ? ready->build_ns : 0;
    uint32_t dials[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t hops = plan ? rp_ring_dialled_by(plan, board, dials) : 0;
    rp_err err;
    RP_ASSERT(board < ring->count && hops <= RP_PLAN_NEIGHBOURS_MAX);
    RP_TRY(check_ready(state, ready, plan, hops));
    rp_ring_end_building(ring, board);
    state->ready = state->build.has_built = true;
    state->build.prepare_ns = build_ns < RP_RING_BUILD_NS ? build_ns : RP_RING_BUILD_NS;
    state->ports.feed = ready->feed_port;
    memcpy(state->ports.hop, ready->hop_port, hops * sizeof *state->ports.hop);
    take_memory(&state->memory, ready);
fail:
    return err;
}

/* ---- the end of a segment -------------------------------------------------------------------- */

static uint32_t larger_of(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The rate is that of the last segment; the delays are those of the last assignment that has
 * any. */
static void add_use(rp_board_link *link, const rp_LinkUse *use) {
    const double times[] = {use->rate, use->delay_s, use->delay_95_s};
    link->peer = use->peer;
    link->bytes += bound_value(use->bytes, COUNT_MAX);
    link->busy_s += rp_board_are_times(&use->busy_s, 1) ? use->busy_s : 0;
    link->resent += bound_value(use->resent, COUNT_MAX);
    link->resets += bound_value(use->resets, COUNT_MAX);
    if (rp_board_are_times(times, 3) && use->rate > 0) {
        link->rate = use->rate;
    }
    if (rp_board_are_times(times, 3) && use->delay_s > 0) {
        link->delay_s[0] = use->delay_s;
        link->delay_s[1] = use->delay_95_s;
    }
}

/* Adds to the use of the same link in an earlier assignment. There is room for all links of a
 * plan. */
static void take_link(rp_board_facts *facts, const rp_LinkUse *use) {
    uint32_t i = 0;
    while (i < facts->link_count && facts->link[i].peer != use->peer) {
        i++;
    }
    if (i == RP_PLAN_NEIGHBOURS_MAX) {
        return;
    }
    facts->link_count += i == facts->link_count;
    rp_board_link *link = &facts->link[i];
    add_use(link, use);
}

/* A control link, and its counts, outlive assignments. */
static void take_host_links(rp_board_state *board, const rp_Finished *report) {
    rp_board_facts *facts = &board->facts;
    memset(facts->control, 0, sizeof facts->control);
    if (report->has_control) {
        add_use(&facts->control[0], &report->control);
    }
    if (report->has_feed) {
        add_use(&facts->feed[0], &report->feed);
    }
    if (board->control) {
        const rp_LinkUse use = rp_link_use_of(board->control, 0);
        add_use(&facts->control[1], &use);
    }
    if (board->feed) {
        const rp_LinkUse use = rp_link_use_of(board->feed, 0);
        add_use(&facts->feed[1], &use);
    }
}

void rp_ring_take_facts(rp_ring *ring, uint32_t place, const rp_Finished *report) {
    rp_board_state *board = &ring->board[place];
    const rp_board_facts *before = &board->facts_before;
    rp_board_facts *facts = &board->facts;
    const double traced_j = facts->energy_j;
    RP_ASSERT(place < ring->count);
    *facts = *before;
    facts->energy_j =
        fmax(traced_j, before->energy_j + bound_real(report->energy_j, 0, ENERGY_MAX_J));
    facts->busy_ns += (int64_t)bound_value((uint64_t)report->busy_ns, COUNT_MAX);
    facts->microbatches += bound_value(report->microbatches, COUNT_MAX);
    facts->flash_bytes += bound_value(report->flash_bytes, BYTES_MAX);
    facts->in_flight_max = larger_of(before->in_flight_max, report->in_flight_max);
    facts->staleness_max = larger_of(before->staleness_max, report->staleness_max);
    const uint64_t device_bytes = bound_value(report->device_bytes_max, BYTES_MAX);
    if (device_bytes > before->device_bytes_max) {
        facts->device_bytes_max = device_bytes;
    }
    for (uint32_t i = 0; i < report->link_count; i++) {
        if (report->link[i].peer < ring->count) {
            take_link(facts, &report->link[i]);
        }
    }
    take_host_links(board, report);
}

void rp_ring_take_sensors(rp_ring *ring, uint32_t board, const rp_Trace *report) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count);
    state->sensors = (rp_board_sensors){.heat_c = bound_real((double)report->heat_c, -60, 200),
                                        .power_w = bound_real((double)report->power_w, 0, 1e5),
                                        .told_ns = ring->now_ns};
    state->facts.energy_j =
        state->facts_before.energy_j + bound_real(report->energy_j, 0, ENERGY_MAX_J);
}

uint32_t rp_ring_energy_board(const rp_ring *ring, uint32_t board) {
    const char *machine = ring->board[board].hardware.machine;
    RP_ASSERT(board < ring->count);
    for (uint32_t k = 0; machine[0] && k < board; k++) {
        if (ring->board[k].facts.energy_j > 0 &&
            strcmp(ring->board[k].hardware.machine, machine) == 0) {
            return k;
        }
    }
    return board;
}

void rp_ring_rewind_facts(rp_ring *ring, uint32_t board, uint64_t microbatches) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count);
    state->facts.microbatches = microbatches;
    state->facts_before = state->facts;
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* A board with a single stage need not name it. */
static uint32_t stage_of(const rp_plan_node *node, const rp_plan *plan, uint32_t said) {
    return node->hold_count == 1 ? plan->hold[node->hold_first].stage : said;
}

rp_err rp_ring_unpack_op(const rp_ring *ring, uint32_t board, const rp_plan *plan,
                         const uint8_t *bytes, rp_sink_op *out) {
    const rp_trace_record record = rp_trace_unpack(bytes);
    const int64_t offset_ns = ring->board[board].clock_offset_ns;
    RP_ASSERT(board < plan->node_count);
    if (record.kind >= RP_OP_KINDS || record.end_ns < record.start_ns ||
        !rp_board_is_clock_time(record.start_ns) || !rp_board_is_clock_time(record.end_ns)) {
        return rp_fail(RP_ERR_PEER, "a trace record of stage %u is out of range", board);
    }
    *out = (rp_sink_op){.stage = board,
                        .part = stage_of(&plan->node[board], plan, record.stage),
                        .kind = (rp_op_kind)record.kind,
                        .evaluation = record.evaluation,
                        .step = record.step,
                        .samples = {record.first, record.count},
                        .start_ns = record.start_ns + offset_ns,
                        .end_ns = record.end_ns + offset_ns};
    return RP_OK;
}
