#include "open.h"

#include "device/tensor.h"

static rp_darena *memory;

static rp_tensor take_tensor(rp_dtype dtype, rp_shape shape) {
    rp_tensor made = {.dtype = dtype, .shape = shape};
    expect_ok(rp_darena_take(memory, rp_tensor_bytes(&made), &made.buffer));
    return made;
}

static void types_have_sizes_and_names(void **state) {
    (void)state;
    const rp_dtype none = (rp_dtype)RP_DTYPE_COUNT;
    assert_int_equal(rp_dtype_bytes(RP_F32), 4);
    assert_int_equal(rp_dtype_bytes(RP_F16), 2);
    assert_int_equal(rp_dtype_bytes(RP_BF16), 2);
    assert_int_equal(rp_dtype_bytes(RP_I8), 1);
    assert_int_equal(rp_dtype_bytes(RP_I32), 4);
    assert_int_equal(rp_dtype_bytes(RP_U8), 1);
    assert_int_equal(rp_dtype_bytes(none), 0);
    assert_string_equal(rp_dtype_name(none), "unknown");
    assert_int_equal((rp_tensor){0}.dtype, RP_F32);
    for (unsigned type = 0; type < RP_DTYPE_COUNT; type++) {
        assert_int_equal(rp_dtype_find(rp_dtype_name((rp_dtype)type)), type);
    }
    assert_int_equal(rp_dtype_find("f33"), RP_DTYPE_COUNT);
    assert_int_equal(rp_dtype_find(""), RP_DTYPE_COUNT);
}

static void slices_are_counted_in_samples(void **state) {
    (void)state;
    const rp_tensor whole = take_tensor(RP_F32, rp_shape_4(10, 2, 3, 1));
    rp_tensor part;
    rp_tensor inner;
    expect_ok(rp_tensor_slice(&whole, 4, 5, &part));
    assert_ptr_equal(part.buffer, whole.buffer);
    assert_int_equal(part.offset, 24);
    assert_int_equal(part.shape.dim[0], 5);
    assert_int_equal(part.shape.dim[1], 2);
    assert_int_equal(rp_tensor_bytes(&part), 120);
    expect_ok(rp_tensor_slice(&part, 2, 3, &inner));
    assert_int_equal(inner.offset, 36);
    expect_ok(rp_tensor_slice(&whole, 0, 10, &inner));
    assert_true(rp_tensor_same_memory(&inner, &whole));
    assert_false(rp_tensor_same_memory(&part, &whole));
    expect_err(rp_tensor_slice(&whole, 10, 1, &part), RP_ERR_SHAPE);
    expect_err(rp_tensor_slice(&whole, 6, 5, &part), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "[6, 11)"));
    expect_err(rp_tensor_slice(&whole, 0, 0, &part), RP_ERR_SHAPE);
    expect_err(rp_tensor_slice(&whole, UINT32_MAX, 2, &part), RP_ERR_SHAPE);
    expect_err(rp_tensor_slice(&(rp_tensor){0}, 0, 1, &part), RP_ERR_SHAPE);
}

static void a_view_knows_whether_it_fits(void **state) {
    (void)state;
    rp_tensor half = take_tensor(RP_F16, rp_shape_1(8));
    assert_int_equal(rp_buffer_bytes(half.buffer), 16);
    assert_true(rp_tensor_fits(&half, 8));
    assert_false(rp_tensor_fits(&half, 9));
    half.offset = 8;
    assert_true(rp_tensor_fits(&half, 0));
    assert_false(rp_tensor_fits(&half, 1));
    half.offset = UINT64_MAX;
    assert_false(rp_tensor_fits(&half, 2));
    assert_false(rp_tensor_fits(&(rp_tensor){0}, 1));
    half.offset = 0;
    half.dtype = (rp_dtype)RP_DTYPE_COUNT;
    assert_false(rp_tensor_fits(&half, 1));
}

static void copies_keep_to_their_view(void **state) {
    (void)state;
    const rp_tensor whole = take_tensor(RP_U8, rp_shape_2(5, 3));
    const uint8_t before[15] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint8_t want[15] = {1, 2, 3, 91, 92, 93, 94, 95, 96, 10, 11, 12, 13, 14, 15};
    uint8_t back[15] = {0};
    rp_tensor part;
    expect_ok(rp_tensor_write(device, &whole, before));
    expect_ok(rp_tensor_slice(&whole, 1, 2, &part));
    expect_ok(rp_tensor_write(device, &part, want + 3));
    expect_ok(rp_tensor_read(device, back, &whole));
    expect_ok(rp_device_drain(device));
    assert_memory_equal(back, want, sizeof want);
    expect_ok(rp_tensor_read(device, back, &part));
    expect_ok(rp_device_drain(device));
    assert_memory_equal(back, want + 3, 6);
    part.shape.dim[0] = 5;
    expect_err(rp_tensor_read(device, back, &part), RP_ERR_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_sizes_and_names),
        cmocka_unit_test(slices_are_counted_in_samples),
        cmocka_unit_test(a_view_knows_whether_it_fits),
        cmocka_unit_test(copies_keep_to_their_view),
    };
    open_device();
    if (rp_darena_open(&boot, device, "tensors", 0, 0, &memory) != RP_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rp_darena_close(&memory);
    close_device();
    return failed;
}
