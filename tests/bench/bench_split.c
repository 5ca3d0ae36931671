/* Forwards and backwards on boards of their own (pipefb) against the best plan of pipedream, by
 * replay, where memory alone is short: four boards that are alike in their speed, of which two or
 * all may use so much memory and no more.
 *
 *     bench_split
 *
 * Two nets of 24 dense layers that take equally long, one whose weights need the memory and one
 * whose stashes do; a board's backward takes as long as its forward, or twice as long; wires take
 * next to nothing. Pipedream may leave boards out, order and cut them as it likes, and computes
 * forwards again where that fits; or offloads stashes, too, to flash of 1 GB/s beside the ops. The
 * limit falls by a tenth from one row to the next, from the largest one that costs pipedream 1 %
 * on; of each case the limit with the largest gain is printed, and the range of limits with 5 % or
 * more. Limits are shares of the first one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planning/split_choice.h"

enum { BOARDS = 4, LAYERS = 24, FALLS = 24 };

typedef struct {
    const char *name;
    uint32_t width, micro;
} net;
static const net nets[] = {{"weights", 96, 4}, {"stashes", 16, 256}};

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

/* `limit_mb` 0: none; on two boards or on all. */
static void read_run(rp_arena *arena, const char *folder, const net *of, double limit_mb, bool all,
                     rp_runfile *out) {
    char path[256];
    FILE *model = open_file(folder, "model.yaml");
    (void)fprintf(model, "input: data\nlayers:\n");
    for (uint32_t i = 0; i < LAYERS; i++) {
        (void)fprintf(model, "  - {name: fc%u, kind: dense, out: ", i);
        (void)fprintf(model, i + 1 < LAYERS ? "%u}\n" : "classes}\n", of->width);
    }
    (void)fclose(model);
    FILE *run = open_file(folder, "run.yaml");
    (void)fprintf(run, "model: %s/model.yaml\ndata: {set: glyphs, train: %u, test: 24, size: 12}\n",
                  folder, 200 * of->micro);
    const double other = all ? limit_mb : 0;
    (void)fprintf(run, "ring: {boards: %d, memory_mb: [%.6g, %.6g, %.6g, %.6g]}\n", BOARDS, other,
                  limit_mb, other, limit_mb);
    (void)fprintf(run,
                  "train: {epochs: 1, batch: %u, microbatch: %u, seed: 1}\nloss: cross-entropy\n"
                  "optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}\nschedule: pipedream\n",
                  of->micro, of->micro);
    (void)fclose(run);
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    must(rp_runfile_read(arena, path, NULL, 0, out));
}

static void know(rp_arena *arena, const rp_runfile *run, double ratio, bool flash,
                 rp_profile *out) {
    static const char *const names[] = {"0", "1", "2", "3"};
    double values[2 * LAYERS];
    must(rp_profile_open(arena, run, BOARDS, out));
    for (uint32_t i = 0; i < 2 * LAYERS; i++) {
        values[i] = i % 2 ? 1e-2 * ratio : 1e-2;
    }
    for (uint32_t k = 0; k < BOARDS; k++) {
        out->board[k].name = names[k];
        must(rp_profile_take(arena, out, k, values, 2 * LAYERS));
        if (flash) {
            rp_profile_take_flash(out, k, 1e9, 1e9);
            out->board[k].device_memory = RP_DEVICE_MEMORY_SHARED;
        }
    }
}

/* Seconds of a step without and with a split; infinite where nothing fits. */
static void take(const char *folder, const net *of, double ratio, bool flash, bool all,
                 double limit_mb, double out[2]) {
    rp_split_answer answer;
    rp_runfile run;
    rp_profile profile;
    rp_arena arena;
    rp_arena_init(&arena, "bench", 0);
    read_run(&arena, folder, of, limit_mb, all, &run);
    know(&arena, &run, ratio, flash, &profile);
    const rp_split_ask ask = {.run = &run, .profile = &profile};
    must(rp_split_choose(&ask, &answer));
    out[0] = answer.is_allowed ? answer.without_s : (double)INFINITY;
    out[1] = answer.is_allowed ? answer.step_s : (double)INFINITY;
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

static void sweep(const char *folder, const net *of, double ratio, bool flash, bool all) {
    double free_s[2];
    double now[2];
    double first = 0;
    double best[4] = {0}; /* gain, limit, without, with */
    double range[2] = {0, 0};
    take(folder, of, ratio, flash, all, 0, free_s);
    for (double mb = 64; mb > 1e-3 && first <= 0; mb *= 0.9) {
        take(folder, of, ratio, flash, all, mb, now);
        first = now[0] > 1.01 * free_s[0] ? mb : 0;
    }
    for (uint32_t i = 0; i < FALLS; i++) {
        const double mb = first * pow(0.9, i);
        take(folder, of, ratio, flash, all, mb, now);
        const double gain = now[0] / now[1];
        if (isfinite(now[0]) && isfinite(now[1]) && gain > best[0]) {
            memcpy(best, (double[]){gain, mb / first, now[0], now[1]}, sizeof best);
        }
        if (gain >= 1.05) {
            range[1] = range[1] > 0 ? range[1] : mb / first;
            range[0] = mb / first;
        }
    }
    (void)printf("| %s | %g | %s | %s | %.2f | %.3f | %.3f | %.2f | ", of->name, ratio,
                 all ? "all" : "two", flash ? "flash, too" : "again", best[1], best[2], best[3],
                 best[0]);
    if (range[1] > 0) {
        (void)printf("%.2f to %.2f |\n", range[0], range[1]);
    } else {
        (void)printf("none |\n");
    }
    (void)fflush(stdout);
}

int main(void) {
    char folder[] = "/tmp/bench-split-XXXXXX";
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    (void)printf(
        "| memory of | t_B / t_F | boards with a limit | pipedream may | limit | pipedream, s "
        "| pipefb, s | gain | limits with 1.05 |\n|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < 16; i++) {
        sweep(folder, &nets[i / 8], i / 4 % 2 ? 2 : 1, i % 2, i / 2 % 2);
    }
    char path[64];
    (void)snprintf(path, sizeof path, "%s/model.yaml", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    (void)unlink(path);
    return rmdir(folder) == 0 ? 0 : 1;
}
