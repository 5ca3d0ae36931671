/* Messages of the boards: which kind is taken in which state, and what bring-up is told. Every kind
 * that is not in the table is refused, with a text. */
#include "control/controller_own.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"

/* Far beyond any board: a number from outside is not believed blindly. */
static const uint64_t BYTES_MAX = UINT64_C(1) << 44;
static const uint32_t KERNELS_MAX = 1 << 20;
static const uint64_t COUNT_MAX = UINT64_C(1) << 52; /* of a segment: sums of them fit, too */

/* A number that no board can have counts as not said. */
static uint64_t bounded(uint64_t said, uint64_t most) {
    return said <= most ? said : 0;
}

/* ---- hello, profile, ready ------------------------------------------------------------------- */

static const rp_board_state *find_dialling(const rp_ring *ring) {
    uint32_t k = 0;
    while (k < ring->count && !ring->board[k].dials) {
        k++;
    }
    return k < ring->count ? &ring->board[k] : NULL;
}

/* A board of another build: which end is to be updated? */
static rp_err check_software(rp_ring *ring, const char *name, const rp_Hello *board) {
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
                       "%s) and the other boards %u to %u: update ringpipe on %s",
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
                       "board %s (ringpipe %s) connects to the next board only, this host "
                       "(ringpipe %s) gives it a link to each neighbour of the plan: update "
                       "ringpipe on the board",
                       name, board->software, RP_VERSION);
    }
    const rp_board_state *dialling = find_dialling(ring);
    if (dialling && !(board->features & RP_WIRE_FEATURE_DIALS)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s (ringpipe %s) does not know of boards that dial, as %s does: "
                       "update ringpipe on the board",
                       name, board->software, dialling->name);
    }
    return RP_OK;
}

/* A board that does not normalise gets f32, where nobody has asked for bytes. */
static void choose_inputs(rp_controller *c, const char *name, const rp_Hello *board) {
    const uint64_t needed = RP_WIRE_FEATURE_CODECS | RP_WIRE_FEATURE_UINT8;
    if (c->run.inputs_auto && !c->setup.given && c->run.input_codec == RP_CODEC_UINT8 &&
        (board->features & needed) != needed) {
        c->setup.now.input_codec = RP_CODEC_F32;
        rp_setup_refresh(c);
        rp_log_warn(
            "board %s (ringpipe %s) knows no inputs as uint8: all boards get f32, four times "
            "the bytes",
            name, board->software);
    }
}

/* An end that has no codecs would take what is encoded for other bytes. */
static rp_err check_codecs(const rp_controller *c, const char *name, const rp_Hello *board) {
    const bool encodes = c->setup.given ? rp_plan_has_codec(c->setup.given)
                                        : c->run.codec_auto || c->run.input_codec != RP_CODEC_F32 ||
                                              rp_codecs_any(c->run.codec, c->run.stages);
    const rp_codec inputs =
        c->setup.given ? rp_plan_input_codec(c->setup.given) : c->run.input_codec;
    const bool bytes = inputs == RP_CODEC_UINT8;
    const uint64_t needed =
        (encodes ? RP_WIRE_FEATURE_CODECS : 0) | (bytes ? RP_WIRE_FEATURE_UINT8 : 0);
    return (board->features & needed) == needed
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) knows no codec%s, and links asks for one: "
                         "update ringpipe on the board",
                         name, board->software, bytes ? " uint8" : "");
}

/* Only a board that records can be compared. */
static rp_err check_records(const rp_controller *c, const char *name, const rp_Hello *board) {
    const uint64_t needed =
        RP_WIRE_FEATURE_RECORDS |
        (c->run.method.kind->sizes ? RP_WIRE_FEATURE_SIZE_RECORDS : UINT64_C(0));
    return c->run.verify == 0 || (board->features & needed) == needed
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) computes no microbatch again, and ring.verify "
                         "asks for it: update ringpipe on the board",
                         name, board->software);
}

/* Another device rounds in another way, and would be taken for one that is wrong. */
static rp_err check_alike(const rp_controller *c, const rp_board_state *board) {
    for (uint32_t k = 0; c->run.verify > 0 && k < c->ring.count; k++) {
        const rp_board_state *other = &c->ring.board[k];
        if (other->device && strcmp(other->device, board->device) != 0) {
            return rp_fail(RP_ERR_USAGE,
                           "ring.verify compares the bits of equal devices: board %s has '%s', "
                           "board %s has '%s'",
                           other->name, other->device, board->name, board->device);
        }
    }
    return RP_OK;
}

/* Who knows no copies can not keep one for its neighbour. */
static rp_err check_copies(const rp_controller *c, const char *name, const rp_Hello *board) {
    return c->run.copy_steps == 0 || (board->features & RP_WIRE_FEATURE_COPIES)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) knows no copies, and ring.copy_steps asks for "
                         "them: update ringpipe on the board",
                         name, board->software);
}

static rp_err on_hello(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Hello *hello = &message->frame.body.hello;
    rp_ring *ring = &c->ring;
    rp_board_state *state = &ring->board[board];
    rp_err err;
    if (c->machine.state == RP_CONTROL_ADOPT) {
        return rp_keep_on_adopted_hello(c->keep, board, message);
    }
    if (state->hello) {
        return RP_OK; /* it answers an earlier greeting, too */
    }
    RP_TRY(check_software(ring, state->name, hello));
    choose_inputs(c, state->name, hello);
    RP_TRY(check_codecs(c, state->name, hello));
    RP_TRY(check_records(c, state->name, hello));
    RP_TRY(check_copies(c, state->name, hello));
    if (!rp_control_is_clock_time(hello->clock_ns)) {
        return rp_fail(RP_ERR_PEER, "board %s: its clock is at %" PRId64 " ns, which no clock is",
                       state->name, hello->clock_ns);
    }
    ring->features &= hello->features;
    state->hello = true;
    state->has_ended = false;
    state->refuses = state->broken_off = state->unanswered = state->refusal_said = false;
    if (state->device) {
        return RP_OK; /* greeted again: it is what it was */
    }
    (void)snprintf(state->device_text, sizeof state->device_text, "%s", hello->device);
    state->device = state->device_text;
    (void)snprintf(state->kind, sizeof state->kind, "%s", hello->kind);
    state->memory_bytes = hello->memory_bytes;
    state->device_memory = hello->device_memory <= RP_DEVICE_MEMORY_SHARED
                               ? (rp_device_memory)hello->device_memory
                               : RP_DEVICE_MEMORY_UNKNOWN;
    state->clock_offset_ns = c->ring.now_ns - hello->clock_ns;
    state->gemm = hello->gemm == RP_GEMM_PANEL ? RP_GEMM_PANEL : RP_GEMM_CLBLAST;
    RP_TRY(check_alike(c, state));
fail:
    return err;
}

bool rp_control_are_times(const double *seconds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(seconds[i] >= 0 && seconds[i] <= DBL_MAX)) {
            return false;
        }
    }
    return true;
}

/* Numbers for people: one that can not be is cut down, and ends nothing. */
static rp_err on_building(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Building *said = &message->frame.body.building;
    rp_board_building *now = &c->ring.board[board].building;
    now->kernels = said->kernels < KERNELS_MAX ? said->kernels : KERNELS_MAX;
    now->ready = said->ready < now->kernels ? said->ready : now->kernels;
    now->built = said->built < now->ready ? said->built : now->ready;
    now->build_ns = (int64_t)bounded((uint64_t)said->build_ns, (uint64_t)RP_RING_BUILD_NS);
    now->read_ns = (int64_t)bounded((uint64_t)said->read_ns, (uint64_t)RP_RING_BUILD_NS);
    now->layers = c->run.model->layer_count;
    now->layers_timed = said->layers_timed < now->layers ? said->layers_timed : now->layers;
    now->layers = said->layers ? now->layers : 0;
    return RP_OK;
}

/* What the board has built is its own; the next thing to build is counted from 0. */
static void end_building(rp_board_state *board) {
    rp_board_building *all = &board->built;
    all->kernels += board->building.kernels;
    all->ready += board->building.ready;
    all->built += board->building.built;
    all->build_ns += board->building.build_ns;
    all->read_ns += board->building.read_ns;
    board->building = (rp_board_building){0};
}

static rp_err on_profile(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_board_state *state = &c->ring.board[board];
    rp_err err = RP_OK;
    if (!state->asked || state->profiled) {
        return rp_fail(RP_ERR_PEER, "board %s sent a profile without being asked", state->name);
    }
    rp_measure_answer answer = {0};
    if (!rp_measure_is_building(c->measure)) { /* else it has measured nothing */
        RP_TRY(rp_measure_take(c->measure, board, &message->frame.body.profile_done,
                               &message->part[0], &answer));
    }
    if (answer.again) {
        rp_profile_say(c, answer.note);
    }
    state->profiled = !answer.again;
    state->asked = !answer.again;
    end_building(state);
fail:
    return err;
}

static rp_err on_trial(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_measure_take_trial(c->measure, board, &message->frame.body.trial_done);
    if (c->machine.state == RP_CONTROL_PROFILE) { /* else nothing waits for it any more */
        rp_ring_note_progress(&c->ring);
    }
    return RP_OK;
}

static rp_err on_ready(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Ready *ready = &message->frame.body.ready;
    rp_board_state *state = &c->ring.board[board];
    const int64_t build_ns = ready->build_ns > 0 ? ready->build_ns : 0;
    if (!state->asked || state->ready) {
        return rp_fail(RP_ERR_PEER, "board %s is ready for a stage that it does not have",
                       state->name);
    }
    uint32_t dials[RP_PLAN_NEIGHBOURS_MAX];
    const bool stays = c->options.purpose != RP_PURPOSE_WARM; /* else it waits for nobody */
    const uint32_t expected = stays ? rp_controller_dialled_by(c, board, dials) : 0;
    if (stays && ready->hop_port_count != expected) {
        return rp_fail(RP_ERR_PEER, "board %s waits for %u other boards, the plan says %u",
                       state->name, (uint32_t)ready->hop_port_count, expected);
    }
    state->ready = state->has_built = true;
    end_building(state);
    memcpy(state->hop_port, ready->hop_port, expected * sizeof *state->hop_port);
    state->feed_port = ready->feed_port;
    state->device_bytes = bounded(ready->device_bytes, BYTES_MAX);
    state->weight_bytes = bounded(ready->weight_bytes, BYTES_MAX);
    state->prepare_ns = build_ns < RP_RING_BUILD_NS ? build_ns : RP_RING_BUILD_NS;
    state->copy_bytes = bounded(ready->copy_bytes, BYTES_MAX);
    state->parcel_bytes = bounded(ready->parcel_bytes, BYTES_MAX);
    state->stash_bytes = bounded(ready->stash_bytes, BYTES_MAX);
    state->limit_bytes = bounded(ready->limit_bytes, BYTES_MAX);
    state->own_memory = ready->own_memory;
    state->slots = ready->slots;
    state->weight_copies = ready->weight_copies;
    if (state->weight_copies > state->weight_copies_max) {
        state->weight_copies_max = state->weight_copies;
    }
    state->resident_bytes = bounded(ready->resident_bytes, BYTES_MAX);
    state->probe_copies = ready->probe_copies;
    return RP_OK;
}

/* ---- the end of a segment, faults ------------------------------------------------------------ */

static uint32_t larger_of(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The rate is that of the last segment, the delays those of the last assignment, that knows them.
 */
static void add_use(rp_board_link *link, const rp_LinkUse *use) {
    const double times[] = {use->rate, use->delay_s, use->delay_95_s};
    link->peer = use->peer;
    link->bytes += bounded(use->bytes, COUNT_MAX);
    link->busy_s += rp_control_are_times(&use->busy_s, 1) ? use->busy_s : 0;
    link->resent += bounded(use->resent, COUNT_MAX);
    link->resets += bounded(use->resets, COUNT_MAX);
    if (rp_control_are_times(times, 3) && use->rate > 0) {
        link->rate = use->rate;
    }
    if (rp_control_are_times(times, 3) && use->delay_s > 0) {
        link->delay_s[0] = use->delay_s;
        link->delay_s[1] = use->delay_95_s;
    }
}

/* Adds to what an earlier assignment had on the same link. More links than there is room for are
 * none that a plan has. */
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

/* A control link outlives assignments, and its counts with it. */
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

/* Of some facts the most of all assignments counts, the others add up. */
static void take_facts(rp_board_state *board, const rp_Finished *report, uint32_t boards) {
    const rp_board_facts *before = &board->facts_before;
    rp_board_facts *facts = &board->facts;
    *facts = *before;
    facts->busy_ns += (int64_t)bounded((uint64_t)report->busy_ns, COUNT_MAX);
    facts->microbatches += bounded(report->microbatches, COUNT_MAX);
    facts->flash_bytes += bounded(report->flash_bytes, BYTES_MAX);
    facts->in_flight_max = larger_of(before->in_flight_max, report->in_flight_max);
    facts->staleness_max = larger_of(before->staleness_max, report->staleness_max);
    const uint64_t device_bytes = bounded(report->device_bytes_max, BYTES_MAX);
    if (device_bytes > before->device_bytes_max) {
        facts->device_bytes_max = device_bytes;
    }
    for (uint32_t i = 0; i < report->link_count; i++) {
        if (report->link[i].peer < boards) {
            take_link(facts, &report->link[i]);
        }
    }
    take_host_links(board, report);
}

static rp_err on_finished(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Finished *report = &message->frame.body.finished;
    rp_board_state *state = &c->ring.board[board];
    const size_t want = rp_keep_applied_count(c->setup.plan, board) * sizeof(uint64_t);
    if (state->finished) {
        return rp_fail(RP_ERR_PEER, "board %s has finished its segment twice", state->name);
    }
    if (message->part[0].bytes != want) {
        return rp_fail(RP_ERR_PEER, "board %s did not report the updates that it has applied",
                       state->name);
    }
    state->finished = true;
    memcpy(state->applied, message->part[0].data, want);
    take_facts(state, report, c->ring.count);
    const rp_err lost = rp_losses_take(c->measure, c->setup.plan, board, report);
    if (lost != RP_OK) {
        return lost;
    }
    if (report->in_flight_bytes > BYTES_MAX) {
        return rp_fail(RP_ERR_PEER,
                       "board %s reports %" PRIu64 " bytes of in-flight state, at most %" PRIu64
                       " are possible",
                       state->name, report->in_flight_bytes, BYTES_MAX);
    }
    state->in_flight_bytes = report->in_flight_bytes;
    state->ledger = (rp_run_ledger){report->ledger, report->ledger_samples};
    return RP_OK;
}

static rp_err on_fault(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Fault *fault = &message->frame.body.fault;
    const bool known = fault->err > 0 && fault->err < RP_ERR_COUNT;
    c->machine.reported =
        fault->fault_class; /* it knows best; the text and the error say the rest */
    return rp_fail(known ? (rp_err)fault->err : RP_ERR_FAULT, "board %s: %s",
                   c->ring.board[board].name, fault->text);
}

/* What a board said to the host that it has lost. */
static rp_err ignore(rp_controller *c, uint32_t board, const rp_message *message) {
    (void)c;
    (void)board;
    (void)message;
    return RP_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define IN(id) (UINT32_C(1) << RP_CONTROL_##id)
#define ANYWHERE ((UINT32_C(1) << RP_CONTROL_STATES) - 1)
#define TRAINING (IN(TRAIN) | IN(DRAIN))
#define SENDING (IN(SAVE) | IN(RESCUE))
#define PASSES (IN(EVALUATE) | IN(STATISTICS))

static const struct {
    rp_kind kind;
    uint32_t states;
    rp_control_handler handle;
} accepted[] = {
    {RP_KIND_HELLO, ANYWHERE, on_hello},
    {RP_KIND_FAULT, ANYWHERE, on_fault},
    {RP_KIND_BUILDING, IN(PROFILE) | IN(ASSIGN) | IN(VERIFY), on_building},
    {RP_KIND_PROFILE_DONE, IN(PROFILE), on_profile},
    {RP_KIND_TRIAL_DONE, ANYWHERE, on_trial},
    {RP_KIND_TRIAL_BYTES, ANYWHERE, ignore}, /* the board times them to their acks */
    {RP_KIND_READY, IN(ASSIGN), on_ready},
    {RP_KIND_STEP_DONE, TRAINING, rp_segment_on_step_done},
    {RP_KIND_NORMS, TRAINING, rp_segment_on_report},
    {RP_KIND_PREDICTION_ERROR, TRAINING, rp_segment_on_report},
    {RP_KIND_SKIPPED, TRAINING, rp_segment_on_report},
    {RP_KIND_EVALUATE_DONE, IN(EVALUATE), rp_segment_on_report},
    {RP_KIND_WAITING, TRAINING | PASSES, rp_segment_on_report},
    {RP_KIND_TRACE, TRAINING | PASSES, rp_segment_on_trace},
    {RP_KIND_FINISHED, TRAINING | PASSES, on_finished},
    {RP_KIND_COPIED, ANYWHERE, rp_copy_on_copied},
    {RP_KIND_TENSOR, SENDING, rp_save_on_tensor},
    {RP_KIND_IN_FLIGHT, SENDING, rp_save_on_in_flight},
    {RP_KIND_TENSORS_END, SENDING, rp_save_on_end},
    {RP_KIND_RECORD, IN(VERIFY), rp_segment_on_report},
    {RP_KIND_RECOMPUTED, IN(VERIFY), rp_segment_on_report},
    {RP_KIND_HELD, IN(ADOPT), rp_adopt_on_held},
    {RP_KIND_STEP_DONE, IN(ADOPT), ignore},
    {RP_KIND_NORMS, IN(ADOPT), ignore},
    {RP_KIND_PREDICTION_ERROR, IN(ADOPT), ignore},
    {RP_KIND_SKIPPED, IN(ADOPT), ignore},
    {RP_KIND_EVALUATE_DONE, IN(ADOPT), ignore},
    {RP_KIND_WAITING, IN(ADOPT), ignore},
    {RP_KIND_TRACE, IN(ADOPT), ignore},
    {RP_KIND_FINISHED, IN(ADOPT), ignore},
};

rp_control_handler rp_control_handler_of(rp_kind kind, rp_control_state_id state) {
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        if (accepted[i].kind == kind && accepted[i].states & UINT32_C(1) << state) {
            return accepted[i].handle;
        }
    }
    return NULL;
}
