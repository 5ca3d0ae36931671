/* The setup in force: what the ring runs with, and the run file as it runs, which follows it. What
 * was chosen for the whole run is also in the resolved run file, where boards and resumed runs find
 * it. */
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

/* ---- run.yaml -------------------------------------------------------------------------------- */

static rp_err write_micro(rp_controller *c) {
    char text[64];
    (void)snprintf(text, sizeof text, "train.microbatch=%u", c->setup.now.micro);
    return rp_config_set(&c->arena, c->run.root, text);
}

/* By name: a run that is resumed has the same boards. */
static rp_err write_boards(rp_controller *c) {
    char text[RP_JOINT_BOARDS_MAX * 64];
    size_t used = (size_t)snprintf(text, sizeof text, "plan.boards=[");
    for (uint32_t k = 0; k < c->run.boards && used < sizeof text; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k ? ", " : "",
                                 c->run.roster[k].name);
    }
    if (used + 2 > sizeof text) {
        return rp_fail(RP_ERR_LIMIT, "plan.boards: names of boards take more than %zu bytes",
                       sizeof text);
    }
    (void)snprintf(text + used, sizeof text - used, "]");
    return rp_config_set(&c->arena, c->run.root, text);
}

static rp_err write_schedule(rp_controller *c) {
    char *text;
    rp_err err;
    RP_TRY(rp_arena_printf(&c->arena, &text, "schedule=%s",
                           c->run.schedules.at[c->setup.now.schedule].text));
    RP_TRY(rp_config_set(&c->arena, c->run.root, text));
fail:
    return err;
}

/* Which stages are split, in place of a word, too. */
static rp_err write_split(rp_controller *c) {
    static const char key[] = "schedule=";
    char set[1024];
    rp_err err;
    memcpy(set, key, sizeof key);
    RP_TRY(rp_method_write(&c->run.method, set + sizeof key - 1, sizeof set - sizeof key));
    RP_TRY(rp_config_set(&c->arena, c->run.root, set));
fail:
    return err;
}

static rp_err write_ahead(rp_controller *c) {
    const rp_setup *now = &c->setup.now;
    char text[RP_SPLIT_STAGES_MAX * 6 + 24];
    size_t used = (size_t)snprintf(text, sizeof text, "schedule.ahead=[");
    for (uint32_t k = 0; k < now->ahead_count; k++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%u", k ? ", " : "", now->ahead[k]);
    }
    (void)snprintf(text + used, sizeof text - used, "]");
    return rp_config_set(&c->arena, c->run.root, text);
}

/* What was open when the run file was last written, and is chosen now. */
static rp_err write_choices(rp_controller *c) {
    const rp_setup *now = &c->setup.now;
    const rp_setup *was = &c->setup.written;
    rp_err err;
    RP_TRY(was->micro_auto && !now->micro_auto ? write_micro(c) : RP_OK);
    RP_TRY(was->boards_auto && !now->boards_auto ? write_boards(c) : RP_OK);
    RP_TRY(now->schedule != was->schedule ? write_schedule(c) : RP_OK);
    RP_TRY(now->schedule == was->schedule && now->said_whole != was->said_whole ? write_split(c)
                                                                                : RP_OK);
    RP_TRY(was->ahead_auto && !now->ahead_auto ? write_ahead(c) : RP_OK);
    c->setup.written = *now;
fail:
    return err;
}

/* ---- the run file as it runs ----------------------------------------------------------------- */

void rp_setup_refresh(rp_controller *c) {
    rp_setup_run(&c->setup.opened, &c->setup.now, &c->run_view);
}

rp_err rp_setup_settle(rp_controller *c) {
    rp_setup_refresh(c);
    return write_choices(c);
}

rp_err rp_setup_open(rp_controller *c) {
    const rp_runfile *opened = &c->setup.opened;
    const uint32_t count = opened->boards + opened->spares;
    rp_err err = RP_OK;
    c->setup.now = rp_setup_of(opened);
    if (opened->roster) { /* its order changes */
        RP_TRY(RP_ARENA_NEW(&c->arena, count, &c->setup.now.roster));
        memcpy(c->setup.now.roster, opened->roster, count * sizeof *opened->roster);
    }
    c->setup.written = c->setup.now;
    rp_setup_refresh(c);
fail:
    return err;
}

void rp_setup_begin_at(rp_controller *c, uint64_t step) {
    c->setup.now.step_first = step;
    rp_setup_refresh(c);
}

/* ---- boards ---------------------------------------------------------------------------------- */

bool rp_setup_take_spare(rp_controller *c, uint32_t lost) {
    rp_setup *now = &c->setup.now;
    RP_ASSERT(lost < now->boards);
    return rp_spares_take(now->roster, now->boards, now->spares, lost);
}

void rp_setup_drop_spare(rp_controller *c) {
    RP_ASSERT(c->setup.now.spares > 0);
    c->setup.now.spares--;
    rp_setup_refresh(c);
}

void rp_setup_leave_board(rp_controller *c, uint32_t board) {
    rp_setup *now = &c->setup.now;
    rp_spares_leave(now->roster, &now->boards, &now->spares, board);
    rp_setup_refresh(c);
}

void rp_setup_put_aside(rp_controller *c, uint32_t board) {
    rp_setup *now = &c->setup.now;
    rp_spares_put_aside(now->roster, &now->boards, &now->spares, board);
    rp_setup_refresh(c);
}

uint32_t rp_setup_return_board(rp_controller *c, uint32_t spare) {
    rp_setup *now = &c->setup.now;
    const uint32_t at = rp_spares_return(now->roster, &now->boards, &now->spares, spare);
    rp_setup_refresh(c);
    return at;
}

void rp_setup_place_board(rp_controller *c, uint32_t place, const rp_roster_entry *entry) {
    rp_roster_entry *at = &c->setup.now.roster[place];
    const uint32_t own = at->place;
    RP_ASSERT(place < c->setup.now.boards);
    *at = *entry;
    at->place = own;
}
