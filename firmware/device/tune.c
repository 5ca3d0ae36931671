#include "device/tune.h"

#include <clblast_c.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device/device_own.h"
#include "device/gemm.h"

/* Products like those of dense layers, attention and convolutions on small images. */
static const struct {
    uint32_t m, n, k;
} shapes[] = {
    {512, 512, 512}, {64, 4096, 576}, {256, 1024, 1152}, {64, 512, 512}, {384, 128, 2048}};

enum {
    SHAPES = sizeof shapes / sizeof *shapes,
    ROUNDS = 5,
    PANEL_PASSES = 12,
    TRIES_MAX = 1000,
    TURNS = 3
};

typedef struct {
    rp_device *device;
    rp_arena host;
    rp_darena *memory;
    rp_buffer *a, *b, *c, *workspace;
    int64_t end_ns;
    void (*progress)(const char *text);
    double gflops[SHAPES]; /* from the last measurement */
} tuner;

typedef struct {
    bool good; /* measured, and passed the self-test */
    rp_tuning tuning;
    double score; /* geometric mean of GFLOP/s */
    double gflops[SHAPES];
} best;

static int64_t now_ns(void) {
    const rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock);
}

static bool time_is_up(const tuner *t) {
    return now_ns() >= t->end_ns;
}

static rp_err take_memory(tuner *t) {
    size_t a = 0;
    size_t b = 0;
    size_t c = 0;
    size_t workspace = 0;
    for (int i = 0; i < SHAPES; i++) {
        const size_t m = shapes[i].m;
        const size_t n = shapes[i].n;
        const size_t k = shapes[i].k;
        rp_mat am = rp_mat_plain(NULL, 0, shapes[i].m, shapes[i].k);
        rp_mat bm = rp_mat_plain(NULL, 0, shapes[i].k, shapes[i].n);
        rp_mat cm = rp_mat_plain(NULL, 0, shapes[i].m, shapes[i].n);
        a = m * k > a ? m * k : a;
        b = k * n > b ? k * n : b;
        c = m * n > c ? m * n : c;
        for (int choice = RP_GEMM_CLBLAST; choice <= RP_GEMM_PANEL; choice++) {
            size_t bytes = rp_gemm_workspace_bytes((rp_gemm_choice)choice, &cm, &am, &bm);
            workspace = bytes > workspace ? bytes : workspace;
        }
    }
    rp_err err;
    RP_TRY(rp_darena_open(&t->host, t->device, "tune", 0, 0, &t->memory));
    RP_TRY(rp_darena_take(t->memory, a * sizeof(float), &t->a));
    RP_TRY(rp_darena_take(t->memory, b * sizeof(float), &t->b));
    RP_TRY(rp_darena_take(t->memory, c * sizeof(float), &t->c));
    RP_TRY(rp_darena_take(t->memory, workspace, &t->workspace));
fail:
    return err;
}

static double score_of(const double *gflops) {
    double logs = 0;
    for (int i = 0; i < SHAPES; i++) {
        logs += log(gflops[i] > 0 ? gflops[i] : 1e-6);
    }
    return exp(logs / SHAPES);
}

/* Takes the shortest of several runs, to exclude other load. */
static rp_err measure_products(tuner *t, double *score) {
    rp_err err = RP_OK;
    for (int i = 0; i < SHAPES; i++) {
        rp_mat a = rp_mat_plain(t->a, 0, shapes[i].m, shapes[i].k);
        rp_mat b = rp_mat_plain(t->b, 0, shapes[i].k, shapes[i].n);
        rp_mat c = rp_mat_plain(t->c, 0, shapes[i].m, shapes[i].n);
        int64_t shortest_ns = INT64_MAX;
        for (int round = 0; round <= ROUNDS; round++) { /* the first round builds kernels */
            int64_t start_ns = now_ns();
            RP_TRY(rp_gemm_run(t->device, &c, &a, &b, NULL, t->workspace));
            RP_TRY(rp_device_drain(t->device));
            int64_t took_ns = now_ns() - start_ns;
            if (round > 0 && took_ns < shortest_ns) {
                shortest_ns = took_ns;
            }
        }
        t->gflops[i] = 2.0 * shapes[i].m * shapes[i].n * shapes[i].k / (double)shortest_ns;
    }
    *score = score_of(t->gflops);
fail:
    return err;
}

/* Sets CLBlast's parameters from a tuning. */
static rp_err apply_tuning(const tuner *t, const rp_tuning *tuning) {
    for (uint32_t i = 0; i < tuning->clblast_count; i++) {
        const rp_tuning_clblast *set = &tuning->clblast[i];
        CLBlastStatusCode code =
            CLBlastOverrideParameters(t->device->id, set->kernel, CLBlastPrecisionSingle,
                                      set->count, (const char **)(uintptr_t)set->name, set->value);
        if (code != CLBlastSuccess) {
            return rp_fail(RP_ERR_DEVICE, "CLBlast refuses the parameters of %s (CLBlast %d)",
                           set->kernel, (int)code);
        }
    }
    return RP_OK;
}

/* Measures a candidate; it wins if it is faster and passes the self-test. A candidate that does not
 * build or computes wrongly only loses. */
static void try_candidate(tuner *t, const rp_tuning *candidate, const char *name, best *winner) {
    double score = 0;
    char text[256];
    t->device->tuning = *candidate;
    t->device->gemm = candidate->gemm;
    bool good = apply_tuning(t, candidate) == RP_OK && measure_products(t, &score) == RP_OK;
    bool wins = false;
    if (good && (!winner->good || score > winner->score)) {
        good = rp_device_selftest(t->device) == RP_OK;
        wins = good;
    }
    (void)snprintf(text, sizeof text, "%-7s %-70s %8.1f GFLOP/s%s",
                   rp_gemm_choice_name(candidate->gemm), name, score,
                   !good ? "  (fails)" : (wins ? "  best so far" : ""));
    if (t->progress) {
        t->progress(text);
    }
    if (wins) {
        *winner = (best){.good = true, .tuning = *candidate, .score = score};
        memcpy(winner->gflops, t->gflops, sizeof winner->gflops);
    }
}

/* ---- panel ----------------------------------------------------------------------------------- */

typedef struct {
    rp_tuning_panel panel;
    bool out; /* does not run here, or computes wrongly */
    double gflops[SHAPES];
} panel_candidate;

static void measure_panel(tuner *t, const rp_tuning *base, panel_candidate *x) {
    double score = 0;
    char text[128];
    t->device->tuning = *base;
    t->device->tuning.panel = x->panel;
    t->device->gemm = RP_GEMM_PANEL;
    x->out = UINT64_C(4) * x->panel.columns * (x->panel.depth + 4) > t->device->facts.local_bytes ||
             measure_products(t, &score) != RP_OK;
    for (int i = 0; i < SHAPES && !x->out; i++) {
        x->gflops[i] = t->gflops[i] > x->gflops[i] ? t->gflops[i] : x->gflops[i];
    }
    (void)snprintf(text, sizeof text, "panel   rows %u, depth %u, columns %u: %.1f GFLOP/s%s",
                   x->panel.rows, x->panel.depth, x->panel.columns, score_of(x->gflops),
                   x->out ? "  (fails)" : "");
    if (t->progress) {
        t->progress(text);
    }
}

/* Chooses the fastest candidate that computes correctly. */
static void choose_panel(tuner *t, const rp_tuning *base, panel_candidate *list, size_t count,
                         best *winner) {
    for (size_t tries = 0; tries < count && !winner->good; tries++) {
        panel_candidate *first = NULL;
        for (size_t i = 0; i < count; i++) {
            if (!list[i].out && (!first || score_of(list[i].gflops) > score_of(first->gflops))) {
                first = &list[i];
            }
        }
        if (!first) {
            return;
        }
        t->device->tuning = *base;
        t->device->tuning.gemm = t->device->gemm = RP_GEMM_PANEL;
        t->device->tuning.panel = first->panel;
        first->out = rp_device_selftest(t->device) != RP_OK;
        if (!first->out) {
            *winner = (best){.good = true, .tuning = t->device->tuning};
            winner->score = score_of(first->gflops);
            memcpy(winner->gflops, first->gflops, sizeof winner->gflops);
        }
    }
}

static void tune_panel(tuner *t, const rp_tuning *base, const best *clblast, best *winner) {
    panel_candidate list[] = {
        {.panel = {8, 256, 128}},  {.panel = {12, 256, 128}}, {.panel = {8, 384, 128}},
        {.panel = {12, 384, 128}}, {.panel = {8, 512, 128}},  {.panel = {12, 192, 128}},
        {.panel = {8, 256, 64}},   {.panel = {12, 384, 64}},  {.panel = {8, 192, 96}},
        {.panel = {8, 128, 32}},
    };
    const size_t count = sizeof list / sizeof *list;
    size_t seen = 0;
    /* Several passes, because other load only slows a candidate, so its best time is right. */
    for (size_t i = 0; i < PANEL_PASSES * count && !time_is_up(t); i++) {
        measure_panel(t, base, &list[i % count]);
        seen = i < count ? i + 1 : seen;
        /* One item per group is far too slow on a GPU, whatever the block size. */
        if (clblast->good && score_of(list[0].gflops) < clblast->score / 8) {
            break;
        }
    }
    choose_panel(t, base, list, seen, winner);
}

/* ---- CLBlast --------------------------------------------------------------------------------- */

enum { XGEMM_VALUES = 16 };

static const char *const xgemm_names[XGEMM_VALUES] = {
    "GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB",
    "NDIMC", "NWG",  "SA",  "SB",  "STRM",  "STRN",  "VWM", "VWN",
};

typedef struct {
    uint32_t gemmk, kreg, kwg, kwi, mdima, mdimc, mwg, ndimb, ndimc, nwg, sa, sb, strm, strn, vwm,
        vwn;
} xgemm;

static bool xgemm_fits(const xgemm *x, const rp_device_facts *facts) {
    const uint32_t items = x->mdimc * x->ndimc;
    return x->mwg % (x->mdimc * x->vwm) == 0 && x->nwg % (x->ndimc * x->vwn) == 0 &&
           x->mwg % (x->mdima * x->vwm) == 0 && x->nwg % (x->ndimb * x->vwn) == 0 &&
           items % x->mdima == 0 && items % x->ndimb == 0 && x->kwg % (items / x->mdima) == 0 &&
           x->kwg % (items / x->ndimb) == 0 && x->kwg % x->kwi == 0 &&
           items <= facts->group_items_max &&
           UINT64_C(4) * x->kwg * (x->sa * x->mwg + x->sb * x->nwg) <= facts->local_bytes;
}

static uint32_t pick_number(rp_rng *rng, const uint32_t *from, uint32_t count) {
    return from[rp_rng_below(rng, count)];
}

static xgemm draw_xgemm(rp_rng *rng) {
    static const uint32_t tiles[] = {16, 32, 64, 128};
    static const uint32_t dims[] = {8, 16, 32};
    static const uint32_t depths[] = {16, 32};
    static const uint32_t widths[] = {1, 2, 4, 8};
    xgemm x = {.gemmk = 0, .kreg = 1, .kwi = 2};
    x.kwg = pick_number(rng, depths, 2);
    x.mdima = pick_number(rng, dims, 3);
    x.mdimc = pick_number(rng, dims, 3);
    x.mwg = pick_number(rng, tiles, 4);
    x.ndimb = pick_number(rng, dims, 3);
    x.ndimc = pick_number(rng, dims, 3);
    x.nwg = pick_number(rng, tiles, 4);
    x.sa = rp_rng_below(rng, 2);
    x.sb = rp_rng_below(rng, 2);
    x.strm = rp_rng_below(rng, 2);
    x.strn = rp_rng_below(rng, 2);
    x.vwm = pick_number(rng, widths, 4);
    x.vwn = pick_number(rng, widths, 4);
    return x;
}

static void set_xgemm(rp_tuning *tuning, const xgemm *x) {
    const size_t values[XGEMM_VALUES] = {x->gemmk, x->kreg,  x->kwg,   x->kwi, x->mdima, x->mdimc,
                                         x->mwg,   x->ndimb, x->ndimc, x->nwg, x->sa,    x->sb,
                                         x->strm,  x->strn,  x->vwm,   x->vwn};
    rp_tuning_clblast *set = &tuning->clblast[0];
    *set = (rp_tuning_clblast){.kernel = "Xgemm", .count = XGEMM_VALUES};
    memcpy(set->name, xgemm_names, sizeof xgemm_names);
    memcpy(set->value, values, sizeof values);
    tuning->clblast_count = tuning->clblast_count > 1 ? tuning->clblast_count : 1;
}

/* Sets the size (the cube root of m * n * k) from which CLBlast copies into padded matrices. */
static void set_switch(rp_tuning *tuning, size_t size) {
    tuning->clblast[1] = (rp_tuning_clblast){
        .kernel = "GemmRoutine", .count = 1, .name = {"XGEMM_MIN_INDIRECT_SIZE"}, .value = {size}};
    tuning->clblast_count = 2;
}

static void try_xgemm(tuner *t, const rp_tuning *base, const xgemm *x, best *winner) {
    rp_tuning candidate = *base;
    char name[128];
    set_xgemm(&candidate, x);
    set_switch(&candidate, 64);
    (void)snprintf(name, sizeof name, "%ux%ux%u, items %ux%u, loads %ux%u, wide %ux%u, %u%u%u%u",
                   x->mwg, x->nwg, x->kwg, x->mdimc, x->ndimc, x->mdima, x->ndimb, x->vwm, x->vwn,
                   x->sa, x->sb, x->strm, x->strn);
    try_candidate(t, &candidate, name, winner);
}

static void tune_xgemm(tuner *t, const rp_tuning *base, best *winner) {
    static const xgemm known[] = {
        {0, 1, 32, 2, 8, 8, 64, 32, 8, 128, 0, 0, 0, 0, 8, 4},    /* CPUs with wide vectors */
        {0, 1, 32, 2, 8, 8, 64, 8, 8, 64, 0, 0, 0, 0, 4, 4},      /* CPUs */
        {0, 1, 16, 2, 16, 16, 128, 16, 16, 64, 1, 1, 0, 0, 4, 1}, /* GPUs, local memory */
        {0, 1, 32, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4},
        {0, 1, 16, 2, 8, 8, 32, 8, 8, 32, 0, 0, 0, 0, 4, 4}, /* small GPUs */
    };
    const rp_device_facts *facts = &t->device->facts;
    rp_rng rng = rp_rng_named(1, "tune");
    for (size_t i = 0; i < sizeof known / sizeof *known && !time_is_up(t); i++) {
        if (xgemm_fits(&known[i], facts)) {
            try_xgemm(t, base, &known[i], winner);
        }
    }
    for (int i = 0; i < TRIES_MAX && !time_is_up(t); i++) {
        const xgemm x = draw_xgemm(&rng);
        if (xgemm_fits(&x, facts)) {
            try_xgemm(t, base, &x, winner);
        }
    }
}

static void tune_switch(tuner *t, best *winner) {
    static const size_t switches[] = {0, 64, 128, 256, 512, 1024};
    const rp_tuning base = winner->tuning;
    for (size_t i = 0; i < sizeof switches / sizeof *switches && !time_is_up(t); i++) {
        rp_tuning candidate = base;
        char name[64];
        set_switch(&candidate, switches[i]);
        (void)snprintf(name, sizeof name, "padded matrices from size %zu on", switches[i]);
        try_candidate(t, &candidate, name, winner);
    }
}

/* ---- result ---------------------------------------------------------------------------------- */

static json_t *describe_speed(const best *x) {
    json_t *map = json_object();
    for (int i = 0; x->good && i < SHAPES; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%ux%ux%u", shapes[i].m, shapes[i].n, shapes[i].k);
        (void)json_object_set_new(map, name, json_integer((json_int_t)llround(x->gflops[i])));
    }
    return map;
}

static json_t *describe_results(const tuner *t, const best *winner, const best *clblast,
                                const best *panel) {
    const rp_device_facts *facts = &t->device->facts;
    const rp_tuning *found = &winner->tuning;
    json_t *map = json_object();
    json_t *kernels = json_object();
    json_t *speed = json_object();
    (void)json_object_set_new(map, "gemm", json_string(rp_gemm_choice_name(found->gemm)));
    (void)json_object_set_new(map, "panel",
                              json_pack("{s:i, s:i, s:i}", "rows", (int)panel->tuning.panel.rows,
                                        "depth", (int)panel->tuning.panel.depth, "columns",
                                        (int)panel->tuning.panel.columns));
    for (uint32_t i = 0; i < clblast->tuning.clblast_count; i++) {
        const rp_tuning_clblast *set = &clblast->tuning.clblast[i];
        json_t *values = json_object();
        for (uint32_t j = 0; j < set->count; j++) {
            (void)json_object_set_new(values, set->name[j],
                                      json_integer((json_int_t)set->value[j]));
        }
        (void)json_object_set_new(kernels, set->kernel, values);
    }
    (void)json_object_set_new(map, "clblast", kernels);
    json_t *programs = json_object();
    for (uint32_t i = 0; i < found->program_count; i++) {
        (void)json_object_set_new(programs, found->programs[i].name,
                                  json_string(found->programs[i].defines));
    }
    (void)json_object_set_new(map, "programs", programs);
    (void)json_object_set_new(map, "device", json_string(facts->name));
    (void)json_object_set_new(map, "driver", json_string(facts->driver));
    (void)json_object_set_new(speed, "panel", describe_speed(panel));
    (void)json_object_set_new(speed, "clblast", describe_speed(clblast));
    (void)json_object_set_new(map, "gflops", speed);
    return map;
}

bool rp_tune_is_better(double before, double found) {
    return isfinite(found) && found > 0 && (before <= 0 || found > 1.02 * before);
}

rp_err rp_tune_write(rp_arena *arena, const rp_tune_result *result, const char *path) {
    char *temporary;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &temporary, "%s.new", path));
    FILE *file = fopen(temporary, "w");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s cannot be written: %s", temporary, strerror(errno));
    }
    bool good = fputs(result->text, file) != EOF;
    good = fflush(file) == 0 && fsync(fileno(file)) == 0 && good;
    good = fclose(file) == 0 && good;
    if (!good || rename(temporary, path) != 0) {
        (void)unlink(temporary);
        return rp_fail(RP_ERR_IO, "%s cannot be written", path);
    }
fail:
    return err;
}

/* ---- the tuning in force --------------------------------------------------------------------- */

/* Measures it again: the best of each shape counts. */
static void measure_again(tuner *t, best *x) {
    double score;
    t->device->tuning = x->tuning;
    t->device->gemm = x->tuning.gemm;
    if (apply_tuning(t, &x->tuning) != RP_OK || measure_products(t, &score) != RP_OK) {
        return;
    }
    for (int i = 0; i < SHAPES; i++) {
        x->gflops[i] = t->gflops[i] > x->gflops[i] ? t->gflops[i] : x->gflops[i];
    }
    x->score = score_of(x->gflops);
}

/* First of all, because CLBlast's own parameters cannot be restored. */
static void measure_before(tuner *t, best *before) {
    before->good = rp_device_selftest(t->device) == RP_OK;
    for (int turn = 0; turn < TURNS && before->good; turn++) {
        measure_again(t, before);
    }
}

static bool is_same(const rp_tuning *a, const rp_tuning *b) {
    if (a->gemm != b->gemm) {
        return false;
    }
    if (a->gemm == RP_GEMM_PANEL) {
        return memcmp(&a->panel, &b->panel, sizeof a->panel) == 0;
    }
    bool same = a->clblast_count == b->clblast_count;
    for (uint32_t i = 0; same && i < a->clblast_count; i++) {
        const rp_tuning_clblast *x = &a->clblast[i];
        const rp_tuning_clblast *y = &b->clblast[i];
        same = x->count == y->count && strcmp(x->kernel, y->kernel) == 0;
        for (uint32_t j = 0; same && j < x->count; j++) {
            same = x->value[j] == y->value[j] && strcmp(x->name[j], y->name[j]) == 0;
        }
    }
    return same;
}

static bool has_own_parameters(const rp_tuning *tuning) {
    return tuning->gemm == RP_GEMM_CLBLAST && tuning->clblast_count == 0;
}

/* Alternately, so that other load affects both. */
static void compare_tunings(tuner *t, best *before, best *winner) {
    char text[128];
    for (int turn = 0; turn < TURNS; turn++) {
        if (before->good && !has_own_parameters(&before->tuning)) {
            measure_again(t, before);
        }
        measure_again(t, winner);
    }
    (void)snprintf(text, sizeof text, "in turns: before %.1f GFLOP/s, found %.1f GFLOP/s",
                   before->good ? before->score : 0, winner->score);
    if (t->progress) {
        t->progress(text);
    }
}

/* ---- search ---------------------------------------------------------------------------------- */

/* The panel kernel has few candidates, Xgemm many, the switch-over six. */
static void search_tunings(tuner *t, const rp_tuning *base, double minutes, best *clblast,
                           best *panel) {
    const int64_t start_ns = now_ns();
    const int64_t all_ns = (int64_t)(minutes * 60e9);
    t->end_ns = start_ns + all_ns / 3;
    tune_panel(t, base, clblast, panel);
    t->end_ns = start_ns + all_ns / 6 * 5;
    tune_xgemm(t, base, clblast);
    t->end_ns = start_ns + all_ns;
    if (clblast->good && clblast->tuning.clblast_count == 2) {
        tune_switch(t, clblast);
    }
}

static rp_err write_result(rp_arena *arena, const tuner *t, const best *found, const best *winner,
                           rp_tune_result *out) {
    json_t *map = describe_results(t, winner, &found[0], &found[1]);
    char *dumped = json_dumps(map, JSON_INDENT(2));
    char *text = NULL;
    rp_err err = dumped ? rp_arena_printf(arena, &text, "%s\n", dumped)
                        : rp_fail(RP_ERR_MEMORY, "no memory for a tuning's text");
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(dumped);
    json_decref(map);
    out->text = text;
    return err;
}

rp_err rp_tune_run(rp_arena *arena, rp_device *device, double minutes,
                   void (*progress)(const char *text), rp_tune_result *out) {
    tuner t = {.device = device, .progress = progress};
    rp_tuning base = device->tuning; /* keeps the board's programs */
    best *found = NULL;              /* clblast, panel, or the tuning in force */
    rp_err err;
    rp_arena_init(&t.host, "tune", 0);
    RP_TRY(RP_ARENA_NEW(&t.host, 3, &found));
    RP_TRY(take_memory(&t));
    best *clblast = &found[0];
    best *panel = &found[1];
    best *before = &found[2];
    before->tuning = base;
    measure_before(&t, before);
    base.gemm = RP_GEMM_CLBLAST;
    base.clblast_count = 0;
    panel->tuning = clblast->tuning = base;
    try_candidate(&t, &base, "its own parameters", clblast);
    search_tunings(&t, &base, minutes, clblast, panel);
    if (!panel->good && !clblast->good) {
        RP_TRY(rp_fail(RP_ERR_NUMERIC, "no matrix product on %s passes the self-test",
                       device->facts.name));
    }
    const bool panels = panel->good && (!clblast->good || panel->score > clblast->score);
    best *winner = panels ? panel : clblast;
    compare_tunings(&t, before, winner);
    *out = (rp_tune_result){.before = before->good ? before->score : 0,
                            .found = winner->score,
                            .gemm = winner->tuning.gemm};
    out->better =
        !is_same(&before->tuning, &winner->tuning) && rp_tune_is_better(out->before, out->found);
    RP_TRY(write_result(arena, &t, found, winner, out));
    device->tuning = winner->tuning;
    device->gemm = winner->tuning.gemm;
    RP_TRY(apply_tuning(&t, &device->tuning));
fail:
    rp_darena_close(&t.memory);
    rp_arena_finish(&t.host);
    return err;
}
