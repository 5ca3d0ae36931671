/* Arrangements of elements against indices by hand. */
#include "expect.h"

#include "onnx/view.h"

enum { LEAF = 7 };

static rp_arena arena;

static int begin(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 1 << 20);
    return 0;
}

static int end(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static const rp_onnx_view *leaf(uint32_t value, uint32_t rank, const int64_t *dim) {
    const rp_onnx_view *out;
    rp_onnx_dims dims;
    assert_true(rp_onnx_dims_of(rank, dim, &dims));
    assert_int_equal(rp_onnx_view_leaf(&arena, value, &dims, &out), RP_OK);
    return out;
}

static void expect_sources(const rp_onnx_view *view, uint64_t count, const uint64_t *want) {
    assert_non_null(view);
    assert_int_equal(view->dims.count, count);
    for (uint64_t i = 0; i < count; i++) {
        const rp_onnx_source source = rp_onnx_view_source(view, i);
        assert_int_equal(source.leaf, LEAF);
        assert_int_equal(source.index, want[i]);
    }
}

static void sizes_are_checked(void **state) {
    (void)state;
    rp_onnx_dims dims;
    assert_true(rp_onnx_dims_of(2, (const int64_t[]){3, 4}, &dims) && dims.count == 12);
    assert_true(rp_onnx_dims_of(dims.rank, dims.dim, &dims) && dims.count == 12);
    assert_false(rp_onnx_dims_of(1, (const int64_t[]){-1}, &dims));
    assert_false(rp_onnx_dims_of(2, (const int64_t[]){INT64_MAX, INT64_MAX}, &dims));
    assert_false(rp_onnx_dims_of(9, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, &dims));
    const rp_onnx_dims a = {.rank = 2, .dim = {4, 1}, .count = 4};
    const rp_onnx_dims b = {.rank = 3, .dim = {2, 1, 3}, .count = 6};
    assert_true(rp_onnx_dims_broadcast(&a, &b, &dims));
    assert_true(dims.rank == 3 && dims.dim[0] == 2 && dims.dim[1] == 4 && dims.dim[2] == 3);
    const rp_onnx_dims c = {.rank = 1, .dim = {5}, .count = 5};
    assert_false(rp_onnx_dims_broadcast(&b, &c, &dims));
}

static void transposes_move_elements(void **state) {
    (void)state;
    const rp_onnx_view *x = leaf(LEAF, 2, (const int64_t[]){2, 3});
    const rp_onnx_view *view;
    assert_int_equal(rp_onnx_view_transpose(&arena, x, (const int64_t[]){1, 0}, &view), RP_OK);
    expect_sources(view, 6, (const uint64_t[]){0, 3, 1, 4, 2, 5});
    assert_false(rp_onnx_view_is_whole(view, 6));
    assert_int_equal(rp_onnx_view_transpose(&arena, view, (const int64_t[]){1, 0}, &view), RP_OK);
    assert_true(rp_onnx_view_is_whole(view, 6));
    assert_int_equal(rp_onnx_view_transpose(&arena, x, (const int64_t[]){1, 1}, &view), RP_OK);
    assert_null(view);
}

static void slices_have_a_part(void **state) {
    (void)state;
    const rp_onnx_view *x = leaf(LEAF, 2, (const int64_t[]){3, 4});
    const rp_onnx_view *view;
    assert_int_equal(rp_onnx_view_slice(&arena, x, 1, 1, 2, 2, &view), RP_OK);
    expect_sources(view, 6, (const uint64_t[]){1, 3, 5, 7, 9, 11});
    assert_int_equal(rp_onnx_view_slice(&arena, x, 0, 2, -1, 3, &view), RP_OK);
    expect_sources(view, 12, (const uint64_t[]){8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3});
    assert_int_equal(rp_onnx_view_slice(&arena, x, 0, 2, 1, 2, &view), RP_OK);
    assert_null(view);
    assert_int_equal(rp_onnx_view_slice(&arena, x, 2, 0, 1, 1, &view), RP_OK);
    assert_null(view);
    assert_int_equal(rp_onnx_view_slice(&arena, x, 0, 0, INT64_MAX, 3, &view), RP_OK);
    assert_null(view);
}

/* The gates i o f c of ONNX out of PyTorch's i f g o, and back. */
static void concatenated_slices_are_the_whole_again(void **state) {
    (void)state;
    const rp_onnx_view *x = leaf(LEAF, 2, (const int64_t[]){8, 2});
    const rp_onnx_view *part[4];
    const rp_onnx_view *view;
    static const int64_t order[] = {0, 3, 1, 2};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rp_onnx_view_slice(&arena, x, 0, 2 * order[i], 1, 2, &part[i]), RP_OK);
    }
    assert_int_equal(rp_onnx_view_concat(&arena, part, 4, 0, &view), RP_OK);
    assert_int_equal(rp_onnx_view_source(view, 4).index, 12);
    assert_int_equal(rp_onnx_view_only_leaf(view), RP_ONNX_NONE);
    static const int64_t back[] = {0, 2, 3, 1};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rp_onnx_view_slice(&arena, view, 0, 2 * back[i], 1, 2, &part[i]), RP_OK);
    }
    assert_int_equal(rp_onnx_view_concat(&arena, part, 4, 0, &view), RP_OK);
    assert_true(rp_onnx_view_is_whole(view, 16));
}

static void expansions_repeat(void **state) {
    (void)state;
    const rp_onnx_view *x = leaf(LEAF, 2, (const int64_t[]){2, 1});
    const rp_onnx_dims wanted = {.rank = 3, .dim = {2, 2, 2}, .count = 8};
    const rp_onnx_view *view;
    assert_int_equal(rp_onnx_view_expand(&arena, x, &wanted, &view), RP_OK);
    expect_sources(view, 8, (const uint64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
    const rp_onnx_dims other = {.rank = 2, .dim = {3, 1}, .count = 3};
    assert_int_equal(rp_onnx_view_expand(&arena, x, &other, &view), RP_OK);
    assert_null(view);
}

static void reshapes_keep_the_order(void **state) {
    (void)state;
    const rp_onnx_view *x = leaf(LEAF, 2, (const int64_t[]){2, 3});
    const rp_onnx_dims flat = {.rank = 1, .dim = {6}, .count = 6};
    const rp_onnx_dims wrong = {.rank = 1, .dim = {5}, .count = 5};
    const rp_onnx_view *view;
    assert_int_equal(rp_onnx_view_reshape(&arena, x, &flat, &view), RP_OK);
    assert_true(rp_onnx_view_is_whole(view, 6));
    assert_int_equal(rp_onnx_view_reshape(&arena, view, &x->dims, &view), RP_OK);
    assert_ptr_equal(view, x);
    assert_int_equal(rp_onnx_view_reshape(&arena, x, &wrong, &view), RP_OK);
    assert_null(view);
}

static void chains_have_a_limit(void **state) {
    (void)state;
    const rp_onnx_view *first = leaf(LEAF, 2, (const int64_t[]){2, 3});
    const rp_onnx_view *view = first;
    uint32_t steps = 0;
    for (bool turn = true; view && steps < 1000; turn = !turn) {
        assert_int_equal(turn ? rp_onnx_view_transpose(&arena, view, (const int64_t[]){1, 0}, &view)
                              : rp_onnx_view_reshape(&arena, view, &first->dims, &view),
                         RP_OK);
        steps++;
    }
    assert_int_equal(steps, RP_ONNX_VIEW_DEPTH_MAX + 1);
}

/* A part of a concatenation is a part of one of its inputs; two transpositions are one. */
static void chains_are_joined(void **state) {
    (void)state;
    static const int64_t turn[] = {1, 2, 0};
    static const int64_t back[] = {2, 0, 1};
    const rp_onnx_view *pair[] = {leaf(LEAF, 3, (const int64_t[]){2, 3, 4}),
                                  leaf(LEAF + 1, 3, (const int64_t[]){1, 3, 4})};
    const rp_onnx_view *all;
    const rp_onnx_view *view;
    assert_int_equal(rp_onnx_view_concat(&arena, pair, 2, 0, &all), RP_OK);
    assert_int_equal(rp_onnx_view_slice(&arena, all, 0, 2, 1, 1, &view), RP_OK);
    assert_ptr_equal(view, pair[1]);
    assert_int_equal(rp_onnx_view_slice(&arena, all, 0, 1, -1, 2, &view), RP_OK);
    assert_int_equal(rp_onnx_view_only_leaf(view), LEAF);
    assert_int_equal(rp_onnx_view_source(view, 0).index, 12);
    assert_int_equal(rp_onnx_view_slice(&arena, all, 0, 1, 1, 2, &view), RP_OK);
    assert_int_equal(rp_onnx_view_only_leaf(view), RP_ONNX_NONE);
    assert_int_equal(rp_onnx_view_source(view, 12).leaf, LEAF + 1);
    assert_int_equal(rp_onnx_view_slice(&arena, all, 1, 1, 1, 1, &view), RP_OK);
    assert_int_equal(rp_onnx_view_only_leaf(view), RP_ONNX_NONE);
    assert_int_equal(rp_onnx_view_transpose(&arena, pair[0], turn, &view), RP_OK);
    assert_int_equal(rp_onnx_view_transpose(&arena, view, turn, &all), RP_OK);
    assert_int_equal(all->depth, 1);
    for (uint64_t i = 0; i < 24; i++) { /* [4, 2, 3] of [2, 3, 4] */
        assert_int_equal(rp_onnx_view_source(all, i).index, i % 6 * 4 + i / 6);
    }
    assert_int_equal(rp_onnx_view_transpose(&arena, view, back, &view), RP_OK);
    assert_ptr_equal(view, pair[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_are_checked, begin, end),
        cmocka_unit_test_setup_teardown(transposes_move_elements, begin, end),
        cmocka_unit_test_setup_teardown(slices_have_a_part, begin, end),
        cmocka_unit_test_setup_teardown(concatenated_slices_are_the_whole_again, begin, end),
        cmocka_unit_test_setup_teardown(expansions_repeat, begin, end),
        cmocka_unit_test_setup_teardown(chains_are_joined, begin, end),
        cmocka_unit_test_setup_teardown(reshapes_keep_the_order, begin, end),
        cmocka_unit_test_setup_teardown(chains_have_a_limit, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
