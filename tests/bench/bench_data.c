/* bench_data '{set: glyphs, augment: crop-flip}'...: how long a set takes to open and how many
 * training samples a second one core makes ready, for each `data:` map; by the CPU's clock, so that
 * other programs hardly matter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/data.h"

enum { BATCH = 64, SAMPLES_MIN = 200000, SECONDS_MAX = 10 };

static double cpu_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whole epochs, at least SAMPLES_MIN samples; or SECONDS_MAX of a set that is slow. */
static rp_err make_batches(rp_arena *arena, const rp_data *data, uint64_t *made) {
    const uint32_t count = data->count[RP_SPLIT_TRAIN];
    uint32_t *order;
    float *x;
    float *rows;
    int32_t *labels;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count, &order));
    RP_TRY(RP_ARENA_NEW(arena, BATCH * rp_shape_count(&data->sample), &x));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)BATCH * rp_data_row_width(data), &rows));
    RP_TRY(RP_ARENA_NEW(arena, BATCH, &labels));
    *made = 0;
    const double end_s = cpu_s() + SECONDS_MAX;
    for (uint32_t epoch = 0; *made < SAMPLES_MIN && cpu_s() < end_s; epoch++) {
        rp_data_order(data, RP_SPLIT_TRAIN, epoch, order);
        for (uint32_t first = 0; first < count && cpu_s() < end_s; first += BATCH) {
            const uint32_t n = count - first < BATCH ? count - first : BATCH;
            RP_TRY(rp_data_batch(data, RP_SPLIT_TRAIN, epoch, order + first, n, true, x, labels,
                                 rows));
            *made += n;
        }
    }
fail:
    return err;
}

static rp_err measure_set(const char *keys) {
    rp_arena arena;
    rp_data data = {0};
    rp_node *node;
    uint64_t made;
    rp_err err;
    rp_arena_init(&arena, "bench", 0);
    RP_TRY(rp_config_read_text(&arena, keys, strlen(keys), "data", &node));
    const double start_s = cpu_s();
    RP_TRY(rp_data_open(&arena, &data, node, NULL, true, 1));
    const double open_s = cpu_s();
    RP_TRY(make_batches(&arena, &data, &made));
    printf("%-60s open %5.2f s, %9.0f samples/s\n", keys, open_s - start_s,
           (double)made / (cpu_s() - open_s));
fail:
    if (data.kind) {
        rp_data_close(&data);
    }
    rp_arena_finish(&arena);
    return err;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (measure_set(argv[i]) != RP_OK) {
            return 1;
        }
    }
    return argc > 1 ? 0 : 2;
}
