/* The ring comes up: boards start, are greeted, measure the layers, and get their stages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"
#include "control/identity.h"

/* Boards that build at a time: the texts of all others are not held in their links meanwhile. */
enum { FEED_WINDOW = 6, BUILDING_MAX = RP_CONTROL_BOARDS_MAX };

static const char MEASURING[] = "measuring every layer on the first board";
static const char BUILDING[] = "building kernels and planning memory on every board";

/* ---- start ----------------------------------------------------------------------------------- */

rp_err rp_start_find_keys(const rp_controller *c, rp_keypair *out) {
    if (c->env.keys) {
        *out = *c->env.keys;
        return RP_OK;
    }
    return c->run.local ? rp_keys_make(out)
                        : rp_runfile_read_keys(&c->run, c->options.keys_folder, out);
}

rp_err rp_start_enter(rp_controller *c) {
    const size_t params = c->run.model->param_count + (size_t)1;
    const rp_spawn_order order = {.count = c->run.boards,
                                  .board = c->run.board,
                                  .threads = c->run.threads,
                                  .log_folder = c->folder,
                                  .host_public = c->ring.keys.public_text};
    rp_err err;
    rp_record_phase(c->record, c->run.local ? "starting the agents" : "reaching the boards");
    RP_TRY(rp_ring_open(&c->arena, &c->run, c->env.clock, &c->ring));
    RP_TRY(rp_identity_begin_term(c->folder, c->env.run_id, &c->ring.identity));
    RP_TRY(rp_start_find_keys(c, &c->ring.keys));
    RP_TRY(RP_ARENA_NEW(&c->arena, 2 * (size_t)c->run.model->layer_count, &c->layer_seconds));
    RP_TRY(RP_ARENA_NEW(&c->arena, params, &c->sumsq));
    RP_TRY(rp_config_text(&c->arena, c->run.model_root, &c->model_text));
    RP_TRY(rp_ring_check_text("the model", c->model_text));
    RP_TRY(RP_ARENA_NEW(&c->arena, params, &c->gain));
    for (uint32_t p = 0; p < c->run.model->param_count; p++) {
        c->has_statistics |= c->run.model->param[p].role == RP_PARAM_STATE;
    }
    if (!c->run.local) {
        return RP_OK;
    }
    if (!c->env.spawner.kind) {
        return rp_fail(RP_ERR_USAGE,
                       "ring: this program can not start boards on this machine; give a roster");
    }
    c->spawned = true;
    RP_TRY(c->env.spawner.kind->start(c->env.spawner.self, &order));
fail:
    return err;
}

rp_err rp_start_step(rp_controller *c) {
    const rp_spawner *spawner = &c->env.spawner;
    rp_err err = RP_OK;
    c->boards_up = !c->spawned;
    if (c->spawned) {
        RP_TRY(spawner->kind->step(spawner->self, &c->boards_up));
    }
    if (!c->boards_up) {
        return RP_OK;
    }
    for (uint32_t k = 0; c->spawned && k < c->ring.count; k++) {
        const char *endpoint;
        const char *public_text;
        spawner->kind->address(spawner->self, k, &endpoint, &public_text);
        rp_ring_set_address(&c->ring, k, endpoint, public_text);
    }
    RP_TRY(rp_ring_connect(&c->ring, c->env.links));
    rp_controller_enter(c, RP_CONTROL_HELLO);
fail:
    return err;
}

rp_err rp_start_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT, "the agents did not come up within %" PRId64 " s",
                   c->timeout_ns / RP_NS_PER_S);
}

/* ---- hello ----------------------------------------------------------------------------------- */

/* A HELLO ends what is under way on a board, and its answer says that it has ended. */
rp_err rp_hello_enter(rp_controller *c) {
    const rp_Frame greeting = {.which_body = RP_KIND_HELLO,
                               .body.hello = {.name = "host",
                                              .software = RP_VERSION,
                                              .clock_ns = c->now_ns,
                                              .wire_min = RP_WIRE_MIN,
                                              .wire_max = RP_WIRE_MAX,
                                              .features = RP_WIRE_FEATURES}};
    c->ring.wire = (rp_wire_range){RP_WIRE_MIN, RP_WIRE_MAX};
    c->ring.features = RP_WIRE_FEATURES;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].hello = false;
    }
    return rp_ring_post_all(&c->ring, &greeting);
}

rp_err rp_hello_step(rp_controller *c) {
    if (!rp_controller_all_done(c)) {
        return RP_OK;
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        rp_link_set_wire(c->ring.board[k].control, c->ring.wire.max);
    }
    rp_controller_enter(c, c->reassigning                   ? RP_CONTROL_ASSIGN
                           : rp_controller_needs_profile(c) ? RP_CONTROL_PROFILE
                                                            : RP_CONTROL_PLAN);
    return RP_OK;
}

/* ---- texts of a stage ------------------------------------------------------------------------ */

/* AGAIN when the board's link has no room. `stage`: of the cut, for the job's text. */
static rp_err offer_texts(rp_controller *c, uint32_t board, rp_Frame *frame, const rp_cut *cut,
                          uint32_t stage) {
    rp_arena arena;
    char *job;
    rp_err err;
    rp_arena_init(&arena, "assignment", 0);
    const bool assigns = rp_frame_kind(frame) == RP_KIND_ASSIGN;
    uint32_t dials[RP_PLAN_NEIGHBOURS_MAX];
    const char *keys[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = assigns ? rp_controller_dialled_by(c, board, dials) : 0;
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = c->ring.board[dials[i]].public_text;
    }
    const rp_runfile_peers peers = {c->ring.keys.public_text, keys, count};
    RP_TRY(rp_runfile_assignment(&arena, &c->run, cut, stage, &peers, &job));
    const rp_part parts[3] = {rp_part_of_text(job), rp_part_of_text(c->model_text),
                              rp_part_of_text(assigns ? c->plan_text : "")};
    RP_TRY(rp_ring_offer(&c->ring, board, frame, parts, assigns ? 3 : 2));
    c->ring.board[board].asked = true;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- profile --------------------------------------------------------------------------------- */

rp_err rp_profile_enter(rp_controller *c) {
    rp_record_phase(c->record, MEASURING);
    c->ring.watching = true; /* boards answer while they measure; one that begins anew never will */
    rp_controller_forget_asked(c);
    return RP_OK;
}

rp_err rp_profile_step(rp_controller *c) {
    const rp_cut whole = {.stage_count = 1,
                          .first = (const uint32_t[]){0, c->run.model->layer_count}};
    const rp_board_state *board = &c->ring.board[0]; /* local boards are alike */
    rp_err err = RP_OK;
    if (!board->asked) {
        rp_Frame frame = {.which_body = RP_KIND_PROFILE};
        err = offer_texts(c, 0, &frame, &whole, 0);
        return err == RP_ERR_AGAIN ? RP_OK : err;
    }
    if (!board->profiled) {
        rp_record_part(c->record, &(rp_sink_part){.text = MEASURING,
                                                  .done = board->building.layers_timed,
                                                  .total = board->building.layers,
                                                  .unit = "layers"});
        return RP_OK;
    }
    c->has_profile = true;
    c->ring.watching = false; /* `plan` waits for answers to pings itself */
    if (c->options.purpose != RP_PURPOSE_PROFILE) {
        rp_controller_enter(c, RP_CONTROL_PLAN);
        return RP_OK;
    }
    RP_TRY(rp_controller_show(c, true));
    rp_controller_enter(c, RP_CONTROL_CLOSE);
fail:
    return err;
}

rp_err rp_profile_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no profile within %" PRId64 " s",
                   c->ring.board[0].name, c->ring.board[0].endpoint, c->timeout_ns / RP_NS_PER_S);
}

/* ---- assign ---------------------------------------------------------------------------------- */

rp_err rp_controller_assign_again(rp_controller *c) {
    rp_err err;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        rp_board_state *board = &c->ring.board[k];
        rp_link_close(&board->feed);
        memset(board->applied, 0, sizeof board->applied);
        board->facts_before = board->facts;
    }
    RP_TRY(rp_identity_begin_term(c->folder, c->env.run_id, &c->ring.identity));
    c->reassigning = true;
    rp_controller_enter(c, RP_CONTROL_HELLO);
fail:
    return err;
}

/* Where kernels are there already, a board that needs much longer than before is a fault. One that
 * has not been ready yet in this run may have built none. */
static int64_t longest_build_ns(const rp_controller *c) {
    int64_t longest_ns = RP_RING_HELLO_NS;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        const int64_t own_ns =
            board->has_built ? board->prepare_ns + RP_RING_HELLO_NS : RP_RING_BUILD_NS;
        longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
    }
    return longest_ns;
}

rp_err rp_assign_enter(rp_controller *c) {
    if (c->reassigning) {
        c->timeout_ns = longest_build_ns(c);
    } else {
        rp_record_phase(c->record, BUILDING);
    }
    c->ring.watching = true; /* boards answer while they build; one that begins anew never will */
    rp_controller_forget_asked(c);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].ready = false;
    }
    rp_transfers_forget(c->transfers);
    return rp_controller_make_plan(c);
}

static rp_err open_feed_link(rp_controller *c, uint32_t k) {
    rp_board_state *board = &c->ring.board[k];
    const rp_runfile *run = &c->run;
    char endpoint[160];
    rp_ring_endpoint_at(board, board->feed_port, endpoint, sizeof endpoint);
    const uint32_t micro = c->plan->stage[0].micro_forward;
    const size_t input = rp_shape_count(&run->data.sample) * micro * sizeof(float);
    const size_t target = (size_t)rp_data_row_width(&run->data) * run->batch * sizeof(float);
    const rp_link_options options = {
        .name = "feed",
        .connect = endpoint,
        .peer_public = board->public_text,
        .window = 1,
        .send_window = FEED_WINDOW,
        .part_bytes_max = input > target ? input : target,
        .emulate = run->link,
        .run = c->ring.identity,
        .wire = c->ring.wire.max,
    };
    return rp_link_open(c->ring.links, &options, &board->feed);
}

/* To a board: where those listen that it dials. One message at least: it says that this is all. */
static rp_err connect_board(rp_controller *c, uint32_t board) {
    uint32_t node[RP_PLAN_NEIGHBOURS_MAX];
    uint32_t dialled[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t neighbours = rp_plan_neighbours(c->plan, board, node);
    rp_Frame frame = {.which_body = RP_KIND_CONNECT};
    rp_Connect *to = &frame.body.connect;
    uint32_t sent = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < neighbours; i++) {
        const rp_board_state *far = &c->ring.board[node[i]];
        if (!rp_plan_dials(board, node[i])) {
            continue;
        }
        const uint32_t count = rp_controller_dialled_by(c, node[i], dialled);
        uint32_t at = 0;
        while (at < count && dialled[at] != board) {
            at++;
        }
        RP_ASSERT(at < count); /* it dials, so it is dialled by */
        to->node = node[i];
        rp_ring_endpoint_at(far, far->hop_port[at], to->endpoint, sizeof to->endpoint);
        (void)snprintf(to->public_key, sizeof to->public_key, "%s", far->public_text);
        RP_TRY(rp_ring_post(&c->ring, board, &frame, NULL));
        sent++;
    }
    RP_TRY(sent ? RP_OK : rp_ring_post(&c->ring, board, &frame, NULL));
fail:
    return err;
}

static rp_err connect_boards(rp_controller *c) {
    const uint32_t count = c->ring.count;
    uint32_t fed;
    const uint32_t *feed = rp_plan_node_edges(c->plan, RP_PLAN_HOST, &fed);
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < count && c->run.link.control; k++) {
        RP_TRY(rp_link_emulate(c->ring.board[k].control, &c->run.link));
    }
    for (uint32_t k = 0; k < count; k++) {
        RP_TRY(connect_board(c, k));
    }
    for (uint32_t i = 0; i < fed; i++) { /* one link for the inputs and labels of a board */
        const uint32_t to = c->plan->edge[feed[i]].to;
        RP_TRY(c->ring.board[to].feed ? RP_OK : open_feed_link(c, to));
    }
    c->ring.watching = true;
fail:
    return err;
}

/* Boards that share a cache share the work: what counts is the sum of all. */
static void say_ready(const rp_controller *c) {
    uint64_t device = 0;
    int64_t slowest_ns = 0;
    rp_board_building all = {0};
    char text[256];
    int used;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        device += board->device_bytes;
        slowest_ns = board->prepare_ns > slowest_ns ? board->prepare_ns : slowest_ns;
        all.ready += board->built.ready;
        all.built += board->built.built;
        all.build_ns += board->built.build_ns;
        all.read_ns += board->built.read_ns;
    }
    used = snprintf(text, sizeof text, "%u boards are ready", c->ring.count);
    if (all.ready > 0) {
        used += snprintf(text + used, sizeof text - (size_t)used,
                         ": %u kernels built in %.1f s, %u found in the cache in %.1f s, summed "
                         "over the boards",
                         all.built, (double)all.build_ns * 1e-9, all.ready - all.built,
                         (double)all.read_ns * 1e-9);
    }
    (void)snprintf(text + used, sizeof text - (size_t)used,
                   "; the slowest stage was prepared in %.1f s; %.1f MiB of device memory in use",
                   (double)slowest_ns * 1e-9, (double)device / (1 << 20));
    rp_record_phase(c->record, text);
}

/* Who leaves `microbatch` out gets one a step, which most of these schedules can not fill a ring
 * with. */
static rp_err hint_microbatch(rp_controller *c) {
    const rp_sched_kind *kind = c->run.method.kind;
    uint32_t micro;
    double busy;
    double better;
    char text[160];
    rp_err err = RP_OK;
    if (c->run.micro < c->run.batch || !(kind->flushed || kind->accumulates)) {
        return RP_OK;
    }
    RP_TRY(rp_cost_compare_micro(&c->run, &micro, &busy, &better));
    if (better > busy + 0.1) {
        (void)snprintf(text, sizeof text,
                       "one microbatch a step keeps the boards %.0f %% busy at best; "
                       "train.microbatch: %u, %.0f %%",
                       100 * busy, micro, 100 * better);
        RP_TRY(rp_record_event(c->record, "hint", c->position.step, text));
    }
fail:
    return err;
}

/* The run goes on from an older checkpoint than there is. */
static rp_err say_damage(rp_controller *c) {
    char text[RP_CHECKPOINT_DAMAGE + 80];
    (void)snprintf(text, sizeof text, "%s; the checkpoint of step %" PRIu64 " is used", c->damaged,
                   c->position.step);
    return rp_record_event(c->record, "damaged", c->position.step, text);
}

static rp_err begin_training(rp_controller *c) {
    rp_err err;
    RP_TRY(c->damaged[0] ? say_damage(c) : RP_OK);
    RP_TRY(c->advance_chosen ? rp_controller_say_advance(c, 0) : RP_OK);
    say_ready(c);
    RP_TRY(hint_microbatch(c));
    RP_TRY(rp_controller_write_folder(c));
    RP_TRY(rp_gain_estimator_open(&c->arena, c->run.model->param_count, &c->estimator));
fail:
    return err;
}

static rp_err offer_assignments(rp_controller *c) {
    rp_err err = RP_OK;
    uint32_t building = 0;
    for (uint32_t k = 0; k < c->ring.count && building < BUILDING_MAX; k++) {
        rp_Frame frame = {
            .which_body = RP_KIND_ASSIGN,
            .body.assign = {.wire = c->ring.wire.max, .features = c->ring.features, .node = k}};
        const rp_board_state *board = &c->ring.board[k];
        if (!board->asked) {
            err = offer_texts(c, k, &frame, &c->plan_cut, rp_controller_first_stage(c, k));
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        }
        building += board->asked && !board->ready;
    }
    err = RP_OK;
fail:
    return err;
}

/* By kernels as far as boards have said how many they need. */
static void show_ready(const rp_controller *c) {
    rp_sink_part boards = {.text = BUILDING, .total = c->ring.count, .unit = "boards ready"};
    rp_sink_part part = {.text = BUILDING, .unit = "kernels"};
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        boards.done += board->ready;
        part.done += board->building.ready;
        part.total += board->building.kernels;
    }
    part = part.total ? part : boards;
    rp_record_part(c->reassigning ? NULL : c->record, &part);
}

rp_err rp_assign_step(rp_controller *c) {
    rp_err err;
    RP_TRY(offer_assignments(c));
    if (!rp_controller_all_done(c)) {
        show_ready(c);
        return RP_OK;
    }
    RP_TRY(connect_boards(c));
    if (c->options.purpose == RP_PURPOSE_PLAN) {
        RP_TRY(rp_controller_show(c, false));
        rp_controller_enter(c, RP_CONTROL_CLOSE);
        return RP_OK;
    }
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(c->begun ? rp_controller_write_folder(c) : begin_training(c));
    }
    rp_controller_enter(c, RP_CONTROL_LOAD);
fail:
    return err;
}
