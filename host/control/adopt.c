/* The state `adopt`: a run is resumed whose controller has died, and its boards may hold a newer
 * state than the newest checkpoint. They are asked what they hold until nothing moves any more;
 * when all of them stand behind the same step, a checkpoint is made of it, from which the run goes
 * on. Otherwise, and whenever something is in doubt, it goes on from the checkpoint that is there.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/controller_own.h"
#include "planning/planfile.h"
#include "ring/identity.h"

enum { WHY_BYTES = 240 };

static const int64_t ASK_EVERY_NS = 200 * RP_NS_PER_MS;
static const int64_t REST_MAX_NS = 60 * RP_NS_PER_S;
/* What looks like rest may be a board that has not read the last words of the controller yet. */
static const int64_t PATIENCE_NS = 2 * RP_NS_PER_S;

/* Boards of this machine have ended with their controller. */
bool rp_adopt_may_come(const rp_controller *c) {
    return c->options.purpose == RP_PURPOSE_TRAIN && c->options.resume && !c->run.local &&
           !c->setup.given && !c->keep.adopt.tried &&
           access(rp_folder_paths_of(c->folder)->plan_json, F_OK) == 0;
}

bool rp_adopt_is_due(const rp_controller *c) {
    return rp_adopt_may_come(c) && c->ring.identity.term > 1;
}

/* ---- the end --------------------------------------------------------------------------------- */

rp_err rp_adopt_end(rp_controller *c, const char *why) {
    char text[WHY_BYTES + 160];
    const uint64_t from = c->keep.adopt.from;
    c->keep.adopt.phase = RP_ADOPT_NONE;
    c->setup.plan = NULL;
    rp_arena_finish(&c->keep.adopt.arena);
    if (why && c->keep.adopt.hopes) {
        (void)snprintf(text, sizeof text,
                       "what the boards hold is not used: %.240s; the checkpoint of step %" PRIu64
                       " is damaged",
                       why, from);
    } else if (why) {
        (void)snprintf(text, sizeof text,
                       "what the boards hold is not used: %.240s; the run goes on from the "
                       "checkpoint of step %" PRIu64,
                       why, from);
    } else {
        (void)snprintf(text, sizeof text,
                       "the boards have held step %" PRIu64 ", the newest checkpoint was of step "
                       "%" PRIu64 ": nothing is computed again",
                       c->train.position.step, from);
    }
    return rp_record_event(rp_folder_record(c->folder), "adopted", c->train.position.step, text);
}

/* What they still say of this term is none of the next one's business. Where only they could have
 * helped, the state `recover` looks for another checkpoint. */
static rp_err go_on_without(rp_controller *c, const char *why) {
    rp_err err;
    if (c->keep.adopt.hopes) {
        return rp_fail(RP_ERR_FAULT, "%s", why ? why : "no board holds anything of it");
    }
    if (why) {
        RP_TRY(rp_adopt_end(c, why));
    }
    c->keep.adopt.phase = RP_ADOPT_NONE;
    rp_arena_finish(&c->keep.adopt.arena);
    RP_TRY(rp_disk_begin_term(c));
    rp_controller_enter(c, RP_CONTROL_HELLO);
fail:
    return err;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static rp_err ask(rp_controller *c, bool stop) {
    rp_Frame question = rp_ring_greeting(&c->ring, c->ring.now_ns);
    question.body.hello.hold = stop ? 2 : 1;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        rp_adopt_board *board = &c->keep.adopt.board[k];
        board->before = board->now;
        board->has_answered = false;
    }
    c->keep.adopt.rounds++;
    c->keep.adopt.phase = stop ? RP_ADOPT_STOP : RP_ADOPT_ASK;
    c->keep.adopt.asked_ns = c->ring.now_ns;
    return rp_ring_post_all(&c->ring, &question);
}

static rp_err read_plan(rp_controller *c) {
    const char *executor = c->options.executor ? c->options.executor : "opencl";
    return rp_planfile_read(&c->keep.adopt.arena, rp_folder_paths_of(c->folder)->plan_json, &c->run,
                            executor, &c->keep.adopt.plan);
}

/* `ahead: measured`: the run file of the former life has the numbers, which is no other setting. */
static rp_err take_ahead(rp_controller *c) {
    if (!rp_ahead_is_wanted(c) || read_plan(c) != RP_OK) {
        return RP_OK;
    }
    return rp_ahead_take(c, c->keep.adopt.plan->method.ahead,
                         c->keep.adopt.plan->method.ahead_count);
}

rp_err rp_adopt_enter(rp_controller *c) {
    rp_adopt *adopt = &c->keep.adopt;
    char why[WHY_BYTES];
    rp_err err;
    adopt->tried = true;
    adopt->from = c->train.position.step;
    adopt->phase = RP_ADOPT_ASK;
    rp_arena_init(&adopt->arena, "adopt", 0);
    RP_TRY(RP_ARENA_NEW(&adopt->arena, c->ring.count, &adopt->board));
    RP_TRY(take_ahead(c));
    RP_TRY(rp_folder_find_change(c->folder, &c->run, why, sizeof why));
    if (why[0]) { /* a checkpoint of here would say that it was made with these */
        return go_on_without(c, why);
    }
    if (read_plan(c) != RP_OK) {
        (void)snprintf(why, sizeof why, "%.239s", rp_err_message());
        return go_on_without(c, why);
    }
    RP_TRY(ask(c, false));
fail:
    return err;
}

rp_err rp_adopt_on_hello(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_adopt_board *at = &c->keep.adopt.board[board];
    at->holds = message->frame.body.hello.busy; /* what it holds comes right behind */
    at->has_answered = !at->holds;
    return RP_OK;
}

static rp_err refuse(const rp_controller *c, uint32_t board) {
    return rp_fail(RP_ERR_PEER, "board %s: what it says that it holds has another form",
                   c->ring.board[board].name);
}

rp_err rp_adopt_on_held(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_adopt_board *at = &c->keep.adopt.board[board];
    const rp_part *applied = &message->part[0];
    const rp_part *told = message->part_count > 1 ? &message->part[1] : NULL;
    rp_err err = RP_OK;
    if (applied->bytes > sizeof at->applied || (told && told->bytes % sizeof *at->told)) {
        return refuse(c, board);
    }
    at->now = message->frame.body.held;
    at->applied_count = (uint32_t)(applied->bytes / sizeof *at->applied);
    memcpy(at->applied, applied->data, applied->bytes);
    if (told) {
        at->told_count = told->bytes / sizeof *at->told;
        RP_TRY(RP_ARENA_NEW(&c->keep.adopt.arena, at->told_count, &at->told));
        memcpy(at->told, told->data, told->bytes);
    }
    if (at->now.ops != at->before.ops) {
        rp_ring_note_progress(&c->ring);
    }
    at->has_answered = true;
fail:
    return err;
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static bool have_answered(const rp_controller *c, char why[WHY_BYTES]) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!c->keep.adopt.board[k].has_answered) {
            (void)snprintf(why, WHY_BYTES, "board %s does not say what it holds",
                           c->ring.board[k].name);
            return false;
        }
    }
    return true;
}

static uint32_t count_holders(const rp_controller *c) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        count += c->keep.adopt.board[k].holds;
    }
    return count;
}

/* Twice the same of all of them: nothing was on its way between two of them either. */
static bool are_at_rest(const rp_controller *c, char why[WHY_BYTES]) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_adopt_board *at = &c->keep.adopt.board[k];
        const bool rests = at->now.settled && at->before.settled && at->now.ops == at->before.ops &&
                           at->now.step == at->before.step;
        if (!rests || c->keep.adopt.rounds < 2) {
            (void)snprintf(why, WHY_BYTES, "board %s does not come to rest", c->ring.board[k].name);
            return false;
        }
    }
    return true;
}

/* ---- a decision that has not reached all ----------------------------------------------------- */

/* A board that the controller's decision on a step has reached, while another waits for it. */
static const rp_Held *find_decided(const rp_controller *c, uint64_t step) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_Held *held = &c->keep.adopt.board[k].now;
        if (held->decided_end == step + 1) {
            return held;
        }
    }
    return NULL;
}

/* The controller was killed while it told the boards: those that it did not reach hear now what it
 * has decided. *any: there were some; they go on. */
static rp_err pass_on_decision(rp_controller *c, bool *any) {
    rp_err err = RP_OK;
    *any = false;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_Held *held = &c->keep.adopt.board[k].now;
        const rp_Held *decided = held->waits ? find_decided(c, held->step) : NULL;
        if (decided) {
            const rp_Frame frame = {.which_body = RP_KIND_STEP_DECISION,
                                    .body.step_decision = {.step = held->step,
                                                           .scale = decided->scale,
                                                           .skip = decided->skip}};
            RP_TRY(rp_ring_post(&c->ring, k, &frame, NULL));
            *any = true;
        }
    }
fail:
    return err;
}

/* ---- is it one state? ------------------------------------------------------------------------ */

/* The codec of an edge adds to what both its ends remember. */
static bool remembers(const rp_plan *plan) {
    bool any = false;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        any |= rp_codec_remembers(plan->edge[e].codec);
    }
    return any;
}

static bool has_statistics(const rp_controller *c) {
    const rp_model *model = c->run.model;
    return rp_model_param_count(model, RP_PARAM_STATE, 0, model->layer_count) > 0;
}

static bool check_board(const rp_controller *c, uint32_t k, const rp_run_ledger *due,
                        char why[WHY_BYTES]) {
    const rp_adopt_board *first = &c->keep.adopt.board[0];
    const rp_Held *held = &c->keep.adopt.board[k].now;
    const char *name = c->ring.board[k].name;
    why[0] = '\0';
    if (c->keep.adopt.phase == RP_ADOPT_STOP && !held->stopped) {
        (void)snprintf(why, WHY_BYTES, "board %s does not stop", name);
    } else if (held->plan != rp_plan_digest(c->keep.adopt.plan) || held->node != k) {
        (void)snprintf(why, WHY_BYTES, "board %s has stages of another plan than plan.json", name);
    } else if (held->step != first->now.step || held->fill_step != first->now.fill_step) {
        (void)snprintf(why, WHY_BYTES,
                       "board %s stands behind step %" PRIu64 ", board %s behind step %" PRIu64,
                       name, held->step, c->ring.board[0].name, first->now.step);
    } else if (held->ledger != due->digest) {
        (void)snprintf(why, WHY_BYTES,
                       "board %s: its ledger of steps %" PRIu64 " to %" PRIu64 " is not the plan's",
                       name, c->keep.adopt.from + 1, held->step);
    } else if (!held->paused && !c->run.method.kind->flushed) {
        (void)snprintf(why, WHY_BYTES,
                       "board %s is in the middle of a segment, and schedule %s does not flush",
                       name, c->run.method.kind->name);
    } else if (!held->paused && remembers(c->keep.adopt.plan)) {
        (void)snprintf(why, WHY_BYTES,
                       "board %s is in the middle of a segment, and what it remembers of samples "
                       "belongs to a pause",
                       name);
    } else if (!held->clean && has_statistics(c)) {
        (void)snprintf(why, WHY_BYTES,
                       "on board %s step %" PRIu64
                       " has begun, which has changed the model's running statistics",
                       name, held->step + 1);
    }
    return why[0] == '\0';
}

static rp_run_ledger ledger_at(const rp_controller *c, uint64_t step) {
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, 0);
    rp_run_ledger due = {.digest = c->train.position.ledger.digest};
    rp_run_ledger_add_steps(&due, &shape, c->keep.adopt.from, step);
    return due;
}

/* `why` is empty where there is nothing to gain. */
static bool is_worth_it(const rp_controller *c, char why[WHY_BYTES]) {
    const rp_method *method = &c->run.method;
    const uint64_t step = c->keep.adopt.board[0].now.step;
    why[0] = '\0';
    if (step < c->keep.adopt.from || (step == c->keep.adopt.from && !c->keep.adopt.hopes)) {
        return false;
    }
    if (step > rp_controller_end(c)) {
        (void)snprintf(why, WHY_BYTES, "they stand behind step %" PRIu64 ", the run ends earlier",
                       step);
        return false;
    }
    if (method->horizon == RP_HORIZON_MEASURED ||
        (method->kind->average != RP_AVERAGE_NONE && has_statistics(c))) {
        (void)snprintf(why, WHY_BYTES,
                       "gains of predictions and statistics of an average were the controller's");
        return false;
    }
    const rp_run_ledger due = ledger_at(c, step);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!check_board(c, k, &due, why)) {
            return false;
        }
    }
    return true;
}

/* ---- taking over ----------------------------------------------------------------------------- */

/* The results of a step, as the boards with labels have told their controller. */
static bool find_loss(const rp_controller *c, uint64_t step, double *sum) {
    const uint32_t last = c->setup.plan->stage_count - 1;
    *sum = 0;
    for (uint32_t h = 0; h < c->setup.plan->hold_count; h++) {
        const rp_plan_hold *hold = &c->setup.plan->hold[h];
        const rp_adopt_board *at = &c->keep.adopt.board[hold->node];
        double loss;
        if (hold->stage != last || hold->role == RP_ROLE_FORWARD) { /* it does not train them */
            continue;
        }
        if (step < at->now.told_first || step - at->now.told_first >= at->told_count) {
            return false;
        }
        memcpy(&loss, &at->told[step - at->now.told_first][0], sizeof loss);
        *sum += loss;
    }
    return true;
}

static rp_err take_results(rp_controller *c, uint64_t step) {
    double loss;
    rp_err err = RP_OK;
    while (c->train.position.step < step) {
        if (!find_loss(c, c->train.position.step, &loss)) {
            return rp_fail(RP_ERR_FAULT,
                           "the boards no longer know what step %" PRIu64 " gave; "
                           "train.checkpoint_steps bounds how many they have to",
                           c->train.position.step + 1);
        }
        rp_trials_note_step(c, rp_drift_note_step(c->measure));
        RP_TRY(rp_train_count_step(c->train.room, loss));
    }
fail:
    return err;
}

static rp_err take_board(rp_controller *c, uint32_t k) {
    const rp_adopt_board *at = &c->keep.adopt.board[k];
    rp_board_state *state = &c->ring.board[k];
    if (at->applied_count != rp_controller_applied_count(c, k)) {
        return refuse(c, k);
    }
    memcpy(state->applied, at->applied, at->applied_count * sizeof *at->applied);
    state->in_flight_bytes = at->now.in_flight_bytes;
    return RP_OK;
}

/* What `advance: auto` chose, and no checkpoint says yet: what is in flight depends on it. */
static void take_advance(rp_controller *c) {
    if (c->run.method.advance_auto) {
        rp_setup_take_advance(&c->setup.now, c->keep.adopt.plan->method.advance);
        rp_setup_refresh(c);
    }
}

/* All have stopped. From here on a fault is dealt with in `recover`. */
static rp_err take_over(rp_controller *c) {
    const uint64_t step = c->keep.adopt.board[0].now.step;
    const rp_run_ledger due = ledger_at(c, step);
    rp_err err;
    take_advance(c);
    RP_TRY(rp_controller_take_plan(c, c->keep.adopt.plan));
    RP_TRY(rp_train_open_plan(c->train.room, c->keep.adopt.plan));
    for (uint32_t k = 0; k < c->ring.count; k++) {
        RP_TRY(take_board(c, k));
    }
    RP_TRY(take_results(c, step));
    c->train.position.ledger.digest = due.digest;
    c->train.position.ledger.samples += due.samples;
    c->train.position.fill_step = c->keep.adopt.board[0].now.fill_step;
    c->keep.adopt.phase = RP_ADOPT_SAVE;
    c->ring.watching = true;
    rp_controller_enter(c, RP_CONTROL_SAVE);
fail:
    return err;
}

static rp_err ask_again(rp_controller *c) {
    return c->ring.now_ns - c->keep.adopt.asked_ns > ASK_EVERY_NS ? ask(c, false) : RP_OK;
}

/* One has not answered, or is not at rest, and nothing has changed for long. */
rp_err rp_adopt_late(const rp_controller *c) {
    char why[WHY_BYTES];
    if (have_answered(c, why)) {
        (void)are_at_rest(c, why);
    }
    return rp_fail(RP_ERR_TIMEOUT, "%s", why);
}

rp_err rp_adopt_step(rp_controller *c) {
    char why[WHY_BYTES];
    bool goes_on = false;
    rp_err err;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (c->ring.board[k].refuses) { /* it holds nothing of this run */
            return go_on_without(c, "a board refuses the handshake");
        }
    }
    if (!have_answered(c, why)) {
        return RP_OK;
    }
    if (count_holders(c) == 0) {
        return go_on_without(c, NULL); /* the run was ended as it should be, or too long ago */
    }
    if (count_holders(c) < c->ring.count) {
        return go_on_without(c, "not every board holds its part of it any more");
    }
    if (!are_at_rest(c, why)) {
        return c->ring.now_ns - c->machine.since_ns > REST_MAX_NS ? go_on_without(c, why)
               : c->keep.adopt.phase == RP_ADOPT_STOP ? ask(c, false) /* so it was not at rest */
                                                      : ask_again(c);
    }
    RP_TRY(c->keep.adopt.phase == RP_ADOPT_ASK ? pass_on_decision(c, &goes_on) : RP_OK);
    if (goes_on) {
        return ask(c, false);
    }
    if (!is_worth_it(c, why)) {
        const bool is_sure = !why[0] || c->ring.now_ns - c->ring.progress_ns > PATIENCE_NS;
        return is_sure ? go_on_without(c, why[0] ? why : NULL) : ask_again(c);
    }
    if (c->keep.adopt.phase == RP_ADOPT_ASK) {
        return ask(c, true);
    }
    RP_TRY(take_over(c));
fail:
    return err;
}
