/* Verifies a recorded microbatch: each stage's record goes from its board to another one, which
 * recomputes it. Equal devices give equal bits, so if digests differ one of the two boards is
 * wrong. A third board decides which one or, in a ring of two, a second try of the first. Nothing
 * of the step has been saved yet. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "train/train_own.h"
#include "train/verify.h"

/* ---- what is verified ------------------------------------------------------------------------ */

/* Draws one step out of `every`, by the seed. */
static uint64_t draw_step(const rp_train *train, uint64_t every, uint64_t turn) {
    rp_rng rng = rp_rng_named(train->run->seed, "verify/step");
    return turn * every + rp_rng_word_at(&rng, turn) % every;
}

uint64_t rp_verify_choose(rp_train *train, uint64_t end) {
    rp_verify *verify = &train->verify;
    const rp_runfile *run = train->run;
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const uint32_t micros = (run->batch - 1) / run->micro + 1;
    const uint64_t every = run->safety.verify > micros ? run->safety.verify / micros : 1;
    const uint64_t turn = train->position->step / every;
    const uint64_t whole = rp_train_drained_at(train); /* no forward of that step has begun */
    uint64_t step = draw_step(train, every, turn);
    RP_ASSERT(train->position->step < end);
    step = step >= train->position->step ? step : draw_step(train, every, turn + 1);
    step = step > whole ? step : whole;
    verify->is_due = run->safety.verify > 0 && train->ring->count > 1 && step < end;
    verify->alone = verify->is_due && step + 1 < end;
    if (!verify->is_due) {
        return end;
    }
    rp_rng rng = rp_rng_named(run->seed, "verify/microbatch");
    verify->step = step;
    verify->by_sample = rp_plan_has_sizes(train->plan);
    verify->micro =
        rp_rng_word_at(&rng, step) % (verify->by_sample ? rp_sched_step_samples(&shape, step)
                                                        : rp_sched_micro_count(&shape, step));
    return step + 1;
}

bool rp_verify_is_due(const rp_train *train) {
    return train->verify.is_due;
}

bool rp_verify_is_alone(const rp_train *train) {
    return train->verify.alone;
}

rp_summary_verify rp_verify_tell(const rp_train *train) {
    return train->verify.told;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Generous upper bound for the records of a stage, which limits the memory that a board can claim
 * here. */
static uint64_t bytes_max(const rp_train *train, uint32_t stage) {
    const rp_model *model = train->run->model;
    const uint32_t *first = &train->cut.first[stage];
    const uint64_t spare = 64; /* a tensor or sample that is a digest is larger than its floats */
    const uint64_t samples = train->verify.by_sample ? train->run->batch : train->run->micro;
    uint64_t bytes =
        4096 + samples * (rp_data_row_width(&train->run->data) * sizeof(float) + spare);
    for (uint32_t p = model->param_first[first[0]]; p < model->param_first[first[1]]; p++) {
        bytes += 4 * (model->param[p].count * sizeof(float) + spare);
    }
    bytes += samples * (rp_shape_count(&model->input) * sizeof(float) + spare);
    for (uint32_t i = 0; i < model->layer_count; i++) { /* any of them may cross a boundary */
        bytes += 2 * samples * (rp_shape_count(&model->plan[i].out) * sizeof(float) + spare);
    }
    return bytes;
}

/* Requests from each board the record of its stage at index `round`. A split stage cannot be
 * recomputed. */
static rp_err begin_round(rp_train *train, bool *any) {
    rp_verify *verify = &train->verify;
    rp_err err;
    *any = false;
    rp_arena_finish(&verify->arena);
    rp_arena_init(&verify->arena, "verify", 0);
    verify->check = NULL;
    RP_TRY(RP_ARENA_NEW(&verify->arena, train->ring->count, &verify->check));
    for (uint32_t k = 0; k < train->ring->count; k++) {
        const rp_plan_node *node = &train->plan->node[k];
        if (verify->round >= node->hold_count ||
            train->plan->hold[node->hold_first + verify->round].role != RP_ROLE_BOTH) {
            continue;
        }
        rp_check *check = &verify->check[k];
        *check = (rp_check){.phase = RP_CHECK_ASKED,
                            .stage = train->plan->hold[node->hold_first + verify->round].stage,
                            .judge = (k + 1) % train->ring->count};
        const rp_Frame ask = {.which_body = RP_KIND_RECORD, .body.record = {.stage = check->stage}};
        RP_TRY(rp_ring_post(train->ring, k, &ask, NULL));
        *any = true;
    }
fail:
    return err;
}

rp_err rp_verify_begin(rp_train *train) {
    bool any;
    RP_ASSERT(train->verify.is_due && train->ring->count > 1);
    RP_ASSERT(train->position->step == train->verify.step + 1);
    train->verify.round = 0;
    train->verify.told.known = true;
    train->verify.told.microbatches++;
    return begin_round(train, &any);
}

void rp_verify_abandon(rp_train *train) {
    rp_arena_finish(&train->verify.arena);
    train->verify.check = NULL;
    train->verify.is_due = train->verify.alone = false;
}

static uint32_t count_phase(const rp_train *train, rp_check_phase phase) {
    uint32_t count = 0;
    RP_ASSERT(train->verify.check);
    for (uint32_t k = 0; k < train->ring->count; k++) {
        count += train->verify.check[k].phase == phase;
    }
    return count;
}

/* ---- who is wrong ---------------------------------------------------------------------------- */

static bool are_same(const rp_record_digests *a, const rp_record_digests *b) {
    return a->forward == b->forward && a->backward == b->backward && a->gradient == b->gradient;
}

/* Names the first result that differs; later ones may follow from it. */
static const char *find_difference(const rp_record_digests *a, const rp_record_digests *b) {
    return a->forward != b->forward     ? "the forward"
           : a->backward != b->backward ? "the backward"
                                        : "the gradient of the weights";
}

/* Decides after the second judge's answer. errors FAULT, always */
static rp_err give_verdict(rp_train *train, uint32_t board, uint32_t *wrong,
                           rp_FaultClass *fault_class) {
    const rp_check *check = &train->verify.check[board];
    RP_ASSERT(check->answers == 2);
    const rp_record_digests *of = check->digests;
    const uint32_t other = (board + 1) % train->ring->count;
    const bool judge_is_third = check->judge != board;
    const char *what = find_difference(&of[0], &of[1]);
    char micro[48]; /* stages with different sizes record microbatches with one common sample */
    (void)snprintf(micro, sizeof micro, "%s %" PRIu32,
                   train->verify.by_sample ? "the microbatch of sample" : "microbatch",
                   train->verify.micro);
    const char *names[] = {train->ring->board[board].name, train->ring->board[other].name,
                           train->ring->board[check->judge].name};
    const bool first_is_wrong = are_same(&of[1], &of[2]);
    const bool other_is_wrong = judge_is_third && are_same(&of[0], &of[2]);
    if (!first_is_wrong && !other_is_wrong) {
        *fault_class = RP_FAULT_FATAL;
        return rp_fail(RP_ERR_FAULT,
                       "boards %s and %s computed different bits in %s of %s of step %" PRIu64
                       " on stage %u, and %s does not decide it: are their devices and drivers "
                       "the same (ring.verify)",
                       names[0], names[1], what, micro, train->verify.step, check->stage,
                       judge_is_third ? names[2] : "a second try");
    }
    *wrong = first_is_wrong ? board : other;
    *fault_class = RP_FAULT_BOARD;
    train->verify.told.wrong++;
    return rp_fail(RP_ERR_FAULT,
                   "board %s computed %s of %s of step %" PRIu64
                   " on stage %u wrong: %s and %s agree on different bits (ring.verify)",
                   names[first_is_wrong ? 0 : 1], what, micro, train->verify.step, check->stage,
                   names[first_is_wrong ? 1 : 0], names[2]);
}

/* Sends the first record that differs to a second judge, once no check is in progress. */
static rp_err ask_second(rp_train *train) {
    uint32_t k = 0;
    while (train->verify.check[k].phase != RP_CHECK_DIFFERS) {
        k++;
        RP_ASSERT(k < train->ring->count);
    }
    rp_check *check = &train->verify.check[k];
    const uint32_t first = check->judge;
    check->judge = train->ring->count > 2 ? (first + 1) % train->ring->count : k;
    check->sent = 0;
    check->phase = RP_CHECK_HERE;
    return rp_record_event(rp_train_record(train),
                           &(rp_run_event){.kind = RP_EVENT_VERIFY_DIFFERS,
                                           .step = train->verify.step,
                                           .micro = train->verify.micro,
                                           .by_sample = train->verify.by_sample,
                                           .stage = check->stage,
                                           .board = train->ring->board[k].name,
                                           .peer = train->ring->board[first].name,
                                           .judge = train->ring->board[check->judge].name});
}

/* ---- steps ----------------------------------------------------------------------------------- */

static rp_err send_record(rp_train *train, rp_check *check) {
    rp_err err = RP_OK;
    RP_ASSERT(check->sent <= check->total && check->judge < train->ring->count);
    while (check->sent < check->total) {
        const size_t rest = check->total - check->sent;
        const size_t bytes = rest < RP_RING_PIECE_BYTES ? rest : RP_RING_PIECE_BYTES;
        const rp_part part = rp_part_of_bytes(check->bytes + check->sent, bytes);
        rp_Frame frame = {
            .which_body = RP_KIND_RECORD,
            .body.record = {.stage = check->stage, .first = check->sent, .total = check->total}};
        RP_TRY(rp_ring_offer_piece(train->ring, check->judge, &frame, &part));
        check->sent += bytes;
    }
    check->phase = RP_CHECK_SENT;
fail:
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

static rp_err end_round(rp_train *train, bool *over) {
    rp_verify *verify = &train->verify;
    const uint32_t same = count_phase(train, RP_CHECK_DONE);
    bool more;
    rp_err err;
    verify->told.stages += same;
    RP_TRY(rp_record_event(rp_train_record(train),
                           &(rp_run_event){.kind = RP_EVENT_VERIFY_SAME,
                                           .step = verify->step,
                                           .micro = verify->micro,
                                           .by_sample = verify->by_sample,
                                           .verified = same,
                                           .board_count = train->ring->count}));
    verify->round++;
    RP_TRY(begin_round(train, &more));
    *over = !more;
    if (*over) {
        rp_arena_finish(&verify->arena);
        verify->check = NULL;
        verify->is_due = false;
    }
fail:
    return err;
}

rp_err rp_verify_step(rp_train *train, bool *over, uint32_t *wrong, rp_FaultClass *fault_class) {
    rp_err err = RP_OK;
    RP_ASSERT(train->verify.is_due);
    *over = false;
    if (count_phase(train, RP_CHECK_ASKED) > 0) {
        return RP_OK; /* a board does one thing at a time */
    }
    for (uint32_t k = 0; k < train->ring->count; k++) {
        rp_check *check = &train->verify.check[k];
        RP_TRY(check->phase == RP_CHECK_HERE ? send_record(train, check) : RP_OK);
        if (check->phase == RP_CHECK_SENT && check->answers == 2) {
            return give_verdict(train, k, wrong, fault_class);
        }
    }
    if (count_phase(train, RP_CHECK_HERE) + count_phase(train, RP_CHECK_SENT) > 0) {
        return RP_OK;
    }
    RP_TRY(count_phase(train, RP_CHECK_DIFFERS) > 0 ? ask_second(train) : end_round(train, over));
fail:
    return err;
}

rp_err rp_verify_late(const rp_train *train, int64_t waited_ns) {
    for (uint32_t k = 0; k < train->ring->count; k++) {
        const rp_check *check = &train->verify.check[k];
        if (check->phase == RP_CHECK_ASKED || check->phase == RP_CHECK_SENT) {
            const uint32_t board = check->phase == RP_CHECK_ASKED ? k : check->judge;
            return rp_fail(RP_ERR_TIMEOUT, "board %s has not %s for %" PRId64 " s",
                           train->ring->board[board].name,
                           board == k ? "sent its record" : "computed a microbatch again",
                           waited_ns / RP_NS_PER_S);
        }
    }
    return rp_fail(RP_ERR_TIMEOUT, "a board accepts no record for %" PRId64 " s",
                   waited_ns / RP_NS_PER_S);
}

/* ---- messages -------------------------------------------------------------------------------- */

static rp_err take_piece(rp_train *train, uint32_t board, const rp_Record *piece,
                         const rp_part *part) {
    rp_check *check = &train->verify.check[board];
    rp_err err = RP_OK;
    if (!check->bytes) { /* one buffer per record, even if it is sent again */
        if (piece->total > bytes_max(train, check->stage)) {
            return rp_fail(RP_ERR_PEER,
                           "board %s: a record of stage %u cannot have %" PRIu64 " bytes",
                           train->ring->board[board].name, check->stage, piece->total);
        }
        RP_TRY(RP_ARENA_NEW(&train->verify.arena, (size_t)piece->total, &check->bytes));
        check->total = (size_t)piece->total;
        check->digests[0] = (rp_record_digests){piece->forward, piece->backward, piece->gradient};
    }
    if (piece->total != check->total || piece->first != check->got || part->bytes == 0 ||
        part->bytes > check->total - check->got) {
        return rp_fail(RP_ERR_PEER, "board %s: the pieces of its record do not fit",
                       train->ring->board[board].name);
    }
    RP_ASSERT(check->got < check->total);
    memcpy(check->bytes + check->got, part->data, part->bytes);
    check->got += part->bytes;
fail:
    return err;
}

rp_err rp_verify_on_record(rp_train *train, uint32_t board, const rp_message *message) {
    const rp_Record *piece = &message->frame.body.record;
    rp_check *check = &train->verify.check[board];
    rp_err err = RP_OK;
    if (check->phase != RP_CHECK_ASKED || piece->stage != check->stage) {
        return rp_fail(RP_ERR_PEER, "board %s sent a record without being asked",
                       train->ring->board[board].name);
    }
    rp_ring_note_progress(train->ring);
    if (message->part_count == 0 || piece->total == 0) {
        check->phase = RP_CHECK_NONE; /* its part of the step began before the pause */
        return RP_OK;
    }
    RP_TRY(take_piece(train, board, piece, &message->part[0]));
    check->phase = check->got == check->total ? RP_CHECK_HERE : RP_CHECK_ASKED;
fail:
    return err;
}

rp_err rp_verify_on_recomputed(rp_train *train, uint32_t board, const rp_message *message) {
    const rp_Recomputed *said = &message->frame.body.recomputed;
    uint32_t k = 0;
    while (k < train->ring->count &&
           (train->verify.check[k].phase != RP_CHECK_SENT ||
            train->verify.check[k].judge != board || train->verify.check[k].stage != said->stage)) {
        k++;
    }
    if (k == train->ring->count || train->verify.check[k].answers == 2) {
        return rp_fail(RP_ERR_PEER, "board %s computed a record that it was not given",
                       train->ring->board[board].name);
    }
    rp_check *check = &train->verify.check[k];
    check->digests[++check->answers] =
        (rp_record_digests){said->forward, said->backward, said->gradient};
    if (check->answers == 1) {
        check->phase =
            are_same(&check->digests[0], &check->digests[1]) ? RP_CHECK_DONE : RP_CHECK_DIFFERS;
    }
    rp_ring_note_progress(train->ring);
    return RP_OK;
}
