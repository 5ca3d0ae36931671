/* For tests: the run file of run_of.h, which is open until the test ends. */
#ifndef RP_TESTS_OPEN_RUN_H
#define RP_TESTS_OPEN_RUN_H

#include "folder.h"

#include "run_of.h"

static rp_runfile run;

/* With these assignments. */
static inline void read_gpipe(const char *const *set, uint32_t count) {
    expect_ok(rp_runfile_read(&arena, write_run(GPIPE), set, count, &run));
}

static inline int close_run(void **state) {
    rp_runfile_close(&run);
    return teardown(state);
}

#endif
