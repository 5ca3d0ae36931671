/* A ring of two boards whose ends of the links the test holds, a plan with a stage for each, and
 * the room `keep` on them. Time is stepped; what boards say is handed in by the test. */
#ifndef RP_TESTS_KEEP_KEEPING_H
#define RP_TESTS_KEEP_KEEPING_H

#include "folder.h"

#include <ftw.h>

#include "checkpoint/checkpoint_own.h"
#include "keep/adopt.h"
#include "keep/copies.h"
#include "planning/planfile.h"
#include "ring/identity.h"
#include "transport/inproc.h"

enum { BOARDS = 2, LAYERS = 24, FLOATS_MAX = 1 << 17 };

/* The end of a board: the orders that it has got. */
typedef struct {
    rp_link *control;
    uint32_t orders[64]; /* by kind */
    rp_Frame last[64];   /* the newest, by kind */
    uint64_t floats;     /* of tensors */
    bool is_deaf;        /* it does not step its link */
} far_board;

static rp_clock test_clock;
static rp_keypair keys;
static rp_hub *hub;
static rp_transport *transport;
static rp_links *links;
static rp_runfile run;
static rp_ring ring;
static far_board far[BOARDS];
static rp_folder *run_folder;
static rp_plan *plan;
static rp_cut cut;
static rp_keep *keep;

static inline void take_orders(far_board *board) {
    rp_message *message;
    while (rp_link_recv(board->control, &message) == RP_OK) {
        const rp_kind kind = rp_frame_kind(&message->frame);
        assert_true(kind < sizeof board->orders / sizeof *board->orders);
        board->orders[kind]++;
        board->last[kind] = message->frame;
        board->floats += kind == RP_KIND_TENSOR ? message->part[0].bytes / sizeof(float) : 0;
        rp_link_release(board->control, &message);
    }
}

/* Rounds of a millisecond, in which links move; the room does nothing. */
static inline void pass_ms(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
        for (uint32_t k = 0; k < BOARDS; k++) {
            expect_ok(k < ring.count ? rp_ring_step(&ring, k) : RP_OK);
            if (!far[k].is_deaf) {
                expect_ok(rp_link_step(far[k].control));
                take_orders(&far[k]);
            }
        }
        test_clock.stepped_ns += RP_NS_PER_MS;
    }
    rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
}

static inline void pass_s(int64_t seconds) {
    test_clock.stepped_ns += seconds * RP_NS_PER_S;
    rp_ring_begin_round(&ring, rp_clock_now_ns(&test_clock));
}

static inline void open_links(void) {
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    expect_ok(rp_keys_make(&keys));
    expect_ok(rp_hub_new(&arena, 0, &hub));
    const rp_transport_options inproc = {.clock = &test_clock, .hub = hub};
    expect_ok(rp_transport_start(&arena, "inproc", &inproc, &transport));
    const rp_links_options options = {.clock = &test_clock, .transport = transport};
    expect_ok(rp_links_open(&arena, &options, &links));
}

static inline void open_board(uint32_t k) {
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "tcp://board%u:1", k);
    const rp_link_options options = {.name = "control",
                                     .bind = endpoint,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1 << 20};
    far[k] = (far_board){0};
    expect_ok(rp_link_open(links, &options, &far[k].control));
    rp_ring_set_address(&ring, k, endpoint, keys.public_text);
}

static inline void open_folder(void) {
    static char out[512]; /* borrowed by the folder */
    (void)snprintf(out, sizeof out, "%s", in_folder("out"));
    const rp_folder_choice choice = {
        .out = out, .model = "m", .schedule = "gpipe", .temporary = true};
    const rp_record_totals start = {0};
    expect_ok(rp_folder_open(&arena, &run_folder));
    expect_ok(rp_folder_choose(run_folder, &choice));
    const rp_record_run record = {.model = "m",
                                  .schedule = "gpipe",
                                  .shape = rp_runfile_sched_shape(&run, 0),
                                  .classes = true,
                                  .folder = rp_folder_paths_of(run_folder)->folder,
                                  .clock = &test_clock};
    expect_ok(rp_folder_open_record(run_folder, &record, &start));
}

/* The first layer has more weights than one piece of a load, and the second stage has more tensors
 * than a link takes at a time. */
static inline void write_model(void) {
    static const char head[] = "input: data\n"
                               "layers:\n"
                               "  - {name: fc1, kind: dense, out: 512}\n"
                               "  - {name: fc2, kind: dense, out: 8}\n";
    static const char tail[] = "  - {name: out, kind: dense, out: classes}\n";
    (void)unlink(in_folder("model.yaml"));
    append("model.yaml", head, sizeof head - 1);
    for (uint32_t i = 0; i < LAYERS - 3; i++) {
        char line[80];
        const int used = snprintf(line, sizeof line, "  - {name: d%u, kind: dense, out: 8}\n", i);
        append("model.yaml", line, (size_t)used);
    }
    append("model.yaml", tail, sizeof tail - 1);
}

static inline void read_run_with(const char *set) {
    char text[1024];
    write_model();
    (void)unlink(in_folder("run.yaml"));
    const int used = snprintf(text, sizeof text,
                              "model: %s/model.yaml\n"
                              "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                              "ring: {boards: 2}\n"
                              "train: {epochs: 4, batch: 16, microbatch: 8, seed: 1}\n"
                              "loss: cross-entropy\n"
                              "schedule: gpipe\n"
                              "optimizer: {kind: sgd, lr: 0.1}\n",
                              folder);
    append("run.yaml", text, (size_t)used);
    (void)snprintf(text, sizeof text, "%s", in_folder("run.yaml"));
    expect_ok(rp_runfile_read(&arena, text, &set, set != NULL, &run));
}

static inline void open_keep_as(const char *set, bool resumes) {
    static const uint32_t first[] = {0, 1, LAYERS};
    static const char *const names[] = {"0", "1"};
    read_run_with(set);
    open_links();
    ring = (rp_ring){0};
    expect_ok(rp_ring_open(&arena, &(rp_ring_needs){.run = &run, .clock = &test_clock}, &ring));
    ring.identity = (rp_run_identity){.id = 7, .term = 2};
    for (uint32_t k = 0; k < BOARDS; k++) {
        open_board(k);
    }
    expect_ok(rp_ring_connect(&ring, links, false));
    open_folder();
    cut = (rp_cut){.stage_count = BOARDS, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    const rp_keep_needs needs = {
        .run = &run, .ring = &ring, .folder = run_folder, .resumes = resumes};
    expect_ok(rp_keep_open(&arena, &needs, &keep));
    pass_ms(5);
}

static inline void open_keep(const char *set) {
    open_keep_as(set, false);
}

static inline int remove_entry(const char *path, const struct stat *status, int type,
                               struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void close_keep(void) {
    rp_keep_close(keep);
    rp_ring_disconnect(&ring);
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_link_close(&far[k].control);
    }
    expect_ok(
        rp_folder_close_record(run_folder, &(rp_record_end){.status = "finished", .note = ""}));
    rp_folder_leave(run_folder);
    rp_runfile_close(&run);
    rp_links_close(&links);
    rp_transport_finish(&transport);
    rp_hub_finish(&hub);
    (void)nftw(in_folder("out"), remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline bool is_logged(const char *text) {
    return strstr(slurp("out/log.jsonl", NULL), text) != NULL;
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
