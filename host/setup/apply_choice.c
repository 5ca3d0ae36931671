/* Chooses the setup by next_setup.h before boards get stages, and puts it into force. */
#include "setup/setup_own.h"

static rp_setup_facts known_facts(const rp_arrangement *a) {
    return (rp_setup_facts){.delay_s = rp_measure_delay_s(a->measure),
                            .clock = a->ring->clock,
                            .then = &a->position->setup.cut,
                            .is_given = a->given != NULL,
                            .evaluates = a->evaluates,
                            .has_begun = a->has_begun};
}

bool rp_arrangement_needs_profile(const rp_arrangement *a) {
    const rp_setup_facts facts = known_facts(a);
    return a->profiles || rp_arrangement_wants_advance(a) ||
           rp_setup_needs_profile(&a->opened, &facts, &a->now);
}

rp_err rp_arrangement_facts(const rp_arrangement *a, rp_arena *arena, rp_setup_facts *out) {
    const char **name;
    rp_err err;
    RP_ASSERT(a->measure && a->ring->count == a->run.boards);
    RP_TRY(RP_ARENA_NEW(arena, a->ring->count, &name));
    for (uint32_t k = 0; k < a->ring->count; k++) {
        name[k] = a->ring->board[k].name;
    }
    *out = known_facts(a);
    out->name = name;
    out->profile = rp_measure_has_profile(a->measure) ? rp_measure_profile(a->measure) : NULL;
fail:
    return err;
}

void rp_arrangement_measure_cut(rp_arrangement *a) {
    if (rp_measure_has_profile(a->measure)) {
        rp_measure_place(a->measure);
        rp_measure_take_cut(a->measure, &a->now.cut);
    }
}

rp_err rp_arrangement_choose(rp_arrangement *a) {
    rp_setup_facts facts;
    rp_setup_why why;
    rp_setup next;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "choice", 0);
    a->advance_max = RP_ADVANCE_MAX; /* the method limits it further */
    RP_TRY(rp_arrangement_facts(a, &arena, &facts));
    RP_TRY(rp_setup_next(&a->opened, &facts, &a->now, &arena, &next, &why));
    RP_TRY(rp_arrangement_take(a, &next, &why));
    rp_arrangement_measure_cut(a);
    RP_ASSERT(rp_arrangement_has_cut(a) && !a->run.micro_auto && !a->run.schedule_auto);
fail:
    rp_arena_finish(&arena);
    return err;
}
