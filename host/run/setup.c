#include "run/setup.h"

#include <string.h>

rp_setup rp_setup_of(const rp_runfile *run) {
    const rp_method *method = &run->method;
    rp_setup setup = {.boards = run->boards,
                      .spares = run->spares,
                      .roster = run->roster,
                      .stages = run->stages,
                      .codec = run->codec,
                      .codec_stages = run->codec ? run->stages : 0,
                      .size = run->sizes.at,
                      .size_stages = run->sizes.at ? run->stages : 0,
                      .micro = run->micro,
                      .input_codec = run->input_codec,
                      .schedule = run->schedule_index,
                      .split_count = method->split_count,
                      .whole = method->whole,
                      .said_count = method->split_count,
                      .said_whole = method->whole,
                      .advance = method->advance,
                      .ahead_count = method->ahead_count,
                      .micro_auto = run->micro_auto,
                      .boards_auto = run->boards_auto,
                      .schedule_auto = run->schedule_auto,
                      .ahead_auto = method->ahead_measured,
                      .step_first = run->step_first,
                      .lines_s = run->hops.since_s};
    memcpy(setup.ahead, method->ahead, sizeof setup.ahead);
    if (!run->cut_auto) {
        setup.cut = run->cut;
    }
    return setup;
}

rp_err rp_setup_arrays_new(rp_arena *arena, const rp_runfile *run, rp_setup_arrays **out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    RP_TRY(run->roster ? RP_ARENA_NEW(arena, run->boards + run->spares, &(*out)->roster) : RP_OK);
fail:
    return err;
}

rp_setup rp_setup_copy(const rp_setup *setup, rp_setup_arrays *arrays) {
    const size_t stages = setup->cut.stage_count;
    const size_t boards = setup->boards + setup->spares;
    rp_setup copy = *setup;
    RP_ASSERT(stages <= RP_CUT_STAGES_MAX && setup->codec_stages <= RP_CUT_STAGES_MAX);
    RP_ASSERT(setup->size_stages <= RP_CUT_STAGES_MAX && setup->boards <= RP_CUT_STAGES_MAX);
    if (stages > 0) {
        memmove(arrays->first, setup->cut.first, (stages + 1) * sizeof *arrays->first);
        copy.cut.first = arrays->first;
    }
    if (setup->group) {
        memmove(arrays->group, setup->group, (stages + 1) * sizeof *arrays->group);
        memmove(arrays->share, setup->share, setup->boards * sizeof *arrays->share);
        copy.group = arrays->group;
        copy.share = arrays->share;
    }
    if (setup->codec) {
        memmove(arrays->codec, setup->codec, (setup->codec_stages - 1) * sizeof *arrays->codec);
        copy.codec = (const rp_codec(*)[2])arrays->codec;
    }
    if (setup->size) {
        memmove(arrays->size, setup->size, setup->size_stages * sizeof *arrays->size);
        copy.size = (const uint32_t(*)[2])arrays->size;
    }
    if (setup->roster) {
        memmove(arrays->roster, setup->roster, boards * sizeof *arrays->roster);
        copy.roster = arrays->roster;
    }
    return copy;
}

static void put_method(const rp_setup *setup, rp_method *method) {
    method->split_count = setup->split_count;
    method->whole = setup->whole;
    if (setup->advance_stages > 0) {
        rp_method_set_advance(method, setup->advance_stages, setup->advance);
    }
    method->ahead_count = setup->ahead_count;
    memcpy(method->ahead, setup->ahead, sizeof setup->ahead);
    method->ahead_measured = setup->ahead_auto;
}

void rp_setup_run(const rp_runfile *run, const rp_setup *setup, rp_runfile *out) {
    RP_ASSERT(setup->boards > 0 && setup->stages > 0 && setup->micro > 0);
    RP_ASSERT((setup->codec != NULL) == (setup->codec_stages > 0));
    RP_ASSERT((setup->size != NULL) == (setup->size_stages > 0));
    *out = *run;
    if (setup->schedule != run->schedule_index) {
        rp_runfile_take_schedule(out, setup->schedule);
    }
    put_method(setup, &out->method);
    out->boards = setup->boards;
    out->spares = setup->spares;
    out->roster = setup->roster;
    out->stages = setup->stages;
    out->codec = setup->codec;
    out->sizes.at = setup->size;
    out->micro = setup->micro;
    if (setup->input_codec != run->input_codec) {
        out->input_codec = setup->input_codec;
        out->inputs_why = "a board has an older ringpipe";
    }
    out->micro_auto = setup->micro_auto;
    out->boards_auto = setup->boards_auto;
    out->schedule_auto = setup->schedule_auto;
    out->step_first = setup->step_first;
    out->hops.since_s = setup->lines_s;
}

void rp_setup_take_schedule(rp_setup *setup, const rp_runfile *run, uint32_t index) {
    RP_ASSERT(index < run->schedules.count);
    const rp_method *method = &run->schedules.at[index].method;
    setup->schedule = index;
    setup->split_count = setup->said_count = method->split_count;
    setup->whole = setup->said_whole = method->whole;
    setup->advance = method->advance;
    setup->advance_stages = 0;
    setup->ahead_count = method->ahead_count;
    memcpy(setup->ahead, method->ahead, sizeof setup->ahead);
    setup->ahead_auto = method->ahead_measured;
}

void rp_setup_take_advance(rp_setup *setup, uint32_t advance) {
    RP_ASSERT(advance <= RP_ADVANCE_MAX && setup->stages > 0);
    setup->advance = advance;
    setup->advance_stages = setup->stages;
}

void rp_setup_reopen_sizes(rp_setup *setup, const rp_runfile *run) {
    if (run->sizes.planner) {
        setup->size = NULL;
        setup->size_stages = 0;
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Compares two arrays; NULL equals only NULL. */
static bool same_bytes(const void *a, const void *b, size_t bytes) {
    return a && b ? memcmp(a, b, bytes) == 0 : a == b;
}

static bool same_boards(const rp_setup *a, const rp_setup *b) {
    bool same = a->boards == b->boards && (a->roster != NULL) == (b->roster != NULL);
    for (uint32_t k = 0; same && a->roster && k < a->boards; k++) {
        same = strcmp(a->roster[k].name, b->roster[k].name) == 0;
    }
    return same;
}

static bool same_stages(const rp_setup *a, const rp_setup *b) {
    const uint32_t count = a->cut.stage_count;
    return a->stages == b->stages && count == b->cut.stage_count &&
           (count == 0 ||
            same_bytes(a->cut.first, b->cut.first, (count + 1) * sizeof *a->cut.first)) &&
           same_bytes(a->group, b->group, ((size_t)count + 1) * sizeof *a->group) &&
           same_bytes(a->share, b->share, (a->group ? a->group[count] : 0) * sizeof *a->share);
}

static bool same_links(const rp_setup *a, const rp_setup *b) {
    const size_t boundaries = a->codec_stages > 0 ? a->codec_stages - 1 : 0;
    return a->codec_stages == b->codec_stages && a->size_stages == b->size_stages &&
           a->input_codec == b->input_codec && a->micro == b->micro &&
           same_bytes(a->codec, b->codec, boundaries * sizeof *a->codec) &&
           same_bytes(a->size, b->size, a->size_stages * sizeof *a->size);
}

static bool same_method(const rp_setup *a, const rp_setup *b) {
    return a->schedule == b->schedule && a->split_count == b->split_count && a->whole == b->whole &&
           a->said_count == b->said_count && a->said_whole == b->said_whole &&
           a->advance == b->advance && a->advance_stages == b->advance_stages &&
           a->ahead_count == b->ahead_count &&
           memcmp(a->ahead, b->ahead, a->ahead_count * sizeof *a->ahead) == 0;
}

bool rp_setup_equal(const rp_setup *a, const rp_setup *b) {
    return same_boards(a, b) && same_stages(a, b) && same_links(a, b) && same_method(a, b) &&
           a->micro_auto == b->micro_auto && a->boards_auto == b->boards_auto &&
           a->schedule_auto == b->schedule_auto && a->ahead_auto == b->ahead_auto;
}

/* ---- checking -------------------------------------------------------------------------------- */

static bool is_cut(const rp_cut *cut, uint32_t layers) {
    bool valid = cut->stage_count <= layers;
    for (uint32_t k = 0; valid && k < cut->stage_count; k++) {
        valid = cut->first[k] < cut->first[k + 1];
    }
    return valid && (cut->stage_count == 0 ||
                     (cut->first[0] == 0 && cut->first[cut->stage_count] == layers));
}

/* Are the groups consecutive, not empty, and cover all boards? */
static bool are_groups(const rp_setup *setup) {
    const uint32_t count = setup->cut.stage_count;
    bool valid = (setup->group != NULL) == (setup->share != NULL);
    if (!valid || !setup->group) {
        return valid;
    }
    for (uint32_t k = 0; valid && k < count; k++) {
        valid = setup->group[k] < setup->group[k + 1];
    }
    return valid && count > 0 && setup->group[0] == 0 && setup->group[count] == setup->boards;
}

static bool are_codecs(const rp_setup *setup) {
    bool valid = true;
    for (uint32_t k = 0; valid && k + 1 < setup->codec_stages; k++) {
        const rp_codec *at = setup->codec[k];
        valid = at[0] < RP_CODECS && at[1] < RP_CODECS && at[0] != RP_CODEC_UINT8 &&
                at[1] != RP_CODEC_UINT8;
    }
    return valid;
}

static bool are_sizes(const rp_setup *setup, uint32_t batch) {
    bool valid = true;
    for (uint32_t k = 0; valid && k < setup->size_stages; k++) {
        const uint32_t *at = setup->size[k];
        valid = at[0] > 0 && at[0] <= batch && at[1] > 0 && at[1] <= batch;
    }
    return valid;
}

static bool is_ahead(const rp_setup *setup) {
    bool valid = setup->ahead_count <= RP_SPLIT_STAGES_MAX;
    for (uint32_t k = 0; valid && k < setup->ahead_count; k++) {
        valid = setup->ahead[k] >= 1 && setup->ahead[k] <= RP_AHEAD_MAX;
    }
    return valid;
}

const char *rp_setup_check(const rp_setup *setup, const rp_runfile *run) {
    const uint32_t schedules = run->schedules.count > 0 ? run->schedules.count : 1;
    return setup->boards == 0 ? "has no board"
           : (setup->roster != NULL) == run->local
               ? "has local boards instead of a roster, or the reverse"
           : setup->stages == 0                            ? "has no stage"
           : !is_cut(&setup->cut, run->model->layer_count) ? "has an invalid cut"
           : !are_groups(setup)                            ? "has invalid groups of boards"
           : (setup->codec != NULL) != (setup->codec_stages > 0) || !are_codecs(setup)
               ? "has invalid codecs"
           : (setup->size != NULL) != (setup->size_stages > 0) || !are_sizes(setup, run->batch)
               ? "has invalid sizes of microbatches"
           : setup->micro == 0 || setup->micro > run->batch ? "has an invalid microbatch"
           : setup->input_codec >= RP_CODECS                ? "has an invalid codec of inputs"
           : setup->schedule >= schedules                   ? "has a schedule that the run lacks"
           : setup->split_count > RP_SPLIT_STAGES_MAX       ? "splits too many stages"
           : setup->advance > RP_ADVANCE_MAX                ? "has an invalid advance"
           : !is_ahead(setup)                               ? "has invalid steps ahead"
                                                            : NULL;
}
