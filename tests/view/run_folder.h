/* A run folder with two boards, as a controller writes it. */
#ifndef RP_TESTS_VIEW_RUN_FOLDER_H
#define RP_TESTS_VIEW_RUN_FOLDER_H

#include "folder.h"

#include <math.h>

#include "runs/owner.h"
#include "view/run_files.h"

static inline void write_plan(void) {
    (void)write_text(
        "plan.json",
        "{\"model\":\"mlp\",\"schedule\":\"gpipe\",\"steps\":40,\"stages\":["
        "{\"layers\":[\"fc1\",\"relu1\"]},{\"layers\":[\"fc2\"]}],\"nodes\":["
        "{\"name\":\"left\",\"holds\":[{\"stage\":0,\"role\":\"both\"}]},"
        "{\"name\":\"right \\\"2\\\"\",\"holds\":[{\"stage\":1,\"role\":\"both\"}]}]}");
    (void)write_text("run.yaml", "");
}

static inline void add_steps(uint32_t first, uint32_t last) {
    for (uint32_t step = first; step <= last; step++) {
        char line[200];
        const int used = snprintf(line, sizeof line,
                                  "{\"step\":%u,\"epoch\":%u,\"loss\":%.3f,\"lr\":0.1,"
                                  "\"samples_per_s\":50.0,\"time_s\":%.1f}\n",
                                  step, step / 20, 10.0 / step, step * 0.5);
        append("log.jsonl", line, (size_t)used);
    }
}

/* State of two boards as now.json of this process. */
static inline void write_now(void) {
    char text[2048];
    (void)snprintf(
        text, sizeof text,
        "{\"version\":1,\"pid\":%d,\"run_id\":\"1\",\"written_s\":1.0,\"state\":\"train\","
        "\"step\":12,\"samples\":768,\"left_s\":14.5,\"boards\":["
        "{\"name\":\"left\",\"state\":\"training\",\"op\":\"forward\",\"busy\":0.75,"
        "\"silent_s\":0.1,\"memory_bytes\":1048576,\"staleness\":1,"
        "\"op_s\":{\"forward\":2.5,\"backward\":4.0,\"update\":0.5},\"idle_s\":3.0,"
        "\"energy_j\":41.5},"
        "{\"name\":\"right \\\"2\\\"\",\"state\":\"silent\",\"busy\":7,\"silent_s\":4.5,"
        "\"heat_c\":61.5}],\"wires\":[{\"kind\":\"hop\",\"from\":\"left\","
        "\"to\":\"right \\\"2\\\"\",\"bytes\":5000,\"use\":0.25,\"rate_bytes_s\":1000000,"
        "\"resent\":2,\"resets\":0,\"delay_s\":0.001,\"delay_95_s\":0.004}]}",
        (int)getpid());
    (void)write_text("now.json", text);
}

static inline rp_view_run run_here(void) {
    rp_view_run run = {.folder = folder, .name = "a run"};
    rp_view_log_begin(&run.log.totals);
    return run;
}

#endif
