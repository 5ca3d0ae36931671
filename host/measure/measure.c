/* Opening and closing, known facts, and the profile. */
#include "measure/measure_own.h"

/* ---- opening and closing --------------------------------------------------------------------- */

rp_err rp_measure_open(rp_arena *arena, const rp_measure_needs *needs, rp_measure **out) {
    const rp_runfile *run = needs->run;
    rp_measure *m;
    rp_err err;
    RP_ASSERT(run->model && needs->ring && needs->clock);
    RP_TRY(RP_ARENA_NEW(arena, 1, &m));
    m->needs = *needs;
    m->board_count = run->boards + run->spares;
    RP_TRY(RP_ARENA_NEW(arena, m->board_count, &m->board));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)run->model->layer_count, &m->layer_seconds));
    rp_arena_init(&m->arena, "profile", 0);
    rp_arena_init(&m->plan_arena, "drift", 0);
    *out = m;
fail:
    return err;
}

void rp_measure_close(rp_measure *m) {
    if (m) {
        rp_wire_rate_end(&m->feed_wires.rate);
        rp_arena_finish(&m->arena);
        rp_arena_finish(&m->plan_arena);
    }
}

/* ---- facts ----------------------------------------------------------------------------------- */

bool rp_measure_has_profile(const rp_measure *m) {
    RP_ASSERT(!m->has_profile || m->profile.board_count > 0);
    return m->has_profile;
}

const rp_profile *rp_measure_profile(const rp_measure *m) {
    return &m->profile;
}

const double *rp_measure_layer_seconds(const rp_measure *m) {
    return m->layer_seconds;
}

double rp_measure_delay_s(const rp_measure *m) {
    RP_ASSERT(m->delay_s >= 0);
    return m->delay_s;
}

/* ---- the profile ----------------------------------------------------------------------------- */

rp_err rp_measure_read_profile(rp_measure *m, const char *path) {
    rp_err err;
    RP_ASSERT(!m->has_profile && m->builders == 0);
    RP_TRY(rp_profile_read(&m->arena, path, m->needs.run, &m->profile));
    RP_TRY(rp_profile_check_boards(path, m->needs.run, &m->profile));
    m->has_profile = true;
fail:
    return err;
}

void rp_measure_set_micro(rp_measure *m, uint32_t micro) {
    RP_ASSERT(micro > 0 && micro <= m->needs.run->batch);
    m->profile.micro = micro;
}

void rp_measure_place(rp_measure *m) {
    const rp_ring *ring = m->needs.ring;
    const char *name[RP_CUT_STAGES_MAX];
    const uint32_t count = ring->count < RP_CUT_STAGES_MAX ? ring->count : RP_CUT_STAGES_MAX;
    for (uint32_t k = 0; k < count; k++) {
        name[k] = ring->board[k].name;
    }
    rp_profile_place(&m->profile, name, count);
}

void rp_measure_take_cut(rp_measure *m, const rp_cut *cut) {
    RP_ASSERT(m->has_profile);
    RP_ASSERT(cut->stage_count > 0 && cut->stage_count <= RP_CUT_STAGES_MAX);
    rp_profile_seconds(&m->profile, m->needs.run, cut, m->layer_seconds);
}

/* ---- what the planner is asked --------------------------------------------------------------- */

static int64_t longest_search_ns(const rp_runfile *run) {
    return (int64_t)(run->plan.seconds * (double)RP_NS_PER_S);
}

rp_split_ask rp_measure_split_ask(rp_measure *m) {
    const rp_runfile *run = m->needs.run;
    rp_measure_place(m);
    return (rp_split_ask){.run = run,
                          .profile = &m->profile,
                          .delay_s = m->delay_s,
                          .clock = m->needs.clock,
                          .limit_ns = longest_search_ns(run)};
}

rp_joint_ask rp_measure_joint_ask(rp_measure *m, bool codecs_open) {
    const rp_runfile *run = m->needs.run;
    rp_measure_place(m);
    return (rp_joint_ask){.run = run,
                          .profile = &m->profile,
                          .delay_s = m->delay_s,
                          .boards_open = true,
                          .codecs_open = codecs_open,
                          .share_most = run->plan.share,
                          .micro_open = run->micro_auto,
                          .schedules_open = run->schedule_auto,
                          .clock = m->needs.clock,
                          .limit_ns = longest_search_ns(run)};
}
