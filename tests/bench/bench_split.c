/* Forwards and backwards on boards of their own (pipefb) against the best plan of pipedream, where
 * memory alone is short: four boards that are alike in their speed, of which two or all may use so
 * many bytes and no more, counted as boards count them.
 *
 *     bench_split
 *
 * Two nets of 24 dense layers that take equally long: one whose weights need the memory, one whose
 * stashes do. A backward takes as long as a forward, or twice as long; wires take nothing. Both
 * have the best of all cuts, of all numbers of boards up to four, and of who has which stage; each
 * stage of pipedream computes its forwards again where that gains, and besides, in the rows
 * "flash", it may offload its stashes at no cost. Nothing but the slowest board counts, which in a
 * long run is the step (bench_pipefb.py has it replayed and measured). The limit falls by a
 * twentieth from one try to the next, from what an even plan of pipedream needs on. Printed is the
 * largest gain, the limit where it is, and the limits with 1.05 and more, as shares of that need;
 * and from which on pipedream does not fit at all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/split.h"
#include "stage/layout.h"

enum { BOARDS = 4, LAYERS = 24, FALLS = 80, PLAIN = 0, AGAIN, FLASH, WAYS };

typedef struct {
    const char *name;
    uint32_t width, micro;
} net;
static const net nets[] = {{"weights", 96, 4}, {"stashes", 16, 256}};

/* Bytes by stages, stage and layers [first, end): of pipedream in each way, and of the halves. */
static double whole[BOARDS + 1][BOARDS][LAYERS + 1][LAYERS + 1][WAYS];
static double half[BOARDS / 2 + 1][BOARDS / 2][LAYERS + 1][LAYERS + 1][2];

static void must(rp_err err) {
    if (err != RP_OK) {
        (void)fprintf(stderr, "%s\n", rp_err_message());
        exit(rp_err_exit_code(err));
    }
}

static void parse(rp_arena *arena, const net *of, const char *schedule, uint32_t stages,
                  rp_job *out) {
    static char model[LAYERS * 48 + 64];
    char text[800];
    char cut[100] = "";
    rp_node *model_root;
    rp_node *root;
    size_t used = (size_t)snprintf(model, sizeof model, "input: [%u]\nlayers:\n", of->width);
    for (uint32_t i = 0; i < LAYERS; i++) {
        used += (size_t)snprintf(model + used, sizeof model - used,
                                 "  - {name: fc%u, kind: dense, out: %u}\n", i, of->width);
    }
    must(rp_config_read_text(arena, model, used, "model", &model_root));
    for (uint32_t k = 1; k < stages; k++) {
        const size_t at = strlen(cut);
        (void)snprintf(cut + at, sizeof cut - at, "%sfc%u", k > 1 ? ", " : "", k);
    }
    used = (size_t)snprintf(text, sizeof text,
                            "stage: 0\nstages: %u\ncut: [%s]\nsample: [%u]\nclasses: %u\nseed: 1\n"
                            "batch: %u\nmicrobatch: %u\nepoch_samples: 65536\nsteps: 200\n"
                            "loss: cross-entropy\nschedule: %s\n"
                            "optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}\n",
                            stages, cut, of->width, of->width, of->micro, of->micro, schedule);
    must(rp_config_read_text(arena, text, used, "job", &root));
    must(rp_job_parse(arena, root, model_root, out));
}

static double bytes_of(rp_job *job, uint32_t stage, uint32_t first, uint32_t end) {
    uint32_t begins[BOARDS + 1] = {0};
    rp_layout *layout;
    rp_arena arena;
    for (uint32_t k = 0; k <= job->cut.stage_count; k++) {
        begins[k] = k < stage ? 0 : k == stage ? first : k == stage + 1 ? end : LAYERS;
    }
    rp_job own = *job;
    own.stage = stage;
    own.cut.first = begins;
    rp_arena_init(&arena, "layout", 0);
    must(rp_layout_make(&arena, &own, RP_GEMM_PANEL, 128, &layout));
    const double bytes = (double)layout->total_bytes;
    rp_arena_finish(&arena);
    return bytes;
}

/* Stage `stage` of so many may have these layers: each of the others has one at least. */
static bool may_be(uint32_t stages, uint32_t stage, uint32_t first, uint32_t end) {
    return first < end && (stage == 0 ? first == 0 : first >= stage) &&
           (stage + 1 == stages ? end == LAYERS : end + (stages - 1 - stage) <= LAYERS);
}

static void count_whole(const net *of) {
    for (uint32_t stages = 1; stages <= BOARDS; stages++) {
        rp_arena arena;
        rp_job job;
        rp_arena_init(&arena, "bench", 0);
        parse(&arena, of, "pipedream", stages, &job);
        for (uint32_t at = 0; at < stages * LAYERS * (LAYERS + 1); at++) {
            const uint32_t stage = at / (LAYERS * (LAYERS + 1));
            const uint32_t first = at / (LAYERS + 1) % LAYERS;
            const uint32_t end = at % (LAYERS + 1);
            for (int way = 0; may_be(stages, stage, first, end) && way < WAYS; way++) {
                job.recompute = way == AGAIN;
                job.offload = way == FLASH ? RP_OFFLOAD_FLASH : RP_OFFLOAD_NONE;
                whole[stages][stage][first][end][way] = bytes_of(&job, stage, first, end);
            }
        }
        rp_arena_finish(&arena);
    }
}

/* With the fewest steps ahead of even stages. */
static void count_halves(const net *of, double ratio) {
    for (uint32_t stages = 1; stages <= BOARDS / 2; stages++) {
        const double forward[] = {1, 1};
        const double backward[] = {ratio, ratio};
        const rp_split_times times = {.stages = stages, .forward = forward, .backward = backward};
        uint16_t ahead[RP_SPLIT_STAGES_MAX];
        char schedule[64];
        rp_arena arena;
        rp_job job;
        rp_sched_split_ahead(&times, 64, ahead);
        (void)snprintf(schedule, sizeof schedule,
                       stages == 1 ? "{kind: pipefb, ahead: %u}"
                                   : "{kind: pipefb, ahead: [%u, %u]}",
                       ahead[0], ahead[1]);
        rp_arena_init(&arena, "bench", 0);
        parse(&arena, of, schedule, stages, &job);
        for (uint32_t at = 0; at < stages * LAYERS * (LAYERS + 1); at++) {
            const uint32_t stage = at / (LAYERS * (LAYERS + 1));
            const uint32_t first = at / (LAYERS + 1) % LAYERS;
            const uint32_t end = at % (LAYERS + 1);
            for (int back = 0; may_be(stages, stage, first, end) && back < 2; back++) {
                job.role = back ? RP_ROLE_BACKWARD : RP_ROLE_FORWARD;
                half[stages][stage][first][end][back] = bytes_of(&job, stage, first, end);
            }
        }
        rp_arena_finish(&arena);
    }
}

/* ---- the best cut ---------------------------------------------------------------------------- */

typedef struct {
    double limit, ratio; /* of a little board; of backward to forward */
    bool flash;
} ask;

/* Of the whole net's forward. */
static double whole_s(const ask *a, uint32_t stages, uint32_t stage, uint32_t first, uint32_t end,
                      bool little) {
    const double part = (double)(end - first) / LAYERS;
    const double *bytes = whole[stages][stage][first][end];
    if (!little || bytes[PLAIN] <= a->limit || (a->flash && bytes[FLASH] <= a->limit)) {
        return part * (1 + a->ratio);
    }
    return bytes[AGAIN] <= a->limit ? part * (2 + a->ratio) : (double)INFINITY;
}

/* `left`: of boards without and with a limit. */
static double best_whole(const ask *a, uint32_t stages, uint32_t stage, uint32_t first,
                         const uint32_t left[2]) {
    double best = (double)INFINITY;
    for (uint32_t end = first + 1; end <= LAYERS; end++) {
        for (uint32_t little = 0; little < 2 && may_be(stages, stage, first, end); little++) {
            const double own =
                left[little] ? whole_s(a, stages, stage, first, end, little) : (double)INFINITY;
            if (own < best) {
                const uint32_t rest[2] = {left[0] - !little, left[1] - little};
                const double others =
                    stage + 1 < stages ? best_whole(a, stages, stage + 1, end, rest) : 0;
                best = fmin(best, fmax(own, others));
            }
        }
    }
    return best;
}

static double best_halves(const ask *a, uint32_t stages, uint32_t stage, uint32_t first,
                          const uint32_t left[2]) {
    double best = (double)INFINITY;
    for (uint32_t end = first + 1; end <= LAYERS; end++) {
        const double part = (double)(end - first) / LAYERS;
        for (uint32_t who = 0; who < 4 && may_be(stages, stage, first, end); who++) {
            const bool little[2] = {who % 2, who / 2}; /* the forward's, the backward's */
            const double *bytes = half[stages][stage][first][end];
            const uint32_t littles = (uint32_t)little[0] + (uint32_t)little[1];
            const bool fits = left[1] >= littles && left[0] >= 2 - littles &&
                              (!little[0] || bytes[0] <= a->limit) &&
                              (!little[1] || bytes[1] <= a->limit);
            const double own = part * fmax(1, a->ratio);
            if (fits && own < best) {
                const uint32_t rest[2] = {left[0] - (2 - littles), left[1] - littles};
                const double others =
                    stage + 1 < stages ? best_halves(a, stages, stage + 1, end, rest) : 0;
                best = fmin(best, fmax(own, others));
            }
        }
    }
    return best;
}

static void take(const ask *a, uint32_t littles, double out[2]) {
    const uint32_t left[2] = {BOARDS - littles, littles};
    out[0] = out[1] = (double)INFINITY;
    for (uint32_t stages = 1; stages <= BOARDS; stages++) {
        out[0] = fmin(out[0], best_whole(a, stages, 0, 0, left));
    }
    for (uint32_t stages = 1; stages <= BOARDS / 2; stages++) {
        out[1] = fmin(out[1], best_halves(a, stages, 0, 0, left));
    }
}

static void sweep(const net *of, double ratio, uint32_t littles, bool flash) {
    const double need = whole[BOARDS][0][0][LAYERS / BOARDS][PLAIN];
    double best[4] = {0, 0, 0, 0}; /* gain, limit, pipedream, pipefb */
    double range[2] = {0, 0};
    double never = 0;
    for (uint32_t i = 0; i < FALLS; i++) {
        const double share = pow(0.95, i);
        const ask a = {share * need, ratio, flash};
        double now[2];
        take(&a, littles, now);
        const double gain = now[0] / now[1];
        if (isinf(now[0])) {
            never = never > 0 ? never : share;
        } else if (isfinite(now[1]) && gain > best[0] + 1e-9) {
            memcpy(best, (double[]){gain, share, now[0], now[1]}, sizeof best);
        }
        if (isfinite(gain) && gain >= 1.05) {
            range[1] = range[1] > 0 ? range[1] : share;
            range[0] = share;
        }
    }
    (void)printf("| %s | %g | %s | %s | %.2f | %.2f | %.3f | %.3f | ", of->name, ratio,
                 littles < BOARDS ? "two" : "all", flash ? "flash" : "again", best[0], best[1],
                 best[2], best[3]);
    (void)printf(range[1] > 0 ? "%.2f to %.2f | " : "none | ", range[0], range[1]);
    (void)printf(never > 0 ? "%.2f |\n" : "never |\n", never);
    (void)fflush(stdout);
}

int main(void) {
    (void)printf("| memory for | t_B / t_F | with a limit | besides | gain | limit | pipedream "
                 "| pipefb | limits with 1.05 | pipedream does not fit below |\n"
                 "|---|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t n = 0; n < 2; n++) {
        count_whole(&nets[n]);
        for (int ratio = 1; ratio <= 2; ratio++) {
            count_halves(&nets[n], ratio);
            for (uint32_t i = 0; i < 4; i++) {
                sweep(&nets[n], ratio, i / 2 ? BOARDS : BOARDS / 2, i % 2);
            }
        }
    }
    return 0;
}
