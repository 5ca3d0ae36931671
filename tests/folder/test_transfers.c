/* The two ends of every parcel find each other, whichever board's trace comes first. */
#include "../plan/plans.h"

#include <jansson.h>

#include "folder.h"
#include "folder/transfers.h"

enum { SLOTS_MAX = 4096 };

typedef struct {
    const rp_plan *plan;
    rp_sched_slot slot[SLOTS_MAX];
    uint32_t slots, parcels;
} played;

static void keep_op(void *context, const rp_sched_slot *slot) {
    played *p = context;
    assert_true(p->slots < SLOTS_MAX);
    p->slot[p->slots++] = *slot;
}

static void count_parcel(void *context, const rp_sched_transfer_slot *slot) {
    played *p = context;
    const rp_plan_edge *edge = &p->plan->edge[slot->edge];
    p->parcels += edge->from != RP_PLAN_HOST && edge->from != edge->to;
}

static void play(rp_arena *own, const rp_plan *plan, played *out) {
    const rp_sched_visitor visit = {.op = keep_op, .transfer = count_parcel, .context = out};
    rp_sched_facts facts;
    *out = (played){.plan = plan};
    expect_ok(rp_plan_replay(own, plan, NULL, true, &visit, RP_NO_NODE, &facts));
    assert_true(out->parcels > 0);
}

static rp_record *open_record(uint32_t boards) {
    static const rp_record_totals start = {0};
    const rp_record_run run = {
        .model = "m",
        .schedule = "s",
        .shape = {.stages = boards, .step_end = 5, .epoch_samples = 20, .batch = 8, .micro = 2},
        .folder = folder,
        .trace_bytes = 1 << 26};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    return record;
}

static void close_record(rp_record **record) {
    const rp_record_end end = {.status = "finished", .note = ""};
    expect_ok(rp_record_close(record, &end));
}

/* All ops of one node, then of the next; from the last node on where `turned`. */
static void take_all(rp_transfers *transfers, const played *p, bool turned, rp_record *record) {
    static const rp_model none = {0};
    const uint32_t nodes = p->plan->node_count;
    for (uint32_t i = 0; i < nodes; i++) {
        const uint32_t node = turned ? nodes - 1 - i : i;
        for (uint32_t s = 0; s < p->slots; s++) {
            const rp_sched_slot *slot = &p->slot[s];
            const rp_sink_op op = {.stage = slot->node,
                                   .part = slot->stage,
                                   .kind = slot->op.kind,
                                   .step = slot->op.step,
                                   .samples = slot->op.samples,
                                   .start_ns = (int64_t)(1e6 * slot->start),
                                   .end_ns = (int64_t)(1e6 * slot->end)};
            if (slot->node == node) {
                expect_ok(rp_transfers_take(transfers, p->plan, &none, 8, &op, record));
            }
        }
    }
}

/* Arrows of the trace: none goes back in time, and each has both its ends. */
static uint32_t count_arrows(void) {
    json_t *events = json_loads(slurp("trace.json", NULL), 0, NULL);
    uint32_t count[2] = {0, 0};
    double start = 0;
    assert_non_null(events);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const char *kind = json_string_value(json_object_get(event, "ph"));
        const double ts = json_number_value(json_object_get(event, "ts"));
        if (strcmp(kind, "s") == 0) {
            count[0]++;
            start = ts;
        } else if (strcmp(kind, "f") == 0) {
            count[1]++;
            assert_true(ts >= start);
        }
    }
    json_decref(events);
    assert_int_equal(count[0], count[1]);
    return count[0];
}

static void every_parcel_once(void **state) {
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "pipeoptim",
                                            "{kind: interleaved-1f1b, chunks: 2}"};
    static played p;
    for (uint32_t i = 0; i < 2 * sizeof schedules / sizeof *schedules; i++) {
        const plan_case c = {schedules[i / 2], 4, 8, 2, 20, 5};
        rp_transfers *transfers = NULL;
        rp_arena own;
        rp_plan *plan;
        rp_arena_init(&own, "test", 0);
        expect_ok(make_plan(&own, &c, &plan));
        play(&own, plan, &p);
        rp_record *record = open_record(4);
        expect_ok(rp_transfers_open(&own, &transfers));
        take_all(transfers, &p, i % 2, record);
        rp_transfers_close(&transfers);
        rp_transfers_close(&transfers);
        close_record(&record);
        assert_int_equal(count_arrows(), p.parcels);
        rp_arena_finish(&own);
    }
}

/* Boards that begin anew do their ops again: an end of before meets none of after. */
static void ends_are_forgotten(void **state) {
    (void)state;
    static const rp_model none = {0};
    const plan_case c = {"gpipe", 2, 8, 2, 20, 5};
    const rp_sink_op sent = {.kind = RP_OP_FORWARD, .samples = {0, 2}, .end_ns = 10};
    const rp_sink_op taken = {
        .stage = 1, .part = 1, .kind = RP_OP_FORWARD, .samples = {0, 2}, .start_ns = 5};
    rp_sink_op other = taken;
    rp_transfers *transfers = NULL;
    rp_arena own;
    rp_plan *plan;
    rp_arena_init(&own, "test", 0);
    expect_ok(make_plan(&own, &c, &plan));
    expect_ok(rp_transfers_open(&own, &transfers));
    rp_record *record = open_record(2);
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &sent, record));
    rp_transfers_forget(transfers);
    rp_transfers_forget(NULL);
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &taken, record));
    rp_transfers_forget(transfers);
    other.part = 0; /* a stage that the board does not hold: its program is too old */
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &sent, record));
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &other, record));
    other.part = 99;
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &other, record));
    close_record(&record);
    assert_int_equal(count_arrows(), 0);
    record = open_record(2);
    rp_transfers_forget(transfers);
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &sent, record));
    expect_ok(rp_transfers_take(transfers, plan, &none, 8, &taken, record));
    close_record(&record);
    assert_int_equal(count_arrows(), 1); /* not back in time, though a clock says so */
    rp_transfers_close(&transfers);
    rp_arena_finish(&own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_parcel_once, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_are_forgotten, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
