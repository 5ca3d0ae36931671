#include "planning/tables.h"

#include <string.h>

enum { TEXT_BYTES = 160 };

static rp_err end_table(FILE *file) {
    return fflush(file) == 0 && !ferror(file) ? RP_OK
                                              : rp_fail(RP_ERR_IO, "a table could not be written");
}

/* "1.23 ms" */
static const char *time_text(double seconds, char *out, size_t bytes) {
    (void)snprintf(out, bytes,
                   seconds < 1e-3 ? "%.1f us"
                   : seconds < 1  ? "%.2f ms"
                                  : "%.2f s",
                   seconds * (seconds < 1e-3 ? 1e6
                              : seconds < 1  ? 1e3
                                             : 1));
    return out;
}

static const char *bytes_text(uint64_t count, char *out, size_t bytes) {
    (void)snprintf(out, bytes, "%.1f MiB", (double)count / (1 << 20));
    return out;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* "conv1 .. relu2 (5)" */
static const char *layers_text(const rp_plan_stage *stage, char *out, size_t bytes) {
    const uint32_t count = stage->layer_count;
    if (count == 0) {
        (void)snprintf(out, bytes, "-");
    } else if (count == 1) {
        (void)snprintf(out, bytes, "%s", stage->layer[0]);
    } else {
        (void)snprintf(out, bytes, "%.60s .. %.60s (%u)", stage->layer[0], stage->layer[count - 1],
                       count);
    }
    return out;
}

/* "left, right": all nodes that hold the stage. Returns how long that is; `file` may be NULL. */
static int put_holders(FILE *file, const rp_plan *plan, uint32_t stage) {
    int length = 0;
    for (uint32_t k = 0; k < plan->node_count; k++) {
        if (rp_plan_find_hold(plan, k, stage)) {
            const char *between = length > 0 ? ", " : "";
            const char *name = plan->node[k].name;
            length += (int)(strlen(between) + strlen(name));
            if (file) {
                (void)fprintf(file, "%s%s", between, name);
            }
        }
    }
    return length;
}

static double seconds_of(const rp_plan_stage *stage) {
    return stage->measured.forward_s + stage->measured.backward_s;
}

static void put_stage(FILE *file, const rp_plan *plan, uint32_t k, int width, double slowest_s) {
    const rp_plan_stage *stage = &plan->stage[k];
    const rp_plan_measured *m = &stage->measured;
    char text[4][TEXT_BYTES];
    (void)fprintf(file, "%5u  ", k);
    const int used = put_holders(file, plan, k);
    (void)fprintf(file, "%*s  %-32s", width - used, "", layers_text(stage, text[0], TEXT_BYTES));
    if (slowest_s > 0) {
        (void)fprintf(file, "  %10s  %10s  %4.0f %%", time_text(m->forward_s, text[0], TEXT_BYTES),
                      time_text(m->backward_s, text[1], TEXT_BYTES),
                      100 * seconds_of(stage) / slowest_s);
    }
    (void)fprintf(file, "  %11s  %11s  %6llu\n", bytes_text(m->weight_bytes, text[2], TEXT_BYTES),
                  bytes_text(m->device_bytes, text[3], TEXT_BYTES),
                  (unsigned long long)m->weight_copies);
}

/* Boards that are enough for no stage to be longer than the slowest one is: neighbours together. */
static uint32_t count_enough(const rp_plan *plan, double slowest_s) {
    uint32_t boards = 1;
    double sum_s = 0;
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const double own_s = seconds_of(&plan->stage[k]);
        boards += sum_s + own_s > slowest_s;
        sum_s = sum_s + own_s > slowest_s ? own_s : sum_s + own_s;
    }
    return boards;
}

static void say_enough(FILE *file, const rp_plan *plan, double slowest_s) {
    const uint32_t enough = count_enough(plan, slowest_s);
    if (enough < plan->stage_count && plan->stage_count == plan->node_count) {
        (void)fprintf(file,
                      "Fewer boards would do: with `ring.boards: %u` no stage is longer than the "
                      "longest of these.\n",
                      enough);
    }
}

/* "196.0 KiB int8", of a microbatch; "-" where nothing goes. */
static const char *parcel_text(const rp_plan *plan, rp_carries carries, uint32_t to_stage,
                               char *out, size_t bytes) {
    (void)snprintf(out, bytes, "-");
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        if (edge->carries == carries && edge->stage == to_stage) {
            (void)snprintf(out, bytes, "%.1f KiB %s", (double)edge->parcel_bytes / (1 << 10),
                           rp_codec_name(edge->codec));
        }
    }
    return out;
}

/* What a microbatch has between the stages, behind the codecs. */
static void put_boundaries(FILE *file, const rp_plan *plan) {
    char text[2][TEXT_BYTES];
    (void)fprintf(file, "\nstages       activations         gradients\n");
    (void)fprintf(file, "  inputs  %15s\n",
                  parcel_text(plan, RP_CARRIES_INPUT, 0, text[0], TEXT_BYTES));
    for (uint32_t k = 0; k + 1 < plan->stage_count; k++) {
        (void)fprintf(file, "%3u - %-3u %15s  %16s\n", k, k + 1,
                      parcel_text(plan, RP_CARRIES_ACTIVATION, k + 1, text[0], TEXT_BYTES),
                      parcel_text(plan, RP_CARRIES_GRADIENT, k, text[1], TEXT_BYTES));
    }
}

rp_err rp_plan_table(FILE *file, const rp_plan *plan) {
    double slowest_s = 0;
    double sum_s = 0;
    uint32_t slowest = 0;
    int width = 10; /* of the boards' names */
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const int names = put_holders(NULL, plan, k);
        width = names > width ? names : width;
        const double own = plan->stage[k].measured.has_seconds ? seconds_of(&plan->stage[k]) : 0;
        slowest = own > slowest_s ? k : slowest;
        slowest_s = own > slowest_s ? own : slowest_s;
        sum_s += own;
    }
    (void)fprintf(file, "%s by %s, batch %u in microbatches of %u: %u stages on %u boards\n\n",
                  plan->model, plan->method.kind->name, plan->batch, plan->micro, plan->stage_count,
                  plan->node_count);
    (void)fprintf(file, "stage  %-*s  %-32s", width, "board", "layers");
    if (slowest_s > 0) {
        (void)fprintf(file, "  %10s  %10s  %6s", "forward", "backward", "share");
    }
    (void)fprintf(file, "  %11s  %11s  %6s\n", "weights", "memory", "copies");
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        put_stage(file, plan, k, width, slowest_s);
    }
    if (plan->stage_count > 1) {
        put_boundaries(file, plan);
    }
    if (slowest_s > 0 && plan->stage_count > 1) {
        (void)fprintf(file,
                      "\nTimes are of one microbatch. The others wait for stage %u: the boards "
                      "compute %.0f %% of\nthe time at most.\n",
                      slowest, 100 * sum_s / (slowest_s * plan->stage_count));
        say_enough(file, plan, slowest_s);
    }
    if (plan->predicted_step_s > 0) {
        (void)fprintf(file, "A step takes %.4g s by prediction.\n", plan->predicted_step_s);
    }
    return end_table(file);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void put_layer(FILE *file, const char *name, const char *kind, const double *seconds,
                      double all_s) {
    char text[2][TEXT_BYTES];
    (void)fprintf(file, "%-24s  %-14s  %10s  %10s  %5.1f %%\n", name, kind,
                  time_text(seconds[0], text[0], TEXT_BYTES),
                  time_text(seconds[1], text[1], TEXT_BYTES),
                  all_s > 0 ? 100 * (seconds[0] + seconds[1]) / all_s : 0);
}

rp_err rp_profile_table(FILE *file, const rp_runfile *run, const char *device,
                        const double *layer_seconds) {
    const rp_model *model = run->model;
    double sum[2] = {0, 0};
    for (size_t i = 0; i < 2 * (size_t)model->layer_count; i++) {
        sum[i % 2] += layer_seconds[i];
    }
    (void)fprintf(file, "%s, a microbatch of %u samples%s%s\n\n", run->model_name, run->micro,
                  device ? ", on " : "", device ? device : "");
    (void)fprintf(file, "%-24s  %-14s  %10s  %10s  %7s\n", "layer", "kind", "forward", "backward",
                  "share");
    for (uint32_t i = 0; i < model->layer_count; i++) {
        put_layer(file, model->layer[i].name, model->layer[i].kind->name,
                  layer_seconds + 2 * (size_t)i, sum[0] + sum[1]);
    }
    put_layer(file, "all", "", sum, sum[0] + sum[1]);
    return end_table(file);
}
