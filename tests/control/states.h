/* A run that a test brings into any state in which the controller waits. */
#ifndef RP_TESTS_CONTROL_STATES_H
#define RP_TESTS_CONTROL_STATES_H

#include "boards.h"

enum { DEEP_LAYERS = 80 };

static test_ring ring; /* large for a stack */
static const char auto_run[] = "schedule={kind: pipedream, advance: auto}";

static const char good_run[] =
    "start hello profile plan assign load train save evaluate train save evaluate close ended";

/* `pipedream` with `advance: auto` waits in `plan`; an average has `statistics`. */
static inline void open_ring(const char *schedule) {
    ring_prepare(&ring, "out");
    if (schedule) {
        ring_set(&ring, schedule);
    }
    ring_open(&ring);
}

/* States that wait for something, how a run gets there, and the text of an interrupt's end. */
typedef enum { PLAIN, FOLLOWS, DEEP, AVERAGES, VERIFIES, COPIES } way;
static const struct {
    rp_control_state_id state;
    way way;
    const char *interrupted;
} waits[] = {
    {RP_CONTROL_START, PLAIN, "interrupted while the agents start"},
    {RP_CONTROL_HELLO, PLAIN, "interrupted while waiting for hello"},
    {RP_CONTROL_PROFILE, PLAIN, "interrupted while waiting for profile"},
    {RP_CONTROL_PLAN, FOLLOWS, "interrupted while waiting for answer to a ping"},
    {RP_CONTROL_ASSIGN, PLAIN, "interrupted while waiting for ready"},
    {RP_CONTROL_TRAIN, PLAIN, "interrupted after step"},
    {RP_CONTROL_EVALUATE, PLAIN, "interrupted in an evaluation"},
    {RP_CONTROL_SAVE, PLAIN, "interrupted after step 4"},
    {RP_CONTROL_DRAIN, FOLLOWS, "interrupted after step"},
    {RP_CONTROL_LOAD, DEEP, "interrupted after step 0"},
    {RP_CONTROL_STATISTICS, AVERAGES, "interrupted after step"},
    {RP_CONTROL_VERIFY, VERIFIES, "interrupted after step"},
    {RP_CONTROL_COPY, COPIES, "interrupted after step 2"},
};
enum { WAITS = sizeof waits / sizeof *waits };

/* Weights of a model with more tensors than a board's link takes at once. */
static inline void make_deep_weights(char *path, size_t bytes) {
    char made[600];
    (void)snprintf(path, bytes, "%s/deep.safetensors", folder);
    if (access(path, F_OK) == 0) {
        return;
    }
    ring_prepare_deep(&ring, "deep", DEEP_LAYERS);
    ring_set(&ring, "train.epochs=1");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 400));
    (void)snprintf(made, sizeof made, "%s/weights.safetensors", ring.out);
    assert_int_equal(rename(made, path), 0);
    ring_close(&ring);
}

static inline void open_way(way how) {
    static char init[700] = "train.init=";
    const size_t word = strlen("train.init=");
    if (how == DEEP) {
        make_deep_weights(init + word, sizeof init - word);
        ring_prepare_deep(&ring, "out", DEEP_LAYERS);
        ring_set(&ring, init);
        ring_open(&ring);
    } else {
        open_ring(how == FOLLOWS    ? auto_run
                  : how == AVERAGES ? "schedule=ea-pipe"
                  : how == VERIFIES ? "ring.verify=1/2"
                  : how == COPIES   ? "ring.copy_steps=2"
                                    : NULL);
    }
}

static inline void reach_row(size_t i) {
    open_way(waits[i].way);
    ring.up = waits[i].state != RP_CONTROL_START;
    if (waits[i].state == RP_CONTROL_DRAIN) {
        assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
        ring.round_ns = SLOW_NS; /* the links have become slow */
    }
    assert_true(ring_reach(&ring, waits[i].state));
}

#endif
