/* The joint planner on virtual rings: how long it takes, and how near it comes to what no plan can
 * beat, for the ring as it is, with boards and order open, and with stages shared besides.
 *
 *     bench_joint [SECONDS [BOARDS]]
 *
 * Rings of 8, 32 and 128 boards, speeds from 1 to 8, and wires over which a microbatch takes from a
 * tenth to twice as long as an average stage (both log-uniform), two dense layers a board with
 * uniform costs, four microbatches a board, gpipe; the median of 10 draws (of 3 with 128 boards).
 * A step by its bound (joint.h: all work at the speed of all boards, or the cheapest wire); wall
 * seconds, bounded by SECONDS (5: the default of plan.seconds). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "planning/joint.h"

enum { MICRO = 8, MICROS = 4, DRAWS = 10, BOARDS_MAX = 128, LAYERS_MAX = 2 * BOARDS_MAX };
static const uint32_t sizes[] = {8, 32, 128};

static void must(rp_err err) {
    if (err != RP_OK) {
        (void)fprintf(stderr, "%s\n", rp_err_message());
        exit(rp_err_exit_code(err));
    }
}

static FILE *open_file(const char *folder, const char *name) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void read_run(rp_arena *arena, const char *folder, uint32_t boards, rp_runfile *out) {
    const uint32_t batch = boards * MICRO * MICROS;
    char path[256];
    FILE *model = open_file(folder, "model.yaml");
    (void)fprintf(model, "input: data\nlayers:\n");
    for (uint32_t i = 0; i < 2 * boards; i++) {
        (void)fprintf(model, "  - {name: fc%u, kind: dense, out: %s}\n", i,
                      i + 1 < 2 * boards ? "16" : "classes");
    }
    (void)fclose(model);
    FILE *run = open_file(folder, "run.yaml");
    (void)fprintf(run,
                  "model: %s/model.yaml\ndata: {set: glyphs, train: %u, test: 24, size: 12}\n"
                  "ring: {boards: %u}\n"
                  "train: {epochs: 1, batch: %u, microbatch: %u, seed: 1}\n"
                  "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\nschedule: gpipe\n",
                  folder, batch, boards, batch, MICRO);
    (void)fclose(run);
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    must(rp_runfile_read(arena, path, NULL, 0, out));
}

static void take_board(rp_arena *arena, rp_profile *profile, uint32_t board, const double *layer,
                       double speed) {
    const size_t layers = profile->layer_count;
    const size_t count = rp_measured_count(layers, profile->size_count);
    double *values;
    must(RP_ARENA_NEW(arena, count, &values));
    for (size_t s = 0; s < profile->size_count; s++) {
        for (size_t i = 0; i < layers; i++) {
            for (size_t p = 0; p < RP_MEASURED_PASSES; p++) {
                double *at = &values[rp_measured_at(layers, s, i, p)];
                at[0] = layer[i] / speed * profile->sizes[s] * 1e-3 * (p == 1 ? 2 : 1);
                at[1] = 0.01;
            }
        }
    }
    must(rp_profile_take(arena, profile, board, values, count));
}

static void draw(rp_arena *arena, rp_rng *rng, const rp_runfile *run, rp_profile *out) {
    static char name[BOARDS_MAX][16];
    double layer[LAYERS_MAX];
    must(rp_profile_open(arena, run, run->boards, out));
    for (uint32_t i = 0; i < out->layer_count; i++) {
        layer[i] = 0.1 + rp_rng_uniform(rng);
    }
    for (uint32_t k = 0; k < run->boards; k++) {
        (void)snprintf(name[k], sizeof name[k], "b%u", k);
        out->board[k].name = out->board[k].like = name[k];
        out->board[k].device = "virtual";
        out->board[k].memory_bytes = UINT64_C(1) << 30;
        take_board(arena, out, k, layer, pow(8, rp_rng_uniform(rng)));
    }
    const double stage_s = 2 * 0.6 * 3 * MICRO * 1e-3 / pow(8, 0.5);
    for (uint32_t i = 0; i < run->boards * run->boards; i++) {
        const double all_s = stage_s * 0.1 * pow(20, rp_rng_uniform(rng)) / 2;
        const rp_curve_point trips[] = {{64, all_s / 8, 0.1}, {16 * 4 * MICRO, all_s, 0.1}};
        if (i / run->boards != i % run->boards) {
            must(rp_profile_take_wire(out, i / run->boards, i % run->boards, trips, 2));
        }
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, uint32_t count) {
    qsort(value, count, sizeof *value, by_value);
    return (value[(count - 1) / 2] + value[count / 2]) / 2;
}

/* Alike, by speed, the answer: by the bound; seconds; boards that it has. */
enum { ROW = 5 };
enum { WAYS = 3, SHARE = 4 };
static const char *const ways[WAYS] = {"the ring as it is", "boards and order open",
                                       "and up to four boards a stage"};
static void ask(const rp_runfile *run, const rp_profile *profile, uint32_t way, double limit_s,
                double row[ROW], uint32_t *ended) {
    static rp_joint_answer answer;
    const rp_clock clock = rp_clock_real();
    const rp_joint_ask own = {.run = run,
                              .profile = profile,
                              .boards_open = way > 0,
                              .cuts_open = way == 0,
                              .share_most = way > 1 ? SHARE : 1,
                              .clock = &clock,
                              .limit_ns = (int64_t)(limit_s * (double)RP_NS_PER_S)};
    const int64_t start_ns = rp_clock_now_ns(&clock);
    must(rp_joint_search(&own, &answer));
    row[3] = (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-9;
    row[0] = answer.alike.step_s / answer.bound_s;
    row[1] = answer.now.step_s / answer.bound_s;
    row[2] = answer.plan[0].step_s / answer.bound_s;
    row[4] = answer.plan[0].count;
    *ended += answer.is_complete;
}

static void measure(const char *folder, uint32_t boards, double limit_s) {
    const uint32_t draws = boards > 32 ? 3 : DRAWS;
    double value[WAYS][ROW][DRAWS];
    uint32_t ended[WAYS] = {0};
    rp_rng rng = rp_rng_named(1, "bench/joint");
    for (uint32_t i = 0; i < draws; i++) {
        rp_arena arena;
        rp_runfile run;
        rp_profile profile;
        rp_arena_init(&arena, "bench", 0);
        read_run(&arena, folder, boards, &run);
        draw(&arena, &rng, &run, &profile);
        for (uint32_t open = 0; open < WAYS; open++) {
            double row[ROW];
            ask(&run, &profile, open, limit_s, row, &ended[open]);
            for (uint32_t at = 0; at < ROW; at++) {
                value[open][at][i] = row[at];
            }
        }
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    for (uint32_t open = 0; open < WAYS; open++) {
        printf("| %u | %s |", boards, ways[open]);
        for (uint32_t at = 0; at < 4; at++) {
            printf(" %.2f |", median(value[open][at], draws));
        }
        printf(" %.0f | %u of %u |\n", median(value[open][4], draws), ended[open], draws);
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv) {
    char folder[] = "/tmp/ringpipe-joint-XXXXXX";
    char path[256];
    const double limit_s = argc > 1 ? strtod(argv[1], NULL) : 5;
    const unsigned long only = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    printf("| boards | asked for | alike | by speed | the planner | s | boards taken | ended by "
           "itself |\n|---:|---|---:|---:|---:|---:|---:|---:|\n");
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (only == 0 || only == sizes[i]) {
            measure(folder, sizes[i], limit_s);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, i ? "model.yaml" : "run.yaml");
        (void)unlink(path);
    }
    return rmdir(folder);
}
