#include "expect.h"
#include "transport/buffer.h"

static void owned_memory_lives_as_long_as_a_reference(void **state) {
    (void)state;
    rp_buffer *a;
    void *memory;
    expect_ok(rp_buffer_new(100, &a, &memory));
    assert_ptr_equal(a->data, memory);
    assert_int_equal((uintptr_t)memory % 8, 0);
    assert_int_equal(a->bytes, 100);
    assert_false(rp_buffer_is_borrowed(a));
    memset(memory, 5, 100);
    rp_buffer *b = rp_buffer_keep(a);
    rp_buffer *c;
    expect_ok(rp_buffer_keep_owned(a, &c));
    assert_ptr_equal(c, a);
    rp_buffer_drop(&a);
    assert_null(a);
    rp_buffer_drop(&b);
    assert_int_equal(((const uint8_t *)c->data)[99], 5);
    rp_buffer_drop(&c);
    rp_buffer_drop(&c); /* NULL */
    expect_ok(rp_buffer_new(0, &a, &memory));
    rp_buffer_drop(&a);
    expect_err(rp_buffer_new(SIZE_MAX, &a, &memory), RP_ERR_MEMORY);
    assert_null(a);
}

static void borrowed_memory_is_watched(void **state) {
    (void)state;
    uint8_t memory[16] = {1, 2, 3};
    rp_buffer lent;
    rp_buffer_borrow(&lent, memory, sizeof memory);
    assert_true(rp_buffer_is_borrowed(&lent));
    assert_false(rp_buffer_is_lent(&lent));
    rp_buffer *a = rp_buffer_keep(&lent);
    assert_true(rp_buffer_is_lent(&lent));
    rp_buffer *copy;
    expect_ok(rp_buffer_keep_owned(a, &copy));
    assert_ptr_not_equal(copy, a);
    rp_buffer_drop(&a);
    assert_false(rp_buffer_is_lent(&lent));
    memset(memory, 0, sizeof memory);
    assert_int_equal(((const uint8_t *)copy->data)[2], 3);
    rp_buffer_drop(&copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owned_memory_lives_as_long_as_a_reference),
        cmocka_unit_test(borrowed_memory_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
