#include "expect.h"
#include "link/session.h"

static void peers_follow_one_another(void **state) {
    (void)state;
    rp_session session = {.own = 5};
    assert_int_equal(rp_session_classify(&session, 0), RP_SESSION_INVALID);
    assert_int_equal(rp_session_classify(&session, 7), RP_SESSION_FIRST);
    rp_session_adopt(&session, 7);
    assert_int_equal(rp_session_classify(&session, 7), RP_SESSION_SAME);
    assert_int_equal(rp_session_classify(&session, 0), RP_SESSION_INVALID);
    assert_int_equal(rp_session_classify(&session, 8), RP_SESSION_OTHER);
    rp_session_adopt(&session, 8);
    assert_int_equal(rp_session_classify(&session, 8), RP_SESSION_SAME);
    assert_int_equal(rp_session_classify(&session, 7), RP_SESSION_INVALID); /* is over */
}

/* The last eight that are over are known; an older frame than that is no one's. */
static void the_last_lives_are_remembered(void **state) {
    (void)state;
    rp_session session = {.own = 5};
    for (uint64_t number = 1; number <= 20; number++) {
        rp_session_adopt(&session, number);
    }
    for (uint64_t number = 1; number <= 20; number++) {
        const rp_session_is want = number == 20   ? RP_SESSION_SAME
                                   : number >= 12 ? RP_SESSION_INVALID
                                                  : RP_SESSION_OTHER;
        assert_int_equal(rp_session_classify(&session, number), want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_follow_one_another),
        cmocka_unit_test(the_last_lives_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
