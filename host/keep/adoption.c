/* Asks boards that lost their controller what they hold. Their state becomes the state of the run
 * if all of it belongs to one step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keep/adoption.h"
#include "keep/keep_own.h"
#include "planning/planfile.h"

static const int64_t ASK_EVERY_NS = 200 * RP_NS_PER_MS;
static const int64_t REST_MAX_NS = 60 * RP_NS_PER_S;
/* A board that seems to rest may not have read the former controller's last messages yet. */
static const int64_t PATIENCE_NS = 2 * RP_NS_PER_S;

/* Not for local boards, which ended with their controller. */
bool rp_keep_may_adopt(const rp_keep *keep, bool is_given) {
    return keep->needs.resumes && !keep->needs.run->local && !is_given && !keep->adopt.tried &&
           access(rp_keep_paths(keep)->plan_json, F_OK) == 0;
}

bool rp_keep_adoption_is_due(const rp_keep *keep, bool is_given) {
    return rp_keep_may_adopt(keep, is_given) && keep->needs.ring->identity.term > 1;
}

void rp_keep_hope_for_boards(rp_keep *keep, bool hopes) {
    keep->adopt.hopes = hopes;
}

bool rp_keep_hopes_for_boards(const rp_keep *keep) {
    return keep->adopt.hopes;
}

/* The newest checkpoint is damaged, but its header has the position: boards may hold that state or
 * a newer one. False: they cannot help. */
static bool may_hope_for_boards(rp_keep *keep, rp_arena *arena, bool is_given,
                                rp_position *position) {
    rp_position place = {0};
    char why[RP_ERR_MESSAGE_BYTES];
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    if (!rp_keep_may_adopt(keep, is_given) ||
        rp_checkpoint_find_place(arena, keep->needs.run, rp_keep_paths(keep)->checkpoints,
                                 &place) != RP_OK) {
        rp_err_set_message(why);
        return false;
    }
    *position = place;
    return true;
}

rp_err rp_keep_find_start(rp_keep *keep, rp_arena *arena, bool is_given, char **path,
                          rp_position *position) {
    const rp_err err = rp_keep_find(keep, arena, path, position);
    const bool is_damaged = err == RP_ERR_FORMAT || (err == RP_OK && keep->damaged[0]);
    const bool hopes = is_damaged && may_hope_for_boards(keep, arena, is_given, position);
    rp_keep_hope_for_boards(keep, hopes);
    *path = hopes ? NULL : *path;
    return hopes ? RP_OK : err;
}

void rp_keep_save_adopted(rp_keep *keep) {
    RP_ASSERT(keep->adopt.phase == RP_ADOPT_STOP && keep->adopt.plan != NULL);
    keep->adopt.phase = RP_ADOPT_SAVE;
}

bool rp_keep_saves_adopted(const rp_keep *keep) {
    return keep->adopt.phase == RP_ADOPT_SAVE;
}

bool rp_keep_is_adopting(const rp_keep *keep) {
    return keep->adopt.phase != RP_ADOPT_NONE;
}

/* ---- the end --------------------------------------------------------------------------------- */

void rp_keep_forget_adoption(rp_keep *keep) {
    rp_adoption_state *adopt = &keep->adopt;
    adopt->phase = RP_ADOPT_NONE;
    adopt->plan = NULL;
    adopt->board = NULL;
    adopt->board_count = 0;
    rp_arena_finish(&adopt->arena);
}

rp_err rp_keep_end_adoption(rp_keep *keep, const rp_run_event *why, uint64_t step) {
    char text[RP_WORDS_BYTES];
    const rp_run_event event = {.kind = !why                ? RP_EVENT_ADOPTED
                                        : keep->adopt.hopes ? RP_EVENT_ADOPTED_DAMAGED
                                                            : RP_EVENT_ADOPTED_NOT,
                                .step = step,
                                .why = why ? rp_words_write(why, text, sizeof text) : NULL,
                                .checkpoint_step = keep->adopt.from};
    RP_ASSERT(keep->adopt.phase != RP_ADOPT_NONE);
    rp_keep_forget_adoption(keep);
    return rp_record_event(rp_keep_record(keep), &event);
}

/* ---- asking ---------------------------------------------------------------------------------- */

rp_err rp_keep_begin_adoption(rp_keep *keep, uint64_t step) {
    rp_adoption_state *adopt = &keep->adopt;
    const rp_ring *ring = keep->needs.ring;
    RP_ASSERT(adopt->phase == RP_ADOPT_NONE && !adopt->tried);
    adopt->tried = true;
    adopt->from = step;
    adopt->phase = RP_ADOPT_ASK;
    adopt->since_ns = ring->now_ns;
    adopt->board_count = ring->count;
    rp_arena_init(&adopt->arena, "adopt", 0);
    return RP_ARENA_NEW(&adopt->arena, ring->count, &adopt->board);
}

rp_err rp_keep_read_adopted_plan(rp_keep *keep) {
    rp_adoption_state *adopt = &keep->adopt;
    const char *executor = keep->needs.executor ? keep->needs.executor : "opencl";
    RP_ASSERT(adopt->phase == RP_ADOPT_ASK && adopt->rounds == 0);
    adopt->plan = NULL;
    return rp_planfile_read(&adopt->arena, rp_keep_paths(keep)->plan_json, keep->needs.run,
                            executor, &adopt->plan);
}

rp_plan *rp_keep_adopted_plan(rp_keep *keep) {
    return keep->adopt.plan;
}

static rp_err ask_all(rp_keep *keep, bool stop) {
    rp_adoption_state *adopt = &keep->adopt;
    rp_ring *ring = keep->needs.ring;
    rp_Frame question = rp_greet_hello(ring->now_ns, ring->origin);
    RP_ASSERT(adopt->plan != NULL && adopt->board_count == ring->count);
    question.body.hello.hold = stop ? 2 : 1;
    for (uint32_t k = 0; k < adopt->board_count; k++) {
        rp_adopt_board *board = &adopt->board[k];
        board->before = board->now;
        board->has_answered = false;
    }
    adopt->rounds++;
    adopt->phase = stop ? RP_ADOPT_STOP : RP_ADOPT_ASK;
    adopt->asked_ns = ring->now_ns;
    return rp_ring_post_all(ring, &question);
}

rp_err rp_keep_ask_boards(rp_keep *keep) {
    RP_ASSERT(keep->adopt.phase == RP_ADOPT_ASK && keep->adopt.rounds == 0);
    return ask_all(keep, false);
}

static rp_err ask_again(rp_keep *keep) {
    return keep->needs.ring->now_ns - keep->adopt.asked_ns > ASK_EVERY_NS ? ask_all(keep, false)
                                                                          : RP_OK;
}

rp_err rp_keep_on_adopted_hello(rp_keep *keep, uint32_t board, const rp_message *message) {
    RP_ASSERT(board < keep->adopt.board_count);
    rp_adopt_board *at = &keep->adopt.board[board];
    at->holds = message->frame.body.hello.busy; /* what it holds follows in HELD */
    at->has_answered = !at->holds;
    return RP_OK;
}

static rp_err refuse_layout(const rp_keep *keep, uint32_t board) {
    return rp_fail(RP_ERR_PEER, "board %s: HELD message has an unexpected layout",
                   keep->needs.ring->board[board].name);
}

rp_err rp_keep_on_held(rp_keep *keep, uint32_t board, const rp_message *message) {
    RP_ASSERT(board < keep->adopt.board_count);
    rp_adopt_board *at = &keep->adopt.board[board];
    const rp_part *applied = &message->part[0];
    const rp_part *told = message->part_count > 1 ? &message->part[1] : NULL;
    rp_err err = RP_OK;
    if (applied->bytes > sizeof at->applied || (told && told->bytes % sizeof *at->told)) {
        return refuse_layout(keep, board);
    }
    at->now = message->frame.body.held;
    at->applied_count = (uint32_t)(applied->bytes / sizeof *at->applied);
    memcpy(at->applied, applied->data, applied->bytes);
    if (told) {
        at->told_count = told->bytes / sizeof *at->told;
        RP_TRY(RP_ARENA_NEW(&keep->adopt.arena, at->told_count, &at->told));
        memcpy(at->told, told->data, told->bytes);
    }
    if (at->now.ops != at->before.ops) {
        rp_ring_note_progress(keep->needs.ring);
    }
    at->has_answered = true;
fail:
    return err;
}

/* ---- have they come to rest? ----------------------------------------------------------------- */

static bool have_answered(const rp_keep *keep, rp_run_event *why) {
    for (uint32_t k = 0; k < keep->adopt.board_count; k++) {
        if (!keep->adopt.board[k].has_answered) {
            *why = (rp_run_event){.kind = RP_EVENT_HELD_UNKNOWN,
                                  .board = keep->needs.ring->board[k].name};
            return false;
        }
    }
    return true;
}

static uint32_t count_holders(const rp_keep *keep) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < keep->adopt.board_count; k++) {
        count += keep->adopt.board[k].holds;
    }
    return count;
}

/* All boards gave the same answer twice, so nothing was on its way between two boards. */
static bool are_at_rest(const rp_keep *keep, rp_run_event *why) {
    for (uint32_t k = 0; k < keep->adopt.board_count; k++) {
        const rp_adopt_board *at = &keep->adopt.board[k];
        const bool rests = at->now.settled && at->before.settled && at->now.ops == at->before.ops &&
                           at->now.step == at->before.step;
        if (!rests) {
            *why = (rp_run_event){.kind = RP_EVENT_HELD_RESTLESS,
                                  .board = keep->needs.ring->board[k].name};
            return false;
        }
    }
    return true;
}

/* ---- a decision that has not reached all ----------------------------------------------------- */

/* Finds a board that received the controller's decision on this step. */
static const rp_Held *find_decided(const rp_adoption_state *adopt, uint64_t step) {
    for (uint32_t k = 0; k < adopt->board_count; k++) {
        const rp_Held *held = &adopt->board[k].now;
        if (held->decided_end == step + 1) {
            return held;
        }
    }
    return NULL;
}

/* The controller died while it sent a decision: repeats it to the boards that did not receive it.
 * *any: there were such boards; they continue. */
static rp_err pass_on_decision(rp_keep *keep, bool *any) {
    const rp_adoption_state *adopt = &keep->adopt;
    rp_err err = RP_OK;
    *any = false;
    for (uint32_t k = 0; k < adopt->board_count; k++) {
        const rp_Held *held = &adopt->board[k].now;
        const rp_Held *decided = held->waits ? find_decided(adopt, held->step) : NULL;
        if (decided) {
            const rp_Frame frame = {.which_body = RP_KIND_STEP_DECISION,
                                    .body.step_decision = {.step = held->step,
                                                           .scale = decided->scale,
                                                           .skip = decided->skip}};
            RP_TRY(rp_ring_post(keep->needs.ring, k, &frame, NULL));
            *any = true;
        }
    }
fail:
    return err;
}

/* ---- is it one state? ------------------------------------------------------------------------ */

static bool has_statistics(const rp_model *model) {
    return rp_model_param_count(model, RP_PARAM_STATE, 0, model->layer_count) > 0;
}

static bool check_board(const rp_keep *keep, uint32_t k, uint64_t ledger, rp_run_event *why) {
    const rp_adoption_state *adopt = &keep->adopt;
    const rp_sched_kind *kind = keep->needs.run->method.kind;
    const rp_Held *first = &adopt->board[0].now;
    const rp_Held *held = &adopt->board[k].now;
    const rp_board_state *board = keep->needs.ring->board;
    *why = (rp_run_event){.board = board[k].name};
    if (adopt->phase == RP_ADOPT_STOP && !held->stopped) {
        why->kind = RP_EVENT_HELD_RUNNING;
    } else if (held->plan != rp_plan_digest(adopt->plan) || held->node != k) {
        why->kind = RP_EVENT_HELD_OTHER_PLAN;
    } else if (held->step != first->step || held->fill_step != first->fill_step) {
        why->kind = RP_EVENT_HELD_OTHER_STEP;
        why->board_step = held->step;
        why->peer = board[0].name;
        why->peer_step = first->step;
    } else if (held->ledger != ledger) {
        why->kind = RP_EVENT_HELD_OTHER_LEDGER;
        why->first_step = adopt->from + 1;
        why->board_step = held->step;
    } else if (!held->paused && !kind->flushed) {
        why->kind = RP_EVENT_HELD_UNFLUSHED;
        why->schedule = kind->name;
    } else if (!held->clean && has_statistics(keep->needs.run->model)) {
        why->kind = RP_EVENT_HELD_STATISTICS;
        why->board_step = held->step + 1;
    }
    return why->kind == RP_EVENT_NONE;
}

static rp_run_ledger ledger_at(const rp_keep *keep, const rp_run_ledger *from, uint64_t step) {
    const rp_sched_shape shape = rp_runfile_sched_shape(keep->needs.run, 0);
    rp_run_ledger due = {.digest = from->digest};
    RP_ASSERT(step >= keep->adopt.from);
    rp_run_ledger_add_steps(&due, &shape, keep->adopt.from, step);
    return due;
}

/* `why` is of kind NONE if the boards' state is not newer. */
static bool is_worth_it(const rp_keep *keep, const rp_adopt_facts *facts, rp_run_event *why) {
    const rp_adoption_state *adopt = &keep->adopt;
    const rp_method *method = &keep->needs.run->method;
    const uint64_t step = adopt->board[0].now.step;
    *why = (rp_run_event){.kind = RP_EVENT_NONE};
    if (step < adopt->from || (step == adopt->from && !adopt->hopes)) {
        return false;
    }
    if (step > facts->end) {
        *why = (rp_run_event){.kind = RP_EVENT_HELD_TOO_LATE, .board_step = step};
        return false;
    }
    if (method->horizon == RP_HORIZON_MEASURED ||
        (method->kind->average != RP_AVERAGE_NONE && has_statistics(keep->needs.run->model))) {
        why->kind = RP_EVENT_HELD_INCOMPLETE;
        return false;
    }
    const rp_run_ledger due = ledger_at(keep, facts->ledger, step);
    for (uint32_t k = 0; k < adopt->board_count; k++) {
        if (!check_board(keep, k, due.digest, why)) {
            return false;
        }
    }
    return true;
}

/* A board has not answered or is not at rest, and nothing has changed for long. */
rp_err rp_keep_adoption_is_late(const rp_keep *keep) {
    char text[RP_WORDS_BYTES] = "";
    rp_run_event why;
    if (!have_answered(keep, &why) || !are_at_rest(keep, &why)) {
        rp_words_write(&why, text, sizeof text);
    }
    return rp_fail(RP_ERR_TIMEOUT, "%s", text);
}

/* All boards have answered, and some are still working. */
static rp_err step_at_work(rp_keep *keep, rp_run_event *why, rp_adoption *out) {
    if (keep->needs.ring->now_ns - keep->adopt.since_ns > REST_MAX_NS) {
        *out = RP_ADOPTION_IS_OFF;
        return RP_OK;
    }
    why->kind = RP_EVENT_NONE;
    return keep->adopt.phase == RP_ADOPT_STOP ? ask_all(keep, false) /* not at rest after all */
                                              : ask_again(keep);
}

static rp_err step_at_rest(rp_keep *keep, const rp_adopt_facts *facts, rp_run_event *why,
                           rp_adoption *out) {
    const rp_ring *ring = keep->needs.ring;
    const bool is_asking = keep->adopt.phase == RP_ADOPT_ASK;
    bool goes_on = false;
    rp_err err;
    RP_TRY(is_asking ? pass_on_decision(keep, &goes_on) : RP_OK);
    if (goes_on) {
        return ask_all(keep, false);
    }
    if (!is_worth_it(keep, facts, why)) {
        const bool is_sure = !why->kind || ring->now_ns - ring->progress_ns > PATIENCE_NS;
        *out = is_sure ? RP_ADOPTION_IS_OFF : RP_ADOPTION_WAITS;
        return is_sure ? RP_OK : ask_again(keep);
    }
    if (is_asking) {
        return ask_all(keep, true);
    }
    *out = RP_ADOPTION_TAKES;
fail:
    return err;
}

rp_err rp_keep_step_adoption(rp_keep *keep, const rp_adopt_facts *facts, rp_run_event *why,
                             rp_adoption *out) {
    const rp_ring *ring = keep->needs.ring;
    RP_ASSERT(keep->adopt.phase == RP_ADOPT_ASK || keep->adopt.phase == RP_ADOPT_STOP);
    RP_ASSERT(keep->adopt.board_count == ring->count);
    *out = RP_ADOPTION_IS_OFF;
    *why = (rp_run_event){.kind = RP_EVENT_NONE};
    for (uint32_t k = 0; k < ring->count; k++) {
        if (ring->board[k].silence.why == RP_SILENT_REFUSES) { /* it holds nothing of this run */
            *why = (rp_run_event){.kind = RP_EVENT_HELD_REFUSED, .board = ring->board[k].name};
            return RP_OK;
        }
    }
    if (!have_answered(keep, why)) {
        *out = RP_ADOPTION_WAITS;
        return RP_OK;
    }
    if (count_holders(keep) == 0) {
        return RP_OK; /* the run ended normally, or too long ago */
    }
    if (count_holders(keep) < ring->count) {
        why->kind = RP_EVENT_HELD_PARTLY;
        return RP_OK;
    }
    *out = RP_ADOPTION_WAITS;
    return are_at_rest(keep, why) ? step_at_rest(keep, facts, why, out)
                                  : step_at_work(keep, why, out);
}

/* ---- taking over ----------------------------------------------------------------------------- */

bool rp_keep_adopted_loss(const rp_keep *keep, uint64_t step, double *sum, uint64_t *ignored) {
    const rp_plan *plan = keep->adopt.plan;
    const uint32_t last = plan->stage_count - 1;
    RP_ASSERT(keep->adopt.phase == RP_ADOPT_STOP);
    *sum = 0;
    *ignored = 0;
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        const rp_adopt_board *at = &keep->adopt.board[hold->node];
        double loss;
        if (hold->stage != last ||
            hold->role == RP_ROLE_FORWARD) { /* this board does not train them */
            continue;
        }
        if (step < at->now.told_first || step - at->now.told_first >= at->told_count) {
            return false;
        }
        memcpy(&loss, &at->told[step - at->now.told_first][0], sizeof loss);
        *sum += loss;
        *ignored += at->told[step - at->now.told_first][1] >> 32;
    }
    return true;
}

static rp_err take_board(rp_keep *keep, uint32_t k) {
    const rp_adopt_board *at = &keep->adopt.board[k];
    rp_board_state *state = &keep->needs.ring->board[k];
    if (at->applied_count != rp_keep_applied_count(keep->adopt.plan, k)) {
        return refuse_layout(keep, k);
    }
    memcpy(state->train.applied, at->applied, at->applied_count * sizeof *at->applied);
    state->train.in_flight_bytes = at->now.in_flight_bytes;
    return RP_OK;
}

rp_err rp_keep_take_adopted(rp_keep *keep, const rp_run_ledger *from, rp_adopted *out) {
    const rp_Held *first = &keep->adopt.board[0].now;
    rp_err err = RP_OK;
    RP_ASSERT(keep->adopt.phase == RP_ADOPT_STOP);
    RP_ASSERT(keep->adopt.board_count == keep->adopt.plan->node_count);
    for (uint32_t k = 0; k < keep->adopt.board_count; k++) {
        RP_TRY(take_board(keep, k));
    }
    *out = (rp_adopted){.step = first->step,
                        .fill_step = first->fill_step,
                        .ledger = ledger_at(keep, from, first->step)};
fail:
    return err;
}
