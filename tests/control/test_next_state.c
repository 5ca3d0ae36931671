/* What comes next: the answer to each set of facts; and what holds for every combination of them.
 */
#include "expect.h"

#include "control/next_state.h"

typedef struct {
    const char *why;
    rp_next_pause facts;
    rp_next_step step;
    rp_control_state_id state;
} row;

#define ENTERS(id) RP_NEXT_ENTER, RP_CONTROL_##id
#define DOES(id) RP_NEXT_##id, RP_CONTROL_STATES

static void expect_answer(const row *r) {
    const rp_next_answer answer = rp_next_at_pause(&r->facts);
    if (answer.step != r->step || answer.state != r->state) {
        fail_msg("%s: step %d, state %d", r->why, (int)answer.step, (int)answer.state);
    }
}

static void after_hello(void **state) {
    (void)state;
    static const struct {
        const char *why;
        rp_next_greeted facts;
        rp_control_state_id state;
    } rows[] = {
        {"copies hold what lost boards had",
         {.copies_wanted = true, .keeps_cut = true},
         RP_CONTROL_RESCUE},
        {"stages as before", {.keeps_cut = true, .lacks_profile = true}, RP_CONTROL_ASSIGN},
        {"something has to be measured", {.lacks_profile = true}, RP_CONTROL_PROFILE},
        {"all is known", {false}, RP_CONTROL_PLAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rp_next_after_hello(&rows[i].facts) != rows[i].state) {
            fail_msg("%s", rows[i].why);
        }
    }
}

static void after_a_fault(void **state) {
    (void)state;
    static const struct {
        const char *why;
        rp_next_fault facts;
        rp_next_way way;
    } rows[] = {
        {"disk first", {.disk_fails = true, .leaves_adoption = true, .faulty = true}, RP_NEXT_WAIT},
        {"an adoption",
         {.leaves_adoption = true, .warm_waits = true, .faulty = true},
         RP_NEXT_LEAVE_ADOPTION},
        {"warming has time left",
         {.warm_waits = true, .warm_leaves = true, .faulty = true},
         RP_NEXT_WARM_AGAIN},
        {"a spare failed", {.warm_leaves = true, .faulty = true}, RP_NEXT_WARM_WITHOUT},
        {"a fault", {.faulty = true}, RP_NEXT_MEND},
        {"boards have joined", {false}, RP_NEXT_RETURN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rp_next_after_fault(&rows[i].facts) != rows[i].way) {
            fail_msg("%s", rows[i].why);
        }
    }
}

static void an_evaluation(void **state) {
    (void)state;
    static const row rows[] = {
        {"loaded", {.state = RP_CONTROL_LOAD, .unsaved = true}, ENTERS(EVALUATE)},
        {"scored", {.state = RP_CONTROL_EVALUATE, .evaluation_due = true}, ENTERS(CLOSE)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_answer(&rows[i]);
    }
}

/* In the order in which facts count: a row has also facts that count less. */
#define PAUSE .trains = true
static const row pauses[] = {
    {"verified before it is saved",
     {PAUSE, .verify_due = true, .verify_alone = true, .adopted = true, .unsaved = true},
     ENTERS(VERIFY)},
    {"a segment for a verification alone goes on",
     {PAUSE, .verify_alone = true, .adopted = true, .unsaved = true},
     ENTERS(TRAIN)},
    {"but not when a person interrupts",
     {PAUSE, .verify_alone = true, .interrupted = true, .unsaved = true},
     ENTERS(SAVE)},
    {"an adopted state is saved: on from there",
     {PAUSE, .adopted = true, .unsaved = true},
     ENTERS(RECOVER)},
    {"copies will do", {PAUSE, .unsaved = true, .copies_suffice = true}, ENTERS(COPY)},
    {"and are there",
     {PAUSE, .unsaved = true, .copies_suffice = true, .state = RP_CONTROL_COPY},
     ENTERS(TRAIN)},
    {"batch statistics are renewed before they are saved",
     {PAUSE, .unsaved = true, .statistics_due = true, .interrupted = true},
     ENTERS(STATISTICS)},
    {"saved before all else",
     {PAUSE, .unsaved = true, .interrupted = true, .is_over = true},
     ENTERS(SAVE)},
    {"statistics alone are not due",
     {PAUSE, .statistics_due = true, .copies_suffice = true, .none_joins = true},
     ENTERS(TRAIN)},
    {"a new method is said",
     {PAUSE, .new_method_saved = true, .interrupted = true},
     DOES(SAY_METHOD)},
    {"an interrupt",
     {PAUSE, .interrupted = true, .round_due = true, .method_drains = true},
     DOES(INTERRUPT)},
    {"a lane's round", {PAUSE, .round_due = true, .method_drains = true}, ENTERS(ROUND)},
    {"drained for a new method", {PAUSE, .method_drains = true, .kept_here = true}, DOES(REASSIGN)},
    {"the cut is looked at where there is a checkpoint",
     {PAUSE, .kept_here = true, .evaluation_due = true},
     DOES(REPLAN)},
    {"not once more",
     {PAUSE, .kept_here = true, .replanned = true, .evaluation_due = true},
     ENTERS(EVALUATE)},
    {"not after boards were loaded",
     {PAUSE, .kept_here = true, .state = RP_CONTROL_LOAD, .evaluation_due = true},
     ENTERS(EVALUATE)},
    {"not at the end", {PAUSE, .kept_here = true, .is_over = true}, DOES(FINISH)},
    {"not before an early end", {PAUSE, .kept_here = true, .ends_early = true}, ENTERS(DRAIN)},
    {"another cut pays, with full pipes",
     {PAUSE, .replanned = true, .replan_pays = true, .method_drains = true},
     ENTERS(DRAIN)},
    {"another cut pays, with empty pipes",
     {PAUSE, .replanned = true, .replan_pays = true, .method_drains = true, .is_drained = true},
     DOES(REASSIGN)},
    {"an early end drains first",
     {PAUSE, .ends_early = true, .evaluation_due = true},
     ENTERS(DRAIN)},
    {"weights that were never written",
     {PAUSE, .is_over = true, .weights_missing = true, .evaluation_due = true},
     ENTERS(SAVE)},
    {"a last evaluation", {PAUSE, .is_over = true, .evaluation_due = true}, ENTERS(EVALUATE)},
    {"the end", {PAUSE, .is_over = true, .codecs_wanted = true, .links_due = true}, DOES(FINISH)},
    {"boards may join", {PAUSE, .codecs_wanted = true, .links_due = true}, DOES(JOIN)},
    {"milder codecs wait for empty pipes",
     {PAUSE, .none_joins = true, .codecs_wanted = true, .links_due = true},
     ENTERS(DRAIN)},
    {"links are measured", {PAUSE, .none_joins = true, .links_due = true}, ENTERS(PLAN)},
    {"on", {PAUSE, .none_joins = true}, ENTERS(TRAIN)},
};

static void at_a_pause(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        expect_answer(&pauses[i]);
    }
}

/* The facts of a pause as bits, so that all combinations can be tried. */
static bool *fact_of(rp_next_pause *f, uint32_t bit) {
    bool *const all[] = {
        &f->interrupted,   &f->verify_due,     &f->verify_alone,     &f->adopted,
        &f->unsaved,       &f->copies_suffice, &f->statistics_due,   &f->round_due,
        &f->kept_here,     &f->is_over,        &f->weights_missing,  &f->evaluation_due,
        &f->ends_early,    &f->is_drained,     &f->new_method_saved, &f->method_drains,
        &f->codecs_wanted, &f->links_due,      &f->replanned,        &f->none_joins};
    return bit < sizeof all / sizeof *all ? all[bit] : NULL;
}

/* Whatever the facts are: what was trained is not left behind, a question that was carried out is
 * not asked again, and an interrupt ends the run at the first pause that has all saved. */
static void every_combination_keeps_the_promises(void **state) {
    (void)state;
    rp_next_pause none = {PAUSE};
    uint32_t bits = 0;
    while (fact_of(&none, bits)) {
        bits++;
    }
    for (uint32_t word = 0; word < UINT32_C(1) << bits; word++) {
        rp_next_pause f = {PAUSE};
        for (uint32_t i = 0; i < bits; i++) {
            *fact_of(&f, i) = (word >> i & 1) != 0;
        }
        const rp_next_answer answer = rp_next_at_pause(&f);
        const bool enters = answer.step == RP_NEXT_ENTER;
        assert_true(enters == (answer.state < RP_CONTROL_STATES));
        const bool leaves = answer.step == RP_NEXT_FINISH || answer.step == RP_NEXT_REASSIGN ||
                            answer.step == RP_NEXT_INTERRUPT || answer.step == RP_NEXT_REPLAN ||
                            answer.step == RP_NEXT_JOIN;
        assert_false(leaves && f.unsaved);
        assert_false(answer.step == RP_NEXT_REPLAN && f.replanned);
        assert_false(answer.step == RP_NEXT_JOIN && f.none_joins);
        assert_false(f.verify_due && !(enters && answer.state == RP_CONTROL_VERIFY));
        if (f.interrupted && enters) { /* only what saves comes before */
            assert_true(f.verify_due || f.adopted || f.unsaved);
        }
        assert_false(answer.step == RP_NEXT_FINISH && !f.is_over);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_hello),
        cmocka_unit_test(after_a_fault),
        cmocka_unit_test(an_evaluation),
        cmocka_unit_test(at_a_pause),
        cmocka_unit_test(every_combination_keeps_the_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
