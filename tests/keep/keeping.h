/* A ring of two boards whose ends of the links the test holds (far.h), a plan with a stage for
 * each, and the room `keep` on them. Time is stepped; what boards say is handed in by the test. */
#ifndef RP_TESTS_KEEP_KEEPING_H
#define RP_TESTS_KEEP_KEEPING_H

#include "far_run.h"

#include "checkpoint/checkpoint_own.h"
#include "keep/adoption.h"
#include "keep/copies.h"
#include "ring/identity.h"

enum { BOARDS = 2, LAYERS = 24, FLOATS_MAX = 1 << 17 };

static const uint32_t first_layers[] = {0, 1, LAYERS};
static const rp_cut cut = {.stage_count = BOARDS, .first = first_layers};
static rp_keep *keep;

/* The first layer has more weights than one piece of a load, and the second stage has more tensors
 * than a link takes at a time. */
static inline void write_model(void) {
    char text[LAYERS * 48] = "input: data\n"
                             "layers:\n"
                             "  - {name: fc1, kind: dense, out: 512}\n"
                             "  - {name: fc2, kind: dense, out: 8}\n";
    size_t used = strlen(text);
    for (uint32_t i = 0; i < LAYERS - 2; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "  - {name: d%u, kind: dense, out: %s}\n", i,
                                 i < LAYERS - 3 ? "8" : "classes");
    }
    write_text("model.yaml", text);
}

static inline void open_keep_as(const char *set, bool resumes) {
    const char *const sets[] = {"train.epochs=4", set};
    const char *path = write_run(GPIPE);
    write_model();
    expect_ok(rp_runfile_read(&arena, path, sets, set ? 2 : 1, &run));
    open_host(false);
    open_ring_of(&run);
    ring.identity = (rp_run_identity){.id = 7, .term = 2};
    connect_ring();
    open_run_folder();
    make_plan(&cut, NULL);
    const rp_keep_needs needs = {
        .run = &run, .ring = &ring, .folder = run_folder, .resumes = resumes};
    expect_ok(rp_keep_open(&arena, &needs, &keep));
    pass_ms(5);
}

static inline void open_keep(const char *set) {
    open_keep_as(set, false);
}

static inline void close_keep(void) {
    rp_ring_disconnect(&ring); /* links borrow tensors that are loaded */
    rp_keep_close(keep);
    close_far_run();
}

/* ---- saves ----------------------------------------------------------------------------------- */

static inline rp_position position_at(uint64_t step) {
    for (uint32_t k = 0; k < BOARDS; k++) {
        ring.board[k].train.applied[0] = step;
    }
    return (rp_position){.step = step, .fill_step = step};
}

static inline rp_err begin_save(uint64_t step, rp_keep_outcome *outcome) {
    const rp_position position = position_at(step);
    const rp_keep_save_order order = {.plan = plan, .position = &position};
    return rp_keep_begin_save(keep, &order, outcome);
}

/* Floats [first, first + count) of a tensor, all of them `value`. */
static inline rp_err say_piece(uint32_t board, const char *name, size_t first, size_t count,
                               float value, rp_keep_outcome *outcome) {
    static float floats[FLOATS_MAX];
    assert_true(count <= FLOATS_MAX);
    for (size_t i = 0; i < count; i++) {
        floats[i] = value;
    }
    rp_message message = {.frame = {.which_body = RP_KIND_TENSOR, .body.tensor = {.first = first}},
                          .part_count = 1};
    message.part[0] = rp_part_of_array(RP_DTYPE_F32, floats, count);
    (void)snprintf(message.frame.body.tensor.name, sizeof message.frame.body.tensor.name, "%s",
                   name);
    return rp_keep_on_tensor(keep, board, &message, outcome);
}

/* Every tensor of a stage, each in two pieces, the second one first. */
static inline uint64_t say_stage(uint32_t board, uint32_t stage, float value) {
    rp_checkpoint_list list;
    rp_keep_outcome outcome;
    uint64_t floats = 0;
    expect_ok(rp_checkpoint_make_list(&arena, &run, true, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        const uint32_t layer = run.model->param[list.param[i]].layer;
        const size_t count = list.entry[i].bytes / sizeof(float);
        if (layer >= cut.first[stage] && layer < cut.first[stage + 1]) {
            const size_t half = count / 2;
            expect_ok(say_piece(board, list.entry[i].name, half, count - half, value, &outcome));
            expect_ok(say_piece(board, list.entry[i].name, 0, half, value, &outcome));
            floats += count;
        }
    }
    return floats;
}

static inline void say_stages(float value) {
    for (uint32_t k = 0; k < BOARDS; k++) {
        (void)say_stage(k, k, value);
        expect_ok(rp_keep_on_end(keep, k));
    }
}

/* The boards have sent everything: commit, if there is a file. */
static inline rp_keep_outcome end_save(void) {
    const char *not_finite;
    rp_keep_outcome outcome;
    expect_ok(rp_keep_step_save(keep, &not_finite, &outcome));
    if (outcome == RP_KEEP_WHOLE) {
        expect_ok(rp_keep_commit_save(keep, &outcome));
    }
    rp_keep_abandon_save(keep);
    return outcome;
}

static inline void save_at(uint64_t step, float value) {
    rp_keep_outcome outcome;
    expect_ok(begin_save(step, &outcome));
    assert_int_equal(outcome, RP_KEEP_WAITS);
    say_stages(value);
    assert_int_equal(end_save(), RP_KEEP_DONE);
    assert_int_equal(rp_keep_saved_step(keep), step);
}

#endif
