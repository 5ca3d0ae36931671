/* A send port: slots in the order of the ops, one slice an edge, free when all are acknowledged. */
#include "expect.h"

#include "agent/port_out.h"

enum { SLOTS = 2, MICRO = 4, SENT_MAX = 16 };

/* An edge's far end: keeps what was sent until it is told to acknowledge. */
typedef struct {
    rp_parcel parcel[SENT_MAX];
    void (*done[SENT_MAX])(void *slot);
    void *slot[SENT_MAX];
    uint32_t count, acked;
    bool full;
} far_end;

typedef struct {
    rp_arena arena;
    rp_port_out *port;
    far_end far[3];
    rp_range share[RP_PORT_EDGES_MAX]; /* of every step, by edge */
} fixture;

static rp_err keep_parcel(void *context, const rp_parcel *parcel, void (*done)(void *slot),
                          void *slot) {
    far_end *far = context;
    if (far->full) {
        return RP_ERR_AGAIN;
    }
    assert_in_range(far->count, 0, SENT_MAX - 1);
    far->done[far->count] = done;
    far->slot[far->count] = slot;
    far->parcel[far->count++] = *parcel;
    return RP_OK;
}

static void acknowledge_slices(far_end *far) {
    far->done[far->acked](far->slot[far->acked]);
    far->acked++;
}

static void open_port(fixture *f, uint32_t edges, const rp_range *shares) {
    rp_port_out_options options = {
        .form = {.tensor_count = 2, .sample_bytes = {sizeof(float), 2 * sizeof(float)}},
        .micro = MICRO,
        .slot_count = SLOTS,
        .edge_count = edges};
    *f = (fixture){0};
    rp_arena_init(&f->arena, "test", 0);
    for (uint32_t e = 0; e < edges; e++) {
        options.edge[e] = (rp_port_edge){keep_parcel, &f->far[e]};
        f->share[e] = shares[e];
    }
    expect_ok(rp_port_out_open(&f->arena, &options, &f->port));
}

static void close_port(fixture *f) {
    rp_arena_finish(&f->arena);
}

/* What an op's samples and the shares have in common. */
static void cut_slices(const fixture *f, rp_range samples, rp_range slice[RP_PORT_EDGES_MAX]) {
    for (uint32_t e = 0; e < RP_PORT_EDGES_MAX; e++) {
        const rp_range *share = &f->share[e];
        uint32_t first = share->first > samples.first ? share->first : samples.first;
        uint32_t end = share->first + share->count;
        end = end < samples.first + samples.count ? end : samples.first + samples.count;
        slice[e] = (rp_range){first, end > first ? end - first : 0};
    }
}

/* Tensor 0 of sample s holds s, tensor 1 holds s + 0.25 and s + 0.5. */
static rp_port_slot *run_op(fixture *f, uint64_t step, uint32_t first, uint32_t count) {
    const rp_op op = {.kind = RP_OP_FORWARD, .step = step, .samples = {first, count}};
    void *part[RP_PARTS_MAX];
    assert_true(rp_port_out_has_room(f->port));
    rp_range slice[RP_PORT_EDGES_MAX];
    cut_slices(f, op.samples, slice);
    rp_port_slot *slot = rp_port_out_take(f->port, &op, false, slice);
    assert_non_null(slot);
    rp_port_out_parts(f->port, slot, part);
    for (uint32_t i = 0; i < count; i++) {
        const float sample = (float)(first + i);
        ((float *)part[0])[i] = sample;
        ((float *)part[1])[2 * i] = sample + 0.25f;
        ((float *)part[1])[2 * i + 1] = sample + 0.5f;
    }
    return slot;
}

static void expect_parcel(const rp_parcel *parcel, uint64_t step, uint32_t first, uint32_t count) {
    assert_int_equal(parcel->step, step);
    assert_int_equal(parcel->samples.first, first);
    assert_int_equal(parcel->samples.count, count);
    assert_int_equal(parcel->part_count, 2);
    assert_int_equal(parcel->part[0].bytes, count * sizeof(float));
    assert_int_equal(parcel->part[1].bytes, 2 * count * sizeof(float));
    for (uint32_t i = 0; i < count; i++) {
        const float sample = (float)(first + i);
        expect_close(((const float *)parcel->part[0].data)[i], sample, 0, 0);
        expect_close(((const float *)parcel->part[1].data)[2 * i], sample + 0.25f, 0, 0);
        expect_close(((const float *)parcel->part[1].data)[2 * i + 1], sample + 0.5f, 0, 0);
    }
}

static const rp_range whole[] = {{0, 100}};

static void a_slot_is_free_when_it_is_acknowledged(void **state) {
    (void)state;
    fixture f;
    open_port(&f, 1, whole);
    rp_port_slot *first = run_op(&f, 3, 0, 4);
    rp_port_slot *second = run_op(&f, 3, 4, 4);
    assert_false(rp_port_out_has_room(f.port));
    expect_ok(rp_port_out_send(f.port));
    assert_int_equal(f.far[0].count, 0); /* the device writes */
    rp_port_out_fill(second);
    expect_ok(rp_port_out_send(f.port));
    assert_int_equal(f.far[0].count, 0); /* in the order of the ops */
    rp_port_out_fill(first);
    expect_ok(rp_port_out_send(f.port));
    assert_int_equal(f.far[0].count, 2);
    expect_parcel(&f.far[0].parcel[0], 3, 0, 4);
    expect_parcel(&f.far[0].parcel[1], 3, 4, 4);
    assert_false(rp_port_out_has_room(f.port));
    acknowledge_slices(&f.far[0]);
    assert_true(rp_port_out_has_room(f.port));
    assert_false(rp_port_out_is_quiet(f.port));
    acknowledge_slices(&f.far[0]);
    assert_true(rp_port_out_is_quiet(f.port));
    close_port(&f);
}

static void a_full_edge_is_asked_again(void **state) {
    (void)state;
    fixture f;
    const rp_range shares[] = {{0, 4}, {0, 4}};
    open_port(&f, 2, shares);
    f.far[1].full = true;
    rp_port_out_fill(run_op(&f, 0, 0, 4));
    expect_ok(rp_port_out_send(f.port));
    expect_ok(rp_port_out_send(f.port));
    assert_int_equal(f.far[0].count, 1); /* once, however often the other is full */
    acknowledge_slices(&f.far[0]);
    assert_false(rp_port_out_is_quiet(f.port)); /* a slice is still to be sent */
    f.far[1].full = false;
    expect_ok(rp_port_out_send(f.port));
    assert_int_equal(f.far[1].count, 1);
    assert_false(rp_port_out_is_quiet(f.port));
    acknowledge_slices(&f.far[1]);
    assert_true(rp_port_out_is_quiet(f.port));
    close_port(&f);
}

/* Three far ends, one of them with half of every step: slices, each sample once. */
static void an_edge_gets_its_slice(void **state) {
    (void)state;
    fixture f;
    const rp_range shares[] = {{0, 3}, {3, 2}, {5, 5}};
    open_port(&f, 3, shares);
    rp_port_out_fill(run_op(&f, 0, 0, 4));
    rp_port_out_fill(run_op(&f, 0, 4, 4));
    expect_ok(rp_port_out_send(f.port));
    assert_int_equal(f.far[0].count, 1);
    assert_int_equal(f.far[1].count, 2);
    assert_int_equal(f.far[2].count, 1);
    expect_parcel(&f.far[0].parcel[0], 0, 0, 3);
    expect_parcel(&f.far[1].parcel[0], 0, 3, 1);
    expect_parcel(&f.far[1].parcel[1], 0, 4, 1);
    expect_parcel(&f.far[2].parcel[0], 0, 5, 3);
    acknowledge_slices(&f.far[0]);
    acknowledge_slices(&f.far[1]);
    assert_true(rp_port_out_has_room(f.port)); /* the first slot */
    acknowledge_slices(&f.far[1]);
    acknowledge_slices(&f.far[2]);
    assert_true(rp_port_out_is_quiet(f.port));
    close_port(&f);
}

/* Both ends on one node: the consumer reads the producer's memory, and acknowledges it. */
static void a_local_edge_hands_memory_over(void **state) {
    (void)state;
    fixture f = {0};
    rp_port_in *in;
    rp_port_pieces pieces;
    bool ready;
    rp_arena_init(&f.arena, "test", 0);
    const rp_port_in_options in_options = {
        .name = "activations of stage 1",
        .form = {.tensor_count = 1, .sample_bytes = {sizeof(float)}},
        .pending_max = 1,
        .source_count = 1};
    expect_ok(rp_port_in_open(&f.arena, &in_options, &in));
    rp_port_local local = {.port = in};
    const rp_port_out_options options = {.form = in_options.form,
                                         .micro = MICRO,
                                         .slot_count = SLOTS,
                                         .edge_count = 1,
                                         .edge = {{rp_port_local_send, &local}}};
    expect_ok(rp_port_out_open(&f.arena, &options, &f.port));
    for (uint32_t i = 0; i < SLOTS; i++) {
        const rp_op op = {.kind = RP_OP_FORWARD, .samples = {i, 1}};
        void *part[RP_PARTS_MAX];
        rp_port_slot *slot = rp_port_out_take(f.port, &op, false, &op.samples);
        rp_port_out_parts(f.port, slot, part);
        *(float *)part[0] = (float)i;
        rp_port_out_fill(slot);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        const rp_port_want want = {.samples = {i, 1}};
        assert_false(rp_port_out_is_quiet(f.port));
        expect_ok(rp_port_out_send(f.port)); /* the queue has room for one */
        expect_ok(rp_port_in_gather(in, &want, &pieces, &ready));
        assert_true(ready);
        expect_close(*(const float *)pieces.piece[0].part[0], i, 0, 0);
        rp_port_in_take(in, &pieces);
        assert_false(rp_port_out_is_quiet(f.port));
        rp_port_in_return(in, &pieces);
    }
    assert_true(rp_port_out_is_quiet(f.port));
    rp_port_in_close(&in);
    close_port(&f);
}

/* However many slots there are, one parcel at a time touches the memory of one. */
static void memory_is_used_again_at_once(void **state) {
    (void)state;
    fixture f;
    const void *at[3];
    open_port(&f, 1, whole);
    for (uint32_t i = 0; i < 3; i++) {
        rp_port_out_fill(run_op(&f, i, 0, 4));
        expect_ok(rp_port_out_send(f.port));
        at[i] = f.far[0].parcel[i].part[0].data;
        acknowledge_slices(&f.far[0]);
    }
    assert_ptr_equal(at[0], at[1]);
    assert_ptr_equal(at[0], at[2]);
    rp_port_out_fill(run_op(&f, 3, 0, 4)); /* two at a time need two */
    rp_port_out_fill(run_op(&f, 4, 0, 4));
    expect_ok(rp_port_out_send(f.port));
    assert_ptr_not_equal(f.far[0].parcel[3].part[0].data, f.far[0].parcel[4].part[0].data);
    expect_parcel(&f.far[0].parcel[3], 3, 0, 4);
    expect_parcel(&f.far[0].parcel[4], 4, 0, 4);
    close_port(&f);
}

static void nobody_consumes_it(void **state) {
    (void)state;
    fixture f;
    const rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, MICRO}};
    open_port(&f, 0, NULL);
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        assert_true(rp_port_out_has_room(f.port));
        assert_null(rp_port_out_take(f.port, &op, false, &op.samples));
        expect_ok(rp_port_out_send(f.port));
    }
    assert_true(rp_port_out_is_quiet(f.port));
    close_port(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_free_when_it_is_acknowledged),
        cmocka_unit_test(a_full_edge_is_asked_again),
        cmocka_unit_test(an_edge_gets_its_slice),
        cmocka_unit_test(a_local_edge_hands_memory_over),
        cmocka_unit_test(memory_is_used_again_at_once),
        cmocka_unit_test(nobody_consumes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
