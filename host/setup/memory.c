/* Compares the memory that a run needs with that of boards and machine, before a board allocates
 * any. Later plans are not checked, because boards then hold memory already. With `advance: auto`
 * the boards decide: they may reduce the microbatches in flight. */
#include <stdio.h>

#include "planning/fit_memory.h"
#include "planning/least_memory.h"
#include "setup/setup_own.h"

static const double MB = 1e-6;
static const char expected[] =
    "Expected a smaller train.microbatch, a smaller net, an optimizer with fewer states, or more "
    "memory";

static bool is_due(const rp_arrangement *a) {
    return !a->has_begun && !a->profiles && !a->run.method.advance_auto;
}

/* Memory of the board's device in bytes, as reported; 0: unknown. The planner handles the run
 * file's limits. */
static uint64_t limit_of(const rp_arrangement *a, uint32_t board) {
    return a->ring->board[board].hardware.memory_bytes;
}

/* Local boards share this machine's memory, also with other lanes of a run. 0: unknown, or
 * devices have their own memory. */
static uint64_t limit_of_machine(const rp_arrangement *a) {
    const uint32_t lanes = a->run.lanes.count > 0 ? a->run.lanes.count : 1;
    for (uint32_t k = 0; k < a->ring->count; k++) {
        if (a->ring->board[k].hardware.device_memory != RP_DEVICE_MEMORY_SHARED) {
            return 0;
        }
    }
    return a->ring->spawner ? a->ring->spawner->memory_bytes / lanes : 0;
}

/* Checks for any cut, before layers are measured, which also takes memory. */
rp_err rp_arrangement_check_least_memory(const rp_arrangement *a) {
    const uint64_t machine = limit_of_machine(a);
    rp_least_memory least;
    uint64_t all = 0;
    bool known = true;
    rp_arena arena;
    rp_err err;
    if (!is_due(a)) {
        return RP_OK;
    }
    for (uint32_t k = 0; k < a->ring->count; k++) {
        all += limit_of(a, k);
        known = known && limit_of(a, k) > 0;
    }
    all = machine > 0 && (machine < all || !known) ? machine : all;
    rp_arena_init(&arena, "memory", 0);
    RP_TRY(rp_least_memory_open(&arena, &a->run, a->run.stages, &least));
    const double needs = rp_least_memory_of(&least, 0, a->run.model->layer_count, 0);
    if ((known || machine > 0) && needs > (double)all) {
        err = rp_fail(RP_ERR_USAGE,
                      "plan: %s needs %.0f MB of memory at least, on all boards together, and "
                      "they have %.0f%s. %s",
                      a->run.model_name, needs * MB, (double)all * MB,
                      machine > 0 ? " (available on this machine)" : "", expected);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static void list_needs(const rp_arrangement *a, const uint64_t *needs, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t k = 0; k < a->ring->count && used + 1 < bytes; k++) {
        const int wrote = snprintf(text + used, bytes - used, "%s%s %.0f", k > 0 ? ", " : "",
                                   a->ring->board[k].name, (double)needs[k] * MB);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static rp_err compare_needs(const rp_arrangement *a, const uint64_t *needs) {
    const uint64_t machine = limit_of_machine(a);
    uint64_t sum = 0;
    char text[240];
    for (uint32_t k = 0; k < a->ring->count; k++) {
        if (limit_of(a, k) > 0 && needs[k] > limit_of(a, k)) {
            return rp_fail(RP_ERR_USAGE,
                           "plan: board %s needs %.0f MB of device memory, and its device has "
                           "%.0f. %s",
                           a->ring->board[k].name, (double)needs[k] * MB,
                           (double)limit_of(a, k) * MB, expected);
        }
        sum += needs[k];
    }
    if (machine > 0 && sum > machine) {
        list_needs(a, needs, text, sizeof text);
        return rp_fail(RP_ERR_USAGE,
                       "plan: the boards on this machine need %.0f MB of its memory (%s), and "
                       "%.0f are available. %s",
                       (double)sum * MB, text, (double)machine * MB, expected);
    }
    return RP_OK;
}

rp_err rp_arrangement_check_memory(const rp_arrangement *a) {
    bool known = limit_of_machine(a) > 0;
    uint64_t *needs;
    rp_arena arena;
    rp_err err;
    for (uint32_t k = 0; k < a->ring->count; k++) {
        known = known || limit_of(a, k) > 0;
    }
    if (!is_due(a) || !known) {
        return RP_OK;
    }
    rp_arena_init(&arena, "memory", 0);
    RP_TRY(RP_ARENA_NEW(&arena, a->plan->node_count, &needs));
    RP_TRY(rp_fit_memory_needs(&a->run, &a->plan_cut, a->plan, needs));
    err = compare_needs(a, needs);
fail:
    rp_arena_finish(&arena);
    return err;
}
