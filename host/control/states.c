/* The table of the controller's states. */
#include "control/steps.h"

#define AFTER(id) (UINT32_C(1) << RP_CONTROL_##id)

static const int64_t START_NS = 300 * RP_NS_PER_S;
static const int64_t ADOPT_NS = 10 * RP_NS_PER_S;
/* Declare the ring stalled after this long without a report. */
static const int64_t STALL_NS = 900 * RP_NS_PER_S;
static const int64_t SAVE_NS = 600 * RP_NS_PER_S;
/* The other lanes may build kernels or be in recovery. */
static const int64_t ROUND_NS = 3600 * RP_NS_PER_S;

static rp_err do_nothing(rp_controller *c) {
    (void)c;
    return RP_OK;
}

/* clang-format off */
const rp_control_state rp_control_states[RP_CONTROL_STATES] = {
    [RP_CONTROL_START] = {"start", "agents", START_NS, AFTER(ADOPT) | AFTER(HELLO),
        "interrupted while the agents start",
        rp_start_enter, rp_start_step, RP_HOLDS_NOTHING, RP_DONE_NONE, RP_LATE_AGENTS},
    [RP_CONTROL_ADOPT] = {"adopt", "what the boards hold", ADOPT_NS, AFTER(HELLO) | AFTER(SAVE),
        "interrupted while boards are asked what they hold",
        rp_adopt_enter, rp_adopt_step, RP_HOLDS_NOTHING, RP_DONE_NONE, RP_LATE_HELD},
    [RP_CONTROL_HELLO] = {"hello", "hello", RP_RING_HELLO_NS,
        AFTER(PROFILE) | AFTER(PLAN) | AFTER(ASSIGN) | AFTER(RESTART) | AFTER(RESCUE),
        "interrupted while waiting for hello",
        rp_hello_enter, rp_hello_step, RP_HOLDS_NOTHING, RP_DONE_GREETED, RP_LATE_HELLO},
    [RP_CONTROL_PROFILE] = {"profile", "profile", RP_RING_BUILD_NS, AFTER(PLAN) | AFTER(CLOSE),
        "interrupted while waiting for profile",
        rp_profile_enter, rp_profile_step, RP_HOLDS_NOTHING, RP_DONE_PROFILED, RP_LATE_PROFILE},
    [RP_CONTROL_PLAN] = {"plan", "answer to a ping", RP_RING_SILENT_NS,
        AFTER(ASSIGN) | AFTER(DRAIN) | AFTER(TRAIN),
        "interrupted while waiting for answer to a ping",
        rp_plan_enter, rp_plan_step, RP_HOLDS_NOTHING, RP_DONE_ANSWERED, RP_LATE_BOARD},
    [RP_CONTROL_ASSIGN] = {"assign", "ready", RP_RING_BUILD_NS,
        AFTER(LOAD) | AFTER(RESTART) | AFTER(CLOSE),
        "interrupted while waiting for ready",
        rp_assign_enter, rp_assign_step, RP_HOLDS_NOTHING, RP_DONE_READY, RP_LATE_BOARD},
    [RP_CONTROL_LOAD] = {"load", "room for tensors", RP_RING_HELLO_NS,
        AFTER(PLAN) | AFTER(TRAIN) | AFTER(DRAIN) | AFTER(EVALUATE) | AFTER(SAVE) | AFTER(ROUND) |
            AFTER(CLOSE),
        NULL,
        rp_load_enter, rp_load_step, RP_HOLDS_LOAD, RP_DONE_NONE, RP_LATE_LOAD},
    [RP_CONTROL_TRAIN] = {"train", "the end of the segment", STALL_NS,
        AFTER(STATISTICS) | AFTER(SAVE) | AFTER(VERIFY) | AFTER(COPY), NULL,
        rp_segment_train_enter, rp_segment_train_step, RP_HOLDS_SEGMENT, RP_DONE_FINISHED,
        RP_LATE_REPORTS},
    [RP_CONTROL_EVALUATE] = {"evaluate", "the end of the evaluation", STALL_NS,
        AFTER(HELLO) | AFTER(PLAN) | AFTER(TRAIN) | AFTER(SAVE) | AFTER(DRAIN) | AFTER(CLOSE),
        "interrupted in an evaluation",
        rp_segment_evaluate_enter, rp_segment_evaluate_step, RP_HOLDS_NOTHING, RP_DONE_FINISHED,
        RP_LATE_REPORTS},
    [RP_CONTROL_STATISTICS] = {"statistics", "the end of the pass", STALL_NS, AFTER(SAVE), NULL,
        rp_segment_statistics_enter, rp_segment_statistics_step, RP_HOLDS_NOTHING, RP_DONE_FINISHED,
        RP_LATE_REPORTS},
    [RP_CONTROL_SAVE] = {"save", "tensors", SAVE_NS,
        AFTER(HELLO) | AFTER(PLAN) | AFTER(TRAIN) | AFTER(DRAIN) | AFTER(EVALUATE) |
            AFTER(ROUND) | AFTER(CLOSE),
        NULL,
        rp_save_enter, rp_save_step, RP_HOLDS_SAVE, RP_DONE_SAVED, RP_LATE_SAVE},
    [RP_CONTROL_ROUND] = {"round", "other lanes", ROUND_NS, AFTER(LOAD),
        "interrupted while the lanes are averaged",
        rp_round_enter, rp_round_step, RP_HOLDS_NOTHING, RP_DONE_NONE, RP_LATE_LANES},
    [RP_CONTROL_VERIFY] = {"verify", "records, and what other boards make of them",
        RP_RING_BUILD_NS, AFTER(TRAIN) | AFTER(STATISTICS) | AFTER(SAVE) | AFTER(COPY), NULL,
        rp_segment_verify_enter, rp_segment_verify_step, RP_HOLDS_RECORDS, RP_DONE_NONE,
        RP_LATE_RECORDS},
    [RP_CONTROL_DRAIN] = {"drain", "empty pipes", STALL_NS, AFTER(STATISTICS) | AFTER(SAVE), NULL,
        rp_segment_drain_enter, rp_segment_train_step, RP_HOLDS_SEGMENT, RP_DONE_FINISHED,
        RP_LATE_REPORTS},
    [RP_CONTROL_COPY] = {"copy", "copies", SAVE_NS,
        AFTER(TRAIN) | AFTER(STATISTICS) | AFTER(SAVE), NULL,
        rp_copy_enter, rp_copy_step, RP_HOLDS_NOTHING, RP_DONE_COPIED, RP_LATE_BOARD},
    [RP_CONTROL_RESCUE] = {"rescue", "what copies have", SAVE_NS,
        AFTER(PROFILE) | AFTER(PLAN) | AFTER(ASSIGN) | AFTER(RESTART),
        "interrupted while copies are fetched",
        rp_rescue_enter, rp_rescue_step, RP_HOLDS_RESCUE, RP_DONE_SAVED, RP_LATE_SAVE},
    [RP_CONTROL_RESTART] = {"restart", "agents", START_NS, AFTER(HELLO),
        "interrupted while lost agents start again",
        rp_restart_enter, rp_start_step, RP_HOLDS_NOTHING, RP_DONE_NONE, RP_LATE_AGENTS},
    [RP_CONTROL_RECOVER] = {"recover", "", 0, AFTER(RESTART) | AFTER(HELLO) | AFTER(CLOSE), NULL,
        rp_recover_enter, rp_recover_enter, RP_HOLDS_NOTHING, RP_DONE_NONE, RP_LATE_BOARD},
    [RP_CONTROL_CLOSE] = {"close", "boards to end", 0, AFTER(ENDED), NULL,
        rp_close_enter, rp_close_step, RP_HOLDS_NOTHING, RP_DONE_NONE, RP_LATE_BOARD},
    [RP_CONTROL_ENDED] = {"ended", "", 0, 0, NULL, do_nothing, do_nothing, RP_HOLDS_NOTHING,
        RP_DONE_NONE, RP_LATE_BOARD},
};
/* clang-format on */
