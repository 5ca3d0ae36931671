/* For tests of rooms that train with a ring: far.h with a run that is open, its folder with the
 * record, and a plan. */
#ifndef RP_TESTS_FAR_RUN_H
#define RP_TESTS_FAR_RUN_H

#include "events.h"
#include "far.h"
#include "open_run.h"

#include "folder/folder.h"
#include "planning/planfile.h"

static rp_folder *run_folder;
static rp_plan *plan;

static inline void open_run_folder(void) {
    static char out[512]; /* borrowed by the folder */
    (void)snprintf(out, sizeof out, "%s", in_folder("out"));
    const rp_folder_choice choice = {
        .out = out, .model = "m", .schedule = "gpipe", .temporary = true};
    expect_ok(rp_folder_open(&arena, &run_folder));
    expect_ok(rp_folder_choose(run_folder, &choice));
    const rp_record_run record = {.model = "m",
                                  .schedule = "gpipe",
                                  .shape = rp_runfile_sched_shape(&run, 0),
                                  .classes = true,
                                  .folder = rp_folder_paths_of(run_folder)->folder,
                                  .clock = &test_clock};
    expect_ok(rp_folder_open_record(run_folder, &record, &(rp_record_totals){0}));
}

/* A stage for each of the ring's first boards. */
static inline void make_plan(const rp_cut *cut, const rp_profile *profile) {
    static const char *names[FAR_MAX];
    for (uint32_t k = 0; k < ring.count; k++) {
        names[k] = ring.board[k].name;
    }
    const rp_planfile chosen = {.run = &run, .cut = cut, .board = names, .profile = profile};
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
}

static inline void close_far_run(void) {
    close_host();
    expect_ok(
        rp_folder_close_record(run_folder, &(rp_record_end){.status = "finished", .note = ""}));
    rp_folder_leave(run_folder);
    rp_runfile_close(&run);
    (void)remove_tree(in_folder("out"));
}

#endif
