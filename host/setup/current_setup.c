/* The setup in force and the run file that follows from it. Choices for the whole run are also
 * written to the resolved run file, for boards and resumed runs. */
#include <stdio.h>
#include <string.h>

#include "setup/setup_own.h"

static rp_err write_choices(rp_arrangement *a, const rp_setup *was) {
    rp_setup_settled settled;
    rp_err err;
    RP_TRY(rp_setup_settle(&a->run, was, &a->now, a->arena, &settled));
    for (uint32_t i = 0; i < settled.count; i++) {
        RP_TRY(rp_config_set(a->arena, a->run.root, settled.set[i]));
    }
fail:
    return err;
}

void rp_arrangement_put(rp_arrangement *a, const rp_setup *next) {
    RP_ASSERT(rp_setup_check(next, &a->opened) == NULL);
    RP_ASSERT(next->boards + next->spares <= a->opened.boards + a->opened.spares);
    a->now = rp_setup_copy(next, a->arrays);
    rp_setup_run(&a->opened, &a->now, &a->run);
}

/* Place of a board in a setup, by name; setup->boards if it has none of that name. */
static uint32_t find_place(const rp_setup *setup, const char *name) {
    uint32_t k = 0;
    while (k < setup->boards && strcmp(setup->roster[k].name, name) != 0) {
        k++;
    }
    return k;
}

/* Removes boards that are not in `next` from the ring, and orders the remaining ones as in `next`.
 */
static rp_err arrange_ring(rp_ring *ring, const rp_setup *next) {
    uint32_t at[RP_CUT_STAGES_MAX];
    bool same = true;
    for (uint32_t place = ring->count; next->roster && place-- > 0;) {
        if (find_place(next, ring->board[place].name) == next->boards) {
            rp_ring_leave(ring, place);
        }
    }
    for (uint32_t place = 0; next->roster && place < ring->count; place++) {
        const uint32_t k = find_place(next, ring->board[place].name);
        at[k] = place;
        same = same && k == place;
    }
    return same ? RP_OK : rp_ring_reorder(ring, at);
}

static bool have_same_codecs(const rp_setup *a, const rp_setup *b) {
    return a->codec_stages == b->codec_stages &&
           (a->codec == b->codec || !a->codec || !b->codec ||
            memcmp(a->codec, b->codec, (a->codec_stages - 1) * sizeof *a->codec) == 0);
}

void rp_arrangement_go_back(rp_arrangement *a) {
    a->codecs.differ = false;
    if (a->run.codec_auto && a->now.codec) {
        memcpy(a->codecs.next, a->now.codec, (a->now.codec_stages - 1) * sizeof *a->codecs.next);
    }
}

static rp_err say_why(rp_arrangement *a, const rp_setup_why *why) {
    rp_record *record = rp_folder_record(a->folder);
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < why->count && err == RP_OK; i++) {
        rp_run_event event = why->event[i];
        event.step = a->position->step;
        err = rp_record_event(record, &event);
    }
    RP_TRY(err);
    RP_TRY(why->boards ? rp_arena_string(a->arena, why->boards, &a->plan_words) : RP_OK);
    RP_TRY(why->schedule ? rp_arena_string(a->arena, why->schedule, &a->schedule_words) : RP_OK);
fail:
    return err;
}

rp_err rp_arrangement_take(rp_arrangement *a, const rp_setup *next, const rp_setup_why *why) {
    rp_record *record = rp_folder_record(a->folder);
    const rp_setup was = a->now; /* without its arrays */
    const bool other_codecs = !have_same_codecs(&was, next);
    rp_err err = RP_OK;
    if (was.boards_auto && !next->boards_auto) {
        RP_ASSERT(!a->has_begun);
        RP_TRY(arrange_ring(a->ring, next));
    }
    rp_arrangement_put(a, next);
    RP_TRY(write_choices(a, &was));
    if (was.micro_auto && !a->now.micro_auto) {
        rp_measure_set_micro(a->measure, a->now.micro);
    }
    if (other_codecs) {
        rp_arrangement_go_back(a);
    }
    if (record && a->now.schedule != was.schedule) {
        rp_record_take_schedule(record, a->run.method.kind->name);
    }
    if (record && (a->now.boards != was.boards || a->now.stages != was.stages)) {
        rp_record_take_boards(record, a->run.boards, a->run.stages);
    }
    RP_TRY(why ? say_why(a, why) : RP_OK);
fail:
    return err;
}

rp_err rp_arrangement_open(rp_arena *arena, const rp_arrangement_needs *needs,
                           rp_arrangement **out) {
    RP_ASSERT(needs->ring && needs->folder && needs->position);
    RP_ASSERT(needs->trains + needs->evaluates + needs->profiles <= 1);
    rp_arrangement *a;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &a));
    a->arena = arena;
    a->ring = needs->ring;
    a->folder = needs->folder;
    a->position = needs->position;
    a->trains = needs->trains;
    a->evaluates = needs->evaluates;
    a->profiles = needs->profiles;
    a->resume = needs->resume;
    a->given_path = needs->plan;
    *out = a;
fail:
    return err;
}

rp_err rp_arrangement_read(rp_arrangement *a, const char *path, const char *const *set,
                           uint32_t set_count) {
    const rp_runfile *opened = &a->opened;
    rp_err err;
    RP_ASSERT(opened->boards == 0); /* read only once */
    RP_TRY(rp_runfile_read(a->arena, path, set, set_count, &a->opened));
    const rp_setup own = rp_setup_of(opened);
    RP_TRY(rp_setup_arrays_new(a->arena, opened, &a->arrays));
    RP_TRY(RP_ARENA_NEW(a->arena, opened->codec_auto ? RP_CUT_STAGES_MAX : 1, &a->codecs.next));
    rp_arrangement_put(a, &own);
fail:
    return err;
}

void rp_arrangement_use_measure(rp_arrangement *a, rp_measure *measure) {
    RP_ASSERT(!a->measure && a->run.boards > 0);
    a->measure = measure;
}

void rp_arrangement_release(rp_arrangement *a) {
    if (a) {
        rp_arena_finish(&a->plan_arena);
    }
}

void rp_arrangement_close(rp_arrangement *a) {
    if (a) {
        rp_runfile_close(&a->opened);
    }
}

void rp_arrangement_begin_at(rp_arrangement *a, uint64_t step) {
    RP_ASSERT(step <= a->opened.steps);
    a->now.step_first = step;
    rp_arrangement_put(a, &a->now);
}

void rp_arrangement_note_begun(rp_arrangement *a) {
    RP_ASSERT(a->trains && a->plan);
    a->has_begun = true;
}

void rp_arrangement_set_lines(rp_arrangement *a, double age_s) {
    RP_ASSERT(age_s >= 0);
    a->now.lines_s = age_s;
    rp_arrangement_put(a, &a->now);
}

void rp_arrangement_lower_inputs(rp_arrangement *a) {
    RP_ASSERT(a->run.inputs_auto && !a->given);
    a->now.input_codec = RP_CODEC_F32;
    rp_arrangement_put(a, &a->now);
}

/* ---- what is in force ------------------------------------------------------------------------ */

const rp_runfile *rp_arrangement_run(const rp_arrangement *a) {
    return &a->run;
}

rp_plan *rp_arrangement_plan(const rp_arrangement *a) {
    return a->plan;
}

const rp_plan *rp_arrangement_given(const rp_arrangement *a) {
    return a->given;
}

bool rp_arrangement_has_cut(const rp_arrangement *a) {
    return a->now.cut.stage_count == a->run.stages;
}

bool rp_arrangement_is_fixed(const rp_arrangement *a) {
    return a->given || a->now.group;
}

const rp_cut *rp_arrangement_plan_cut(const rp_arrangement *a) {
    return &a->plan_cut;
}

const char *rp_arrangement_plan_text(const rp_arrangement *a) {
    return a->plan_text;
}

bool rp_arrangement_has_advance(const rp_arrangement *a) {
    return a->advance_chosen;
}

void rp_arrangement_drop_plan(rp_arrangement *a) {
    a->plan = NULL;
}

/* ---- boards ---------------------------------------------------------------------------------- */

bool rp_arrangement_take_spare(rp_arrangement *a, uint32_t lost) {
    rp_setup *now = &a->now;
    RP_ASSERT(lost < now->boards);
    return rp_spares_take(now->roster, now->boards, now->spares, lost);
}

void rp_arrangement_drop_spare(rp_arrangement *a) {
    RP_ASSERT(a->now.spares > 0);
    a->now.spares--;
    rp_arrangement_put(a, &a->now);
}

void rp_arrangement_remove_board(rp_arrangement *a, uint32_t board) {
    rp_setup *now = &a->now;
    rp_spares_leave(now->roster, &now->boards, &now->spares, board);
    rp_arrangement_put(a, &a->now);
}

void rp_arrangement_demote_board(rp_arrangement *a, uint32_t board) {
    rp_setup *now = &a->now;
    rp_spares_put_aside(now->roster, &now->boards, &now->spares, board);
    rp_arrangement_put(a, &a->now);
}

uint32_t rp_arrangement_return_board(rp_arrangement *a, uint32_t spare) {
    rp_setup *now = &a->now;
    const uint32_t at = rp_spares_return(now->roster, &now->boards, &now->spares, spare);
    rp_arrangement_put(a, &a->now);
    return at;
}

void rp_arrangement_place_board(rp_arrangement *a, uint32_t place, const rp_roster_entry *entry) {
    rp_roster_entry *at = &a->now.roster[place];
    const uint32_t own = at->place;
    RP_ASSERT(place < a->now.boards);
    *at = *entry;
    at->place = own;
}
