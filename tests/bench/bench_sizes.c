/* What unequal microbatch sizes gain, in simulation: the settings of UMPIPE's abstract rebuilt,
 * with distributions.
 *
 *     bench_sizes gains [N]     percentiles over N draws of each case (default 200; networks 1,000)
 *     bench_sizes points        of 1,000 random networks: spread of log10(a/c), gain over the best
 *                               even size in %, one line each; for the figure
 *
 * Gain: how much longer the baseline's step takes, in % of UMPIPE's. Sizes by `tidgap`, two rounds.
 * Backward costs twice the forward. VGG16 and GPT: one layer (block) on each stage; the costs are
 * computed from operations and bytes of the layers for boards that are drawn, see draw_board(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "planners/instance.h"
#include "planners/planner.h"
#include "planners/recurrence.h"

enum { LAYERS_MAX = 16, DRAWS_MAX = 1000, BASELINES = 8 };

static const char *const baseline_name[BASELINES] = {
    "GPipe, best even size", "GPipe, 4 microbatches",  "GPipe, 8 microbatches",
    "GPipe, L microbatches", "GPipe, size 1",          "no microbatches",
    "PipeDream, best size",  "PipeDream, GPipe's size"};

/* For one sample, forward. */
typedef struct {
    double operations;
    double weight_bytes;
    double activation_bytes; /* read and written */
    double out_bytes;        /* that go to the next stage */
    double kernels;
} layer;

typedef struct {
    layer layer[LAYERS_MAX];
    uint32_t count;
} net;

/* Of every stage alike. */
typedef struct {
    double operations_per_s, bytes_per_s, kernel_s, wire_bytes_per_s, message_s;
} board;

static void must(rp_err err) {
    if (err != RP_OK) {
        exit(rp_err_exit_code(err));
    }
}

/* ---- nets ------------------------------------------------------------------------------------ */

static void add_dense(net *n, double in, double out) {
    n->layer[n->count++] = (layer){2 * in * out, 4 * in * out, 4 * (in + out), 4 * out, 2};
}

/* Configuration D, without batchnorm; images of 32: the same three dense layers on 512 numbers. */
static net make_vgg16(uint32_t side) {
    static const uint32_t channels[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                        0,  512, 512, 512, 0,   512, 512, 512, 0};
    net n = {.count = 0};
    double in = 3;
    double pixels = (double)side * side;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        const double out = channels[i];
        if (channels[i] == 0) { /* a pool goes with the layer before it */
            layer *before = &n.layer[n.count - 1];
            before->activation_bytes += before->out_bytes * 1.25;
            before->out_bytes /= 4;
            before->kernels += 1;
            pixels /= 4;
            continue;
        }
        n.layer[n.count++] = (layer){18 * in * out * pixels, 36 * in * out,
                                     4 * (10 * in + 2 * out) * pixels, 4 * out * pixels, 3};
        in = out;
    }
    add_dense(&n, in * pixels, 4096);
    add_dense(&n, 4096, 4096);
    add_dense(&n, 4096, side == 32 ? 10 : 1000);
    return n;
}

/* 14 blocks of GPT-1: d 768, 12 heads, 512 words; or 12 of them between the table of 40,478 words
 * and the output over it. */
static net make_gpt(bool ends) {
    const double d = 768;
    const double words = 512;
    const double table = 40478;
    net n = {.count = 14};
    for (uint32_t i = 0; i < n.count; i++) {
        n.layer[i] = (layer){words * (24 * d * d + 4 * words * d), 48 * d * d,
                             4 * (16 * words * d + 24 * words * words), 4 * words * d, 16};
    }
    if (ends) {
        n.layer[0] = (layer){2 * words * d, 4 * words * d, 12 * words * d, 4 * words * d, 2};
        n.layer[13] = (layer){2 * words * d * table, 4 * d * table, 8 * words * table, 0, 4};
    }
    return n;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static board draw_board(rp_rng *rng) {
    return (board){.operations_per_s = log_uniform(rng, 1e11, 1e13),
                   .bytes_per_s = log_uniform(rng, 1e10, 5e11),
                   .kernel_s = log_uniform(rng, 5e-6, 200e-6),
                   .wire_bytes_per_s = log_uniform(rng, 1e8, 1e10),
                   .message_s = log_uniform(rng, 20e-6, 500e-6)};
}

/* What takes longer, operations or bytes, and the start of each kernel. */
static double forward_s(const layer *l, const board *b, double samples) {
    const double compute = samples * l->operations / b->operations_per_s;
    const double memory = (l->weight_bytes + samples * l->activation_bytes) / b->bytes_per_s;
    return l->kernels * b->kernel_s + fmax(compute, memory);
}

static void make_problem(rp_arena *arena, const net *n, const board *b, uint32_t samples,
                         rp_problem *out) {
    must(rp_problem_open(arena, n->count, samples, out));
    for (uint32_t k = 0; k < n->count; k++) {
        for (uint32_t s = 1; s <= samples; s++) {
            const size_t at = (size_t)k * (samples + 1) + s;
            out->pass[RP_WAY_FORWARD][at] = forward_s(&n->layer[k], b, s);
            out->pass[RP_WAY_BACKWARD][at] = 2 * out->pass[RP_WAY_FORWARD][at];
        }
        const double sample_s = n->layer[k].out_bytes / b->wire_bytes_per_s;
        if (k + 1 < n->count) {
            fill_row(out, out->send[RP_WAY_FORWARD], k, b->message_s, sample_s);
            fill_row(out, out->send[RP_WAY_BACKWARD], k + 1, b->message_s, sample_s);
        }
    }
}

/* ---- baselines ------------------------------------------------------------------------------- */

/* A step of PipeDream in its steady state: the slowest stage or wire sets the pace. */
static double pipedream_s(const rp_problem *p, uint32_t size) {
    double period = 0;
    for (uint32_t k = 0; k < p->stages; k++) {
        const size_t at = (size_t)k * (p->samples + 1) + size;
        period = fmax(period, p->pass[0][at] + p->pass[1][at]);
        period = fmax(period, fmax(p->send[0][at], p->send[1][at]));
    }
    return period * p->samples / size;
}

/* GPipe with at most so many microbatches; the last one is the rest. */
static double gpipe_s(rp_arena *arena, const rp_problem *p, uint32_t count) {
    const uint32_t size = (p->samples + count - 1) / count;
    rp_problem one = *p;
    rp_tables tables;
    rp_recurrence_room room;
    one.size_count = size < p->samples ? 2 : 1;
    one.size[0] = size;
    one.size[one.size_count - 1] = p->samples;
    const rp_genome even = rp_problem_even(&one, 0);
    must(rp_tables_open(arena, &one, &tables));
    must(rp_recurrence_open(arena, &tables, &room));
    return rp_recurrence_makespan(&tables, &even, &room);
}

/* In % of UMPIPE's step, by baseline. */
static void measure_gains(rp_arena *arena, const rp_problem *p, double out[BASELINES]) {
    const rp_planner_ask ask = {.problem = p, .seed = 1, .rounds = 2};
    rp_planner_answer best;
    must(rp_planner_search(rp_planner_find("tidgap"), &ask, &best));
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < p->size_count; i++) {
        least = fmin(least, pipedream_s(p, p->size[i]));
    }
    const double step_s[BASELINES] = {best.even_step_s,
                                      gpipe_s(arena, p, 4),
                                      gpipe_s(arena, p, 8),
                                      gpipe_s(arena, p, p->stages),
                                      gpipe_s(arena, p, p->samples),
                                      gpipe_s(arena, p, 1),
                                      least,
                                      pipedream_s(p, p->size[best.even.gene[0][0]])};
    for (uint32_t i = 0; i < BASELINES; i++) {
        out[i] = 100 * (step_s[i] / best.step_s - 1);
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_gains(const char *name, double (*gain)[BASELINES], uint32_t count) {
    printf("\n%s, %u draws\n\n", name, count);
    printf(
        "| over | least | 5 %% | median | 95 %% | 99 %% | most |\n|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < BASELINES; i++) {
        double sorted[DRAWS_MAX];
        for (uint32_t n = 0; n < count; n++) {
            sorted[n] = gain[n][i];
        }
        qsort(sorted, count, sizeof *sorted, by_value);
        printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", baseline_name[i], sorted[0],
               sorted[count / 20], sorted[count / 2], sorted[count * 95 / 100],
               sorted[count * 99 / 100], sorted[count - 1]);
    }
    (void)fflush(stdout);
}

static void measure_net(const char *name, const net *n, uint32_t samples, uint32_t count) {
    static double gain[DRAWS_MAX][BASELINES];
    rp_rng rng = rp_rng_named(1, "bench/sizes/boards"); /* the same boards for all nets */
    char title[80];
    for (uint32_t i = 0; i < count; i++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "bench", 0);
        const board b = draw_board(&rng);
        make_problem(&arena, n, &b, samples, &p);
        measure_gains(&arena, &p, gain[i]);
        rp_arena_finish(&arena);
    }
    (void)snprintf(title, sizeof title, "%s, %u stages, a step of %u", name, n->count, samples);
    print_gains(title, gain, count);
}

static void measure_networks(uint32_t samples, bool print_points) {
    static double gain[DRAWS_MAX][BASELINES];
    const instance_draw draw = {
        .stages_min = 4, .stages_max = 16, .samples = samples, .backward = 2};
    rp_rng rng = rp_rng_named(samples, "bench/sizes/networks");
    char title[80];
    for (uint32_t i = 0; i < DRAWS_MAX; i++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "bench", 0);
        must(draw_instance(&arena, &rng, &draw, &p));
        measure_gains(&arena, &p, gain[i]);
        if (print_points) {
            printf("%.4f %.4f\n", instance_spread(&p), gain[i][0]);
        }
        rp_arena_finish(&arena);
    }
    (void)snprintf(title, sizeof title, "Random networks, 4 to 16 stages, a step of %u", samples);
    if (!print_points) {
        print_gains(title, gain, DRAWS_MAX);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const unsigned long asked = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
    const uint32_t count = (uint32_t)(asked > DRAWS_MAX ? DRAWS_MAX : asked);
    if (strcmp(what, "points") == 0) {
        measure_networks(32, true);
        return 0;
    }
    if (strcmp(what, "gains") != 0 || count == 0) {
        (void)fprintf(stderr, "bench_sizes: gains [N], or points\n");
        return 2;
    }
    const net vgg32 = make_vgg16(32);
    const net vgg224 = make_vgg16(224);
    const net blocks = make_gpt(false);
    const net whole = make_gpt(true);
    for (uint32_t samples = 32; samples <= 128; samples *= 4) {
        measure_net("VGG16, images of 32", &vgg32, samples, count);
        measure_net("VGG16, images of 224", &vgg224, samples, count);
        measure_net("GPT-1, 14 blocks", &blocks, samples, count);
        measure_net("GPT-1, 12 blocks, table and output", &whole, samples, count);
        measure_networks(samples, false);
    }
    return 0;
}
