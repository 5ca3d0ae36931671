/* Cuts of virtual rings: how long dp-cut takes, and how near it comes to what no cut can beat.
 *
 *     bench_cut
 *
 * Rings of 8, 32 and 128 boards whose speeds lie between 1 and 8 and wires between 1 and 20 (both
 * log-uniform), two layers a board, costs of layers and bytes between them uniform; the median of
 * 20 draws. The slowest stage or wire by the bound: all the work at the speed of all boards, or the
 * cheapest cut on the fastest wire. Seconds are of the processor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "planning/dp_cut.h"

enum { DRAWS = 20, BOARDS_MAX = 128, LAYERS_MAX = 2 * BOARDS_MAX, WAYS = 5 };
static const uint32_t sizes[] = {8, 32, 128};
static const char *const ways[WAYS] = {"even", "by speed", "dp-cut", "dp-cut, leaving out",
                                       "dp-cut, sharing, leaving out"};

typedef struct {
    uint32_t boards, layers;
    double work[LAYERS_MAX + 1]; /* of the layers in front */
    double bytes[LAYERS_MAX];
    double speed[BOARDS_MAX + 1]; /* of the boards in front */
    double rate[BOARDS_MAX][BOARDS_MAX];
} ring;

static void must(rp_err err) {
    if (err != RP_OK) {
        exit(rp_err_exit_code(err));
    }
}

static ring *draw(rp_rng *rng, uint32_t boards) {
    static ring r;
    r.boards = boards;
    r.layers = 2 * boards;
    for (uint32_t i = 0; i < r.layers; i++) {
        r.work[i + 1] = r.work[i] + 0.1 + rp_rng_uniform(rng);
        r.bytes[i] = rp_rng_uniform(rng);
    }
    for (uint32_t k = 0; k < boards; k++) {
        r.speed[k + 1] = r.speed[k] + pow(8, rp_rng_uniform(rng));
        for (uint32_t to = 0; to < boards; to++) {
            r.rate[k][to] = pow(20, rp_rng_uniform(rng));
        }
    }
    return &r;
}

static double stage_s(const void *context, rp_dp_group group, uint32_t first, uint32_t end,
                      uint32_t behind) {
    const ring *r = context;
    (void)behind;
    return (r->work[end] - r->work[first]) /
           (r->speed[group.first + group.count] - r->speed[group.first]);
}

/* Between groups the parts of a parcel take wires of their own; as fast as the slowest. */
static double wire_s(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer) {
    const ring *r = context;
    double least = (double)INFINITY;
    for (uint32_t a = from.first; a < from.first + from.count; a++) {
        for (uint32_t b = to.first; b < to.first + to.count; b++) {
            least = fmin(least, r->rate[a][b]);
        }
    }
    return r->bytes[layer] / least / (from.count > to.count ? from.count : to.count);
}

static double no_wire_s(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer) {
    (void)context, (void)from, (void)to, (void)layer;
    return 0;
}

/* With its wires, of a cut that was chosen without them. */
static double slowest_s(const ring *r, const uint32_t *first) {
    double most = 0;
    for (uint32_t k = 0; k < r->boards; k++) {
        const rp_dp_group own = {k, 1};
        const rp_dp_group before = {k - 1, 1};
        most = fmax(most, stage_s(r, own, first[k], first[k + 1], 0));
        most = k > 0 ? fmax(most, wire_s(r, before, own, first[k])) : most;
    }
    return most;
}

static double bound_s(const ring *r) {
    double bytes = (double)INFINITY;
    double rate = 0;
    for (uint32_t i = 1; i < r->layers; i++) {
        bytes = fmin(bytes, r->bytes[i]);
    }
    for (uint32_t k = 0; k < r->boards * r->boards; k++) {
        rate = fmax(rate, r->rate[k / r->boards][k % r->boards]);
    }
    return fmax(r->work[r->layers] / r->speed[r->boards], bytes / rate);
}

static double plan_s(const ring *r, uint32_t way) {
    static rp_dp_answer answer;
    const rp_dp_ask ask = {.layers = r->layers,
                           .boards = r->boards,
                           .share_most = way == 4 ? 2 : 1,
                           .skip_most = way >= 3 ? 1 : 0,
                           .steady = 1,
                           .stage_s = stage_s,
                           .wire_s = way == 1 ? no_wire_s : wire_s,
                           .context = r};
    uint32_t first[BOARDS_MAX + 1];
    for (uint32_t k = 0; k <= r->boards; k++) {
        first[k] = 2 * k;
    }
    if (way == 0) {
        return slowest_s(r, first);
    }
    must(rp_dp_cut(&ask, &answer));
    return way == 1 ? slowest_s(r, answer.first) : answer.slowest;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value) {
    qsort(value, DRAWS, sizeof *value, by_value);
    return (value[DRAWS / 2 - 1] + value[DRAWS / 2]) / 2;
}

static void measure(uint32_t boards, uint32_t way) {
    double seconds[DRAWS];
    double by_bound[DRAWS];
    rp_rng rng = rp_rng_named(1, "bench/cut");
    for (uint32_t i = 0; i < DRAWS; i++) {
        const ring *r = draw(&rng, boards);
        const clock_t start = clock();
        by_bound[i] = plan_s(r, way) / bound_s(r);
        seconds[i] = (double)(clock() - start) / CLOCKS_PER_SEC;
    }
    printf("| %u | %s | %.2f | %.4f |\n", boards, ways[way], median(by_bound), median(seconds));
}

int main(void) {
    printf("| boards | cut | by the bound | s |\n|---:|---|---:|---:|\n");
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t way = 0; way < WAYS; way++) {
            if (way < 3 || sizes[i] <= 32) { /* every number of stages: tables of GiB beyond */
                measure(sizes[i], way);
            }
        }
    }
    return 0;
}
