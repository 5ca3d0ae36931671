/* A receive port: samples are matched by coverage, and what does not fit is the peer's fault. */
#include "expect.h"

#include "agent/port_in.h"

enum { SAMPLE_BYTES = 4, PENDING = 4, SAMPLES = 64 };

/* Parcels are slices of one array whose element s is s, so that a piece says which samples it is.
 */
typedef struct {
    rp_arena arena;
    rp_port_in *port;
    uint32_t sample[SAMPLES];
    uint32_t released;
} fixture;

static void count_release(void *owner, void *memory) {
    (void)memory;
    ((fixture *)owner)->released++;
}

static void open_port(fixture *f, uint32_t sources) {
    const rp_port_in_options options = {.name = "activations of stage 1",
                                        .form = {.tensor_count = 1, .sample_bytes = {SAMPLE_BYTES}},
                                        .pending_max = PENDING,
                                        .source_count = sources};
    *f = (fixture){0};
    rp_arena_init(&f->arena, "test", 0);
    for (uint32_t s = 0; s < SAMPLES; s++) {
        f->sample[s] = s;
    }
    expect_ok(rp_port_in_open(&f->arena, &options, &f->port));
}

static void close_port(fixture *f) {
    rp_port_in_close(&f->port);
    rp_arena_finish(&f->arena);
}

static rp_parcel make_parcel(fixture *f, uint32_t source, uint64_t step, uint32_t first,
                             uint32_t count) {
    return (rp_parcel){.step = step,
                       .samples = {first, count},
                       .source = source,
                       .part_count = 1,
                       .part = {rp_part_of_bytes(&f->sample[first], count * SAMPLE_BYTES)},
                       .release = count_release,
                       .owner = f};
}

static rp_err push_parcel(fixture *f, uint64_t step, uint32_t first, uint32_t count) {
    const rp_parcel parcel = make_parcel(f, 0, step, first, count);
    return rp_port_in_push(f->port, &parcel);
}

static void expect_message(const char *part) {
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' does not say '%s'", rp_err_message(), part);
    }
}

/* Pieces follow each other and hold the samples that they say. */
static void expect_pieces(const rp_port_pieces *pieces, rp_range samples, uint32_t count) {
    uint32_t next = samples.first;
    assert_int_equal(pieces->count, count);
    for (uint32_t p = 0; p < pieces->count; p++) {
        const rp_port_piece *piece = &pieces->piece[p];
        assert_int_equal(piece->samples.first, next);
        assert_int_equal(*(const uint32_t *)piece->part[0], next);
        next += piece->samples.count;
    }
    assert_int_equal(next, samples.first + samples.count);
}

static bool gather_pieces(fixture *f, uint64_t step, uint32_t first, uint32_t count,
                          rp_port_pieces *pieces) {
    const rp_port_want want = {.step = step, .samples = {first, count}};
    bool ready;
    expect_ok(rp_port_in_gather(f->port, &want, pieces, &ready));
    return ready;
}

static void consume_pieces(fixture *f, uint64_t step, uint32_t first, uint32_t count,
                           uint32_t wanted) {
    rp_port_pieces pieces;
    assert_true(gather_pieces(f, step, first, count, &pieces));
    expect_pieces(&pieces, (rp_range){first, count}, wanted);
    rp_port_in_take(f->port, &pieces);
    rp_port_in_return(f->port, &pieces);
}

static rp_err gather_fails(fixture *f, uint64_t step, uint32_t first, uint32_t count) {
    const rp_port_want want = {.step = step, .samples = {first, count}};
    rp_port_pieces pieces;
    bool ready;
    const rp_err err = rp_port_in_gather(f->port, &want, &pieces, &ready);
    assert_false(ready);
    return err;
}

static void a_parcel_is_an_op(void **state) {
    (void)state;
    fixture f;
    rp_port_pieces pieces;
    open_port(&f, 1);
    assert_false(gather_pieces(&f, 0, 0, 4, &pieces));
    expect_ok(push_parcel(&f, 0, 0, 4));
    consume_pieces(&f, 0, 0, 4, 1);
    assert_int_equal(f.released, 1);
    assert_false(gather_pieces(&f, 0, 4, 4, &pieces));
    close_port(&f);
}

static void an_op_gathers_from_several_parcels(void **state) {
    (void)state;
    fixture f;
    rp_port_pieces pieces;
    open_port(&f, 1);
    expect_ok(push_parcel(&f, 0, 4, 4)); /* the order of arrival does not matter */
    expect_ok(push_parcel(&f, 0, 0, 4));
    assert_false(gather_pieces(&f, 0, 2, 8, &pieces)); /* sample 9 is missing */
    expect_ok(push_parcel(&f, 0, 8, 4));
    consume_pieces(&f, 0, 2, 8, 3);
    assert_int_equal(f.released, 1); /* of the first and third, a part is left */
    consume_pieces(&f, 0, 0, 2, 1);
    assert_int_equal(f.released, 2);
    consume_pieces(&f, 0, 10, 2, 1);
    assert_int_equal(f.released, 3);
    close_port(&f);
}

static void ops_share_one_parcel(void **state) {
    (void)state;
    fixture f;
    rp_port_pieces first, second;
    open_port(&f, 1);
    expect_ok(push_parcel(&f, 0, 0, 8));
    assert_true(
        gather_pieces(&f, 0, 4, 4, &first)); /* last microbatch first, as gpipe's backward */
    rp_port_in_take(f.port, &first);
    assert_true(gather_pieces(&f, 0, 0, 4, &second));
    rp_port_in_take(f.port, &second);
    rp_port_in_return(f.port, &second);
    assert_int_equal(f.released, 0); /* the device still reads the other half */
    rp_port_in_return(f.port, &first);
    assert_int_equal(f.released, 1);
    close_port(&f);
}

static void parcels_of_another_form_are_refused(void **state) {
    (void)state;
    fixture f;
    open_port(&f, 1);
    rp_parcel parcel = make_parcel(&f, 0, 3, 0, 4);
    parcel.part[0].bytes--;
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER);
    expect_message("activations of stage 1: tensor 0 of step 3 samples [0, +4) has 15 bytes");
    parcel = make_parcel(&f, 0, 3, 0, 4);
    parcel.part_count = 2;
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER);
    expect_message("has 2 tensors, the plan says 1");
    parcel = make_parcel(&f, 0, 3, 0, 0);
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER);
    parcel = make_parcel(&f, 0, 3, 0, 4);
    parcel.samples.first = UINT32_MAX - 1;
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER);
    assert_int_equal(f.released, 0); /* the caller's still */
    close_port(&f);
}

static void samples_come_once(void **state) {
    (void)state;
    fixture f;
    open_port(&f, 2);
    expect_ok(push_parcel(&f, 1, 0, 4));
    expect_err(push_parcel(&f, 1, 0, 4), RP_ERR_PEER);
    expect_message("some of these samples have already arrived");
    expect_err(push_parcel(&f, 1, 3, 4), RP_ERR_PEER);
    expect_ok(push_parcel(&f, 1, 4, 4));
    expect_ok(push_parcel(&f, 2, 0, 4)); /* the same samples of another step */
    consume_pieces(&f, 1, 0, 8, 2);
    expect_err(push_parcel(&f, 0, 0, 4), RP_ERR_PEER);
    expect_message("this step is over");
    rp_port_in_begin(f.port);
    close_port(&f);
    assert_int_equal(f.released, 3);
}

static void the_queue_is_bounded(void **state) {
    (void)state;
    fixture f;
    open_port(&f, 1);
    for (uint32_t i = 0; i < PENDING; i++) {
        assert_true(rp_port_in_has_room(f.port));
        expect_ok(push_parcel(&f, 0, i, 1));
    }
    assert_false(rp_port_in_has_room(f.port));
    expect_err(push_parcel(&f, 0, PENDING, 1), RP_ERR_AGAIN);
    consume_pieces(&f, 0, 0, 1, 1);
    expect_ok(push_parcel(&f, 0, PENDING, 1));
    close_port(&f);
}

/* A peer that leaves samples out would otherwise stop the ring for good. */
static void samples_that_never_come_are_a_fault(void **state) {
    (void)state;
    fixture f;
    open_port(&f, 2);
    expect_ok(push_parcel(&f, 7, 0, 4));
    expect_err(gather_fails(&f, 6, 0, 4), RP_OK); /* the other source may still send them */
    const rp_parcel parcel = make_parcel(&f, 1, 7, 4, 4);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_err(gather_fails(&f, 6, 0, 4), RP_ERR_PEER);
    expect_message("samples of [0, +4) of step 6 were never sent");
    close_port(&f);
}

static void samples_that_no_op_asks_for_are_a_fault(void **state) {
    (void)state;
    fixture f;
    open_port(&f, 1);
    expect_ok(push_parcel(&f, 0, 0, 4));
    consume_pieces(&f, 0, 0, 2, 1);
    expect_err(gather_fails(&f, 1, 0, 4), RP_ERR_PEER);
    expect_message("no op asks for these samples");
    close_port(&f);
}

static void training_waits_while_an_evaluation_runs(void **state) {
    (void)state;
    fixture f;
    rp_port_pieces pieces;
    bool ready;
    open_port(&f, 1);
    expect_ok(push_parcel(&f, 5, 0, 4));
    rp_parcel parcel = make_parcel(&f, 0, 0, 0, 4);
    parcel.evaluating = true;
    expect_ok(rp_port_in_push(f.port, &parcel));
    assert_int_equal(rp_port_in_pending(f.port), 1);
    const rp_port_want want = {.evaluating = true, .step = 0, .samples = {0, 4}};
    expect_ok(rp_port_in_gather(f.port, &want, &pieces, &ready));
    assert_true(ready);
    rp_port_in_take(f.port, &pieces);
    rp_port_in_return(f.port, &pieces);
    rp_port_in_begin(f.port);
    consume_pieces(&f, 5, 0, 4, 1);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_err(gather_fails(&f, 6, 0, 4), RP_ERR_PEER);
    expect_message("a parcel of an evaluation arrived during training");
    close_port(&f);
}

static void an_op_of_too_many_pieces_is_refused(void **state) {
    (void)state;
    fixture f;
    rp_arena arena;
    rp_port_in *port;
    const rp_port_in_options options = {.name = "gradients of stage 0",
                                        .form = {.tensor_count = 0},
                                        .pending_max = RP_PORT_PIECES_MAX + 1,
                                        .source_count = 1};
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_port_in_open(&arena, &options, &port));
    f.port = port;
    for (uint32_t i = 0; i <= RP_PORT_PIECES_MAX; i++) {
        const rp_parcel parcel = {.samples = {i, 1}}; /* of no tensor at all */
        expect_ok(rp_port_in_push(port, &parcel));
    }
    expect_err(gather_fails(&f, 0, 0, RP_PORT_PIECES_MAX + 1), RP_ERR_LIMIT);
    rp_port_in_close(&port);
    rp_arena_finish(&arena);
}

static rp_parcel make_row(fixture *f, uint64_t step, uint32_t first, uint32_t count) {
    rp_parcel parcel = make_parcel(f, 0, step, first, count);
    parcel.part[0] = rp_part_of_bytes(&f->sample[first], SAMPLE_BYTES);
    return parcel;
}

static void open_rows(fixture *f) {
    const rp_port_in_options options = {
        .name = "tied gradients of stage 2",
        .form = {.tensor_count = 1, .sample_bytes = {SAMPLE_BYTES}, .is_sum = true},
        .pending_max = PENDING,
        .source_count = 1};
    *f = (fixture){0};
    rp_arena_init(&f->arena, "test", 0);
    expect_ok(rp_port_in_open(&f->arena, &options, &f->port));
}

/* Where an op reads one row, several parcels are the peer's fault. */
static void a_row_in_several_parcels_is_refused(void **state) {
    (void)state;
    const rp_port_want want = {.step = 4, .samples = {0, 16}};
    rp_port_pieces pieces;
    fixture f;
    bool ready;
    open_rows(&f);
    rp_parcel parcel = make_row(&f, 4, 0, 5);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_ok(rp_port_in_gather_one(f.port, &want, &pieces, &ready));
    assert_false(ready);
    parcel = make_row(&f, 4, 5, 11);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_err(rp_port_in_gather_one(f.port, &want, &pieces, &ready), RP_ERR_PEER);
    assert_false(ready);
    expect_message("tied gradients of stage 2: step 4 samples [0, +16) arrived in 2 parcels, "
                   "expected one");
    close_port(&f);
    open_rows(&f);
    parcel = make_row(&f, 4, 0, 16);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_ok(rp_port_in_gather_one(f.port, &want, &pieces, &ready));
    assert_true(ready);
    assert_int_equal(pieces.count, 1);
    close_port(&f);
}

/* A sum cannot be cut: its samples are those of the op. */
static void a_sum_of_other_samples_is_refused(void **state) {
    (void)state;
    static const rp_range others[] = {{0, 9}, {4, 13}, {0, 20}};
    const rp_port_want want = {.step = 4, .samples = {4, 12}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        rp_port_pieces pieces;
        fixture f;
        bool ready;
        open_rows(&f);
        const rp_parcel parcel = make_row(&f, 4, others[i].first, others[i].count);
        expect_ok(rp_port_in_push(f.port, &parcel));
        expect_err(rp_port_in_gather(f.port, &want, &pieces, &ready), RP_ERR_PEER);
        assert_false(ready);
        expect_message("no op asks for a sum of these samples");
        close_port(&f);
    }
}

/* A sum over samples has one row whatever their number; an op takes all of them, in their order. */
static void sums_are_taken_whole(void **state) {
    (void)state;
    fixture f = {0};
    const rp_port_in_options options = {
        .name = "weight gradients of stage 1",
        .form = {.tensor_count = 1, .sample_bytes = {SAMPLE_BYTES}, .is_sum = true},
        .pending_max = PENDING,
        .source_count = 2};
    const rp_port_want want = {.step = 4, .samples = {0, 16}};
    rp_port_pieces pieces;
    bool ready;
    rp_arena_init(&f.arena, "test", 0);
    expect_ok(rp_port_in_open(&f.arena, &options, &f.port));
    rp_parcel parcel = make_parcel(&f, 0, 4, 5, 11);
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER); /* as many rows as samples */
    parcel.part[0] = rp_part_of_bytes(&f.sample[1], SAMPLE_BYTES);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_ok(rp_port_in_gather(f.port, &want, &pieces, &ready));
    assert_false(ready);
    parcel = make_parcel(&f, 1, 4, 0, 5);
    parcel.part[0] = rp_part_of_bytes(&f.sample[0], SAMPLE_BYTES);
    expect_ok(rp_port_in_push(f.port, &parcel));
    expect_ok(rp_port_in_gather(f.port, &want, &pieces, &ready));
    assert_true(ready);
    assert_int_equal(pieces.count, 2);
    assert_ptr_equal(pieces.piece[0].part[0], &f.sample[0]);
    assert_ptr_equal(pieces.piece[1].part[0], &f.sample[1]);
    rp_port_in_take(f.port, &pieces);
    rp_port_in_return(f.port, &pieces);
    assert_int_equal(f.released, 2);
    close_port(&f);
}

/* In a step of 2 tokens a sample has half the bytes. */
static void steps_of_another_length(void **state) {
    (void)state;
    const rp_port_time shorter[] = {{.time = 2, .sample_bytes = {SAMPLE_BYTES / 2}}};
    const rp_port_in_options options = {.name = "activations of stage 1",
                                        .form = {.tensor_count = 1,
                                                 .sample_bytes = {SAMPLE_BYTES},
                                                 .shorter = shorter,
                                                 .shorter_count = 1},
                                        .pending_max = PENDING,
                                        .source_count = 1};
    rp_port_pieces pieces;
    fixture f = {0};
    rp_arena_init(&f.arena, "test", 0);
    expect_ok(rp_port_in_open(&f.arena, &options, &f.port));
    rp_parcel parcel = make_parcel(&f, 0, 0, 0, 4);
    parcel.time = 2;
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER); /* the bytes of the longest */
    expect_message("16 bytes, the plan says 8");
    parcel.part[0] = rp_part_of_bytes(f.sample, 8);
    expect_ok(rp_port_in_push(f.port, &parcel));
    assert_true(gather_pieces(&f, 0, 1, 3, &pieces));
    assert_int_equal(pieces.piece[0].time, 2);
    assert_ptr_equal(pieces.piece[0].part[0], (const char *)f.sample + 2);
    parcel = make_parcel(&f, 0, 1, 0, 4);
    parcel.time = 3;
    expect_err(rp_port_in_push(f.port, &parcel), RP_ERR_PEER);
    expect_message("samples of 3 tokens, which is no length of the run");
    close_port(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parcel_is_an_op),
        cmocka_unit_test(an_op_gathers_from_several_parcels),
        cmocka_unit_test(ops_share_one_parcel),
        cmocka_unit_test(parcels_of_another_form_are_refused),
        cmocka_unit_test(samples_come_once),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(samples_that_never_come_are_a_fault),
        cmocka_unit_test(samples_that_no_op_asks_for_are_a_fault),
        cmocka_unit_test(training_waits_while_an_evaluation_runs),
        cmocka_unit_test(an_op_of_too_many_pieces_is_refused),
        cmocka_unit_test(sums_are_taken_whole),
        cmocka_unit_test(a_row_in_several_parcels_is_refused),
        cmocka_unit_test(a_sum_of_other_samples_is_refused),
        cmocka_unit_test(steps_of_another_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
