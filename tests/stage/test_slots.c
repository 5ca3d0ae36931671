#include "expect.h"

#include "stage/slots.h"

static rp_op op_of(uint64_t step, uint32_t first, uint32_t count) {
    return (rp_op){.step = step, .samples = {first, count}};
}

static rp_stash find_stash(const rp_slots *slots, uint64_t step, uint32_t first, uint32_t count) {
    const rp_op op = op_of(step, first, count);
    return rp_slots_find(slots, &op, false);
}

static void release_slot(rp_slots *slots, uint32_t slot, uint32_t first, uint32_t count) {
    const rp_op op = op_of(7, first, count);
    rp_slots_release(slots, slot, &op);
}

static void parts_lie_in_the_whole(void **state) {
    (void)state;
    rp_slot memory[2] = {0};
    rp_slots slots = {memory, 2};
    const rp_op ops[] = {op_of(7, 0, 32), op_of(7, 32, 32), op_of(8, 0, 32)};
    assert_int_equal(rp_slots_take(&slots, &ops[0], false), 0);
    assert_int_equal(rp_slots_take(&slots, &ops[1], false), 1);
    assert_int_equal(rp_slots_take(&slots, &ops[2], false), RP_NO_SLOT);
    assert_int_equal(find_stash(&slots, 7, 0, 32).slot, 0);
    assert_true(find_stash(&slots, 7, 0, 32).whole);
    assert_int_equal(find_stash(&slots, 7, 40, 8).slot, 1);
    assert_int_equal(find_stash(&slots, 7, 40, 8).first, 8);
    assert_false(find_stash(&slots, 7, 40, 8).whole);
    assert_int_equal(find_stash(&slots, 7, 63, 1).first, 31);
    assert_int_equal(find_stash(&slots, 7, 24, 16).slot, RP_NO_SLOT); /* across two forwards */
    assert_int_equal(find_stash(&slots, 7, 60, 5).slot, RP_NO_SLOT);
    assert_int_equal(find_stash(&slots, 7, 64, 1).slot, RP_NO_SLOT);
    assert_int_equal(find_stash(&slots, 8, 0, 8).slot, RP_NO_SLOT);
    assert_int_equal(rp_slots_find(&slots, &ops[0], true).slot, RP_NO_SLOT);
}

static void a_slot_is_free_with_its_last_sample(void **state) {
    (void)state;
    rp_slot memory[1] = {0};
    rp_slots slots = {memory, 1};
    const rp_op op = op_of(7, 4, 12);
    assert_int_equal(rp_slots_take(&slots, &op, false), 0);
    release_slot(&slots, 0, 8, 4);
    release_slot(&slots, 0, 12, 4);
    assert_int_equal(rp_slots_take(&slots, &op, false), RP_NO_SLOT);
    assert_int_equal(find_stash(&slots, 7, 4, 4).slot, 0);
    release_slot(&slots, 0, 4, 4);
    assert_int_equal(find_stash(&slots, 7, 4, 4).slot, RP_NO_SLOT);
    assert_int_equal(rp_slots_take(&slots, &op, true), 0);
    rp_slots_clear(&slots);
    assert_int_equal(rp_slots_take(&slots, &op, true), 0);
}

/* The forwards of a step share a slot; a backward may take parts of several. */
static void a_slot_has_a_step(void **state) {
    (void)state;
    rp_slot memory[2] = {0};
    rp_slots slots = {memory, 2};
    const rp_range step = {4, 12};
    for (uint32_t first = 4; first < 16; first += 6) {
        const rp_op op = op_of(7, first, 6);
        const rp_stash stash = rp_slots_place(&slots, &op, false, step);
        assert_int_equal(stash.slot, 0);
        assert_int_equal(stash.first, first - 4);
        assert_false(stash.whole);
    }
    const rp_op next = op_of(8, 4, 12); /* all of its step */
    const rp_stash stash = rp_slots_place(&slots, &next, false, step);
    assert_int_equal(stash.slot, 1);
    assert_true(stash.whole);
    assert_int_equal(find_stash(&slots, 7, 8, 5).first, 4);
    release_slot(&slots, 0, 8, 8);
    assert_true(memory[0].busy);
    release_slot(&slots, 0, 4, 4);
    assert_false(memory[0].busy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_lie_in_the_whole),
        cmocka_unit_test(a_slot_is_free_with_its_last_sample),
        cmocka_unit_test(a_slot_has_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
