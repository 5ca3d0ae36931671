#include "planning/tables.h"

#include <string.h>

enum { TEXT_BYTES = 160 };

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

/* "left, right": all nodes that hold the stage; "left forward, right backward". Returns how long
 * that is; `file` may be NULL. */
static int print_holders(FILE *file, const rp_plan *plan, uint32_t stage) {
    int length = 0;
    for (uint32_t k = 0; k < plan->node_count; k++) {
        const rp_plan_hold *hold = rp_plan_find_hold(plan, k, stage);
        if (hold) {
            const char *between = length > 0 ? ", " : "";
            const char *name = plan->node[k].name;
            const bool is_half = hold->role != RP_ROLE_BOTH;
            const char *role = is_half ? rp_role_name(hold->role) : "";
            length += (int)(strlen(between) + strlen(name) + is_half + strlen(role));
            if (file) {
                (void)fprintf(file, "%s%s%s%s", between, name, is_half ? " " : "", role);
            }
        }
    }
    return length;
}

/* Seconds of a microbatch on the slowest board of a stage. The halves of a split stage work at the
 * same time. */
static double seconds_of(const rp_plan *plan, const rp_plan_stage *stage) {
    const rp_plan_measured *m = &stage->measured;
    const uint32_t k = (uint32_t)(stage - plan->stage);
    const double longer_s = m->forward_s > m->backward_s ? m->forward_s : m->backward_s;
    return rp_method_is_split(&plan->method, k) ? longer_s : m->forward_s + m->backward_s;
}

static void print_stage(FILE *file, const rp_plan *plan, uint32_t k, int width, double slowest_s) {
    const rp_plan_stage *stage = &plan->stage[k];
    const rp_plan_measured *m = &stage->measured;
    char text[4][TEXT_BYTES];
    (void)fprintf(file, "%5u  ", k);
    const int used = print_holders(file, plan, k);
    (void)fprintf(file, "%*s  %-32s", width - used, "", layers_text(stage, text[0], TEXT_BYTES));
    if (slowest_s > 0) {
        (void)fprintf(file, "  %10s  %10s  %4.0f %%", time_text(m->forward_s, text[0], TEXT_BYTES),
                      time_text(m->backward_s, text[1], TEXT_BYTES),
                      100 * seconds_of(plan, stage) / slowest_s);
    }
    (void)fprintf(file, "  %11s  %11s  %6llu", bytes_text(m->weight_bytes, text[2], TEXT_BYTES),
                  bytes_text(m->device_bytes, text[3], TEXT_BYTES),
                  (unsigned long long)m->weight_copies);
    if (rp_plan_has_sizes(plan)) {
        (void)fprintf(file, "  %6u / %u", stage->micro_forward, stage->micro_backward);
    }
    (void)fprintf(file, "\n");
}

/* The number of boards that suffice so that no stage is longer than the slowest one now, if
 * neighbouring stages are joined. */
static uint32_t count_enough(const rp_plan *plan, double slowest_s) {
    uint32_t boards = 1;
    double sum_s = 0;
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const double own_s = seconds_of(plan, &plan->stage[k]);
        boards += sum_s + own_s > slowest_s;
        sum_s = sum_s + own_s > slowest_s ? own_s : sum_s + own_s;
    }
    return boards;
}

static void print_enough(FILE *file, const rp_plan *plan, double slowest_s) {
    const uint32_t enough = count_enough(plan, slowest_s);
    if (enough < plan->stage_count && plan->stage_count == plan->node_count) {
        (void)fprintf(file,
                      "Fewer boards would do: with `ring.boards: %u` no stage is longer than the "
                      "longest of these.\n",
                      enough);
    }
}

/* "196.0 KiB int8", for a microbatch; "-": nothing is sent. */
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

/* Prints the encoded bytes of a microbatch at each boundary. */
static void print_boundaries(FILE *file, const rp_plan *plan) {
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

/* The board with the backward of a stage. */
static const char *backward_board(const rp_plan *plan, uint32_t stage) {
    uint32_t h = 0;
    while (plan->hold[h].stage != stage || plan->hold[h].role == RP_ROLE_FORWARD) {
        h++;
    }
    return rp_plan_node_name(plan, plan->hold[h].node);
}

/* Prints what both boards of each split stage need. */
static void print_halves(FILE *file, const rp_plan *plan) {
    char text[2][TEXT_BYTES];
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        const rp_plan_measured *m = &plan->stage[hold->stage].measured;
        if (hold->role == RP_ROLE_FORWARD && m->forward_bytes > 0) {
            (void)fprintf(file,
                          "Stage %u: its forwards need %s on board %s, with one copy of the "
                          "weights, its backwards and\nupdates %s on board %s, with %llu %s.\n",
                          hold->stage, bytes_text(m->forward_bytes, text[0], TEXT_BYTES),
                          rp_plan_node_name(plan, hold->node),
                          bytes_text(m->device_bytes, text[1], TEXT_BYTES),
                          backward_board(plan, hold->stage), (unsigned long long)m->weight_copies,
                          m->weight_copies == 1 ? "copy" : "copies");
        }
    }
}

/* Prints how a stage offloads; for flash also the bytes written, because they wear it. */
static void print_offload(FILE *file, uint32_t k, const rp_plan_stage *stage) {
    const char *why = stage->memory_why && !stage->recompute ? stage->memory_why : NULL;
    const bool flash = strcmp(stage->offload, "flash") == 0;
    char text[TEXT_BYTES];
    const char *const to = flash ? "flash" : "the host's memory";
    if (stage->leave_tensors > 0) {
        (void)fprintf(file,
                      "Stage %u offloads %u %s of each stash to %s: its device holds three of "
                      "those, and %s of every\nstash in flight",
                      k, stage->leave_tensors, stage->leave_tensors == 1 ? "tensor" : "tensors", to,
                      bytes_text(stage->stay_bytes, text, TEXT_BYTES));
    } else {
        (void)fprintf(file, "Stage %u offloads its stashes to %s: its device holds three", k, to);
    }
    (void)fprintf(file, "%s%s", why ? ", " : "", why ? why : "");
    if (flash && stage->offload_bytes > 0) {
        (void)fprintf(file, ". A step writes at most %s",
                      bytes_text(stage->offload_bytes, text, TEXT_BYTES));
    }
    (void)fprintf(file, ".\n");
}

/* Prints which stages recompute or offload, and why. */
static void print_memory(FILE *file, const rp_plan *plan) {
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        if (stage->recompute) {
            (void)fprintf(
                file, "Stage %u computes its forwards again for its backwards, in %u %s%s%s.\n", k,
                stage->group_count + 1, stage->group_count ? "groups" : "group",
                stage->memory_why ? ": " : "", stage->memory_why ? stage->memory_why : "");
        }
        if (strcmp(stage->offload, "none") != 0) {
            print_offload(file, k, stage);
        }
    }
}

void rp_plan_table(FILE *file, const rp_plan *plan) {
    double slowest_s = 0;
    double sum_s = 0;
    uint32_t slowest = 0;
    int width = 10; /* of the boards' names */
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        const int names = print_holders(NULL, plan, k);
        width = names > width ? names : width;
        const rp_plan_stage *stage = &plan->stage[k];
        const rp_plan_measured *m = &stage->measured;
        const double own = m->has_seconds ? seconds_of(plan, stage) : 0;
        slowest = own > slowest_s ? k : slowest;
        slowest_s = own > slowest_s ? own : slowest_s;
        sum_s += m->has_seconds ? m->forward_s + m->backward_s : 0;
    }
    (void)fprintf(file, "%s by %s, batch %u in microbatches of %u: %u stages on %u boards\n\n",
                  plan->model, plan->method.kind->name, plan->batch, plan->micro, plan->stage_count,
                  plan->node_count);
    (void)fprintf(file, "stage  %-*s  %-32s", width, "board", "layers");
    if (slowest_s > 0) {
        (void)fprintf(file, "  %10s  %10s  %6s", "forward", "backward", "share");
    }
    (void)fprintf(file, "  %11s  %11s  %6s%s\n", "weights", "memory", "copies",
                  rp_plan_has_sizes(plan) ? "  samples forward / backward" : "");
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        print_stage(file, plan, k, width, slowest_s);
    }
    print_memory(file, plan);
    print_halves(file, plan);
    if (plan->stage_count > 1) {
        print_boundaries(file, plan);
    }
    if (slowest_s > 0 && plan->stage_count > 1) {
        (void)fprintf(file,
                      "\nTimes are of one microbatch. All stages wait for stage %u: the boards "
                      "compute at most %.0f %%\nof the time.\n",
                      slowest, 100 * sum_s / (slowest_s * rp_plan_parts(plan)));
        print_enough(file, plan, slowest_s);
    }
    if (plan->predicted_step_s > 0) {
        (void)fprintf(file, "A step takes %.4g s by prediction; %s.\n", plan->predicted_step_s,
                      plan->predicted_limits ? plan->predicted_limits : "all boards compute");
    }
}

/* ---- the profile ----------------------------------------------------------------------------- */

enum { COLUMNS = RP_MEASURED_PASSES + 1 };

/* `seconds`: of each pass, then of the update. */
static void print_layer(FILE *file, const char *name, const char *kind, const double *seconds,
                        double all_s) {
    char text[TEXT_BYTES];
    const double own = seconds[RP_MEASURED_FORWARD] + seconds[RP_MEASURED_BACKWARD];
    (void)fprintf(file, "%-24s  %-14s", name, kind);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        (void)fprintf(file, "  %10s", time_text(seconds[i], text, TEXT_BYTES));
    }
    (void)fprintf(file, "  %5.1f %%\n", all_s > 0 ? 100 * own / all_s : 0);
}

/* Prints a measured board, and the boards that use its times. */
static void print_board(FILE *file, const rp_profile *profile, uint32_t board) {
    const rp_profile_board *own = &profile->board[board];
    bool any = false;
    (void)fprintf(file, "\nboard %s%s%s", own->name, own->device ? ": " : "",
                  own->device ? own->device : "");
    for (uint32_t k = 0; k < profile->board_count; k++) {
        if (k != board && profile->board[k].layer == own->layer) {
            (void)fprintf(file, "%s %s", any ? "," : "; also used for", profile->board[k].name);
            any = true;
        }
    }
    (void)fprintf(file, "\n\n");
}

static double update_of(const rp_profile_board *board, uint32_t layer) {
    return board->layer[layer].update_s;
}

static void print_layers(FILE *file, const rp_runfile *run, const rp_profile *profile,
                         const rp_profile_board *board) {
    const rp_model *model = run->model;
    double sum[COLUMNS] = {0};
    double own[COLUMNS];
    for (uint32_t turn = 0; turn < 2; turn++) { /* the sums first */
        for (uint32_t i = 0; i < model->layer_count; i++) {
            for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
                own[p] = rp_curve_at(&board->layer[i].pass[p], profile->micro);
                sum[p] += turn == 0 ? own[p] : 0;
            }
            own[RP_MEASURED_PASSES] = update_of(board, i);
            sum[RP_MEASURED_PASSES] += turn == 0 ? update_of(board, i) : 0;
            if (turn > 0) {
                print_layer(file, model->layer[i].name, model->layer[i].kind->name, own,
                            sum[RP_MEASURED_FORWARD] + sum[RP_MEASURED_BACKWARD]);
            }
        }
    }
    print_layer(file, "all", "", sum, sum[RP_MEASURED_FORWARD] + sum[RP_MEASURED_BACKWARD]);
}

static double spread_most(const rp_profile_board *board, uint32_t layers, uint32_t point) {
    double most = 0;
    for (uint32_t i = 0; i < layers; i++) {
        for (uint32_t p = 0; p <= RP_MEASURED_BACKWARD; p++) {
            const rp_curve *curve = &board->layer[i].pass[p];
            const double own = point < curve->count ? curve->point[point].spread : 0;
            most = own > most ? own : most;
        }
    }
    return most;
}

/* The whole model at the sizes that its first layer was measured at. */
static void print_sizes(FILE *file, const rp_profile *profile, const rp_profile_board *board) {
    const rp_curve *first = &board->layer[0].pass[RP_MEASURED_FORWARD];
    char text[2][TEXT_BYTES];
    (void)fprintf(file, "\n%10s  %10s  %10s  %12s\n", "samples", "forward", "backward",
                  "worst spread");
    for (uint32_t s = 0; s < first->count; s++) {
        double sum[2] = {0, 0};
        const double samples = first->point[s].samples;
        for (uint32_t i = 0; i < profile->layer_count; i++) {
            for (uint32_t p = 0; p < 2; p++) {
                sum[p] += rp_curve_at(&board->layer[i].pass[p], samples);
            }
        }
        (void)fprintf(file, "%10.0f  %10s  %10s  %10.0f %%\n", samples,
                      time_text(sum[0], text[0], TEXT_BYTES),
                      time_text(sum[1], text[1], TEXT_BYTES),
                      100 * spread_most(board, profile->layer_count, s));
    }
    if (board->copy_s[0][1] > 0) {
        const double bytes = (double)RP_MEASURED_COPY_BYTES[1];
        (void)fprintf(file, "\nCopies: %.0f MB/s to the device, %.0f MB/s back.\n",
                      bytes / board->copy_s[0][1] * 1e-6, bytes / board->copy_s[1][1] * 1e-6);
    }
}

static void print_per_million(FILE *file, const char *what, const double seconds[2]) {
    char text[TEXT_BYTES];
    const double of = RP_BESIDES_FLOATS[1] * 1e-6;
    (void)fprintf(file, "; %s %s", what, time_text(seconds[1] / of, text, TEXT_BYTES));
}

/* Prints the additional costs of ops. */
static void print_additional(FILE *file, const rp_profile_board *board) {
    const double *besides = board->besides_s;
    char text[2][TEXT_BYTES];
    (void)fprintf(file, "Handling of an op: %s",
                  time_text(besides[RP_BESIDES_HANDLING], text[0], TEXT_BYTES));
    if (besides[RP_BESIDES_PREDICTION + 1] > 0) {
        print_per_million(file,
                          "a prediction of a million weights:", &besides[RP_BESIDES_PREDICTION]);
    }
    if (besides[RP_BESIDES_AVERAGE + 1] > 0) {
        print_per_million(file, "an average of a million weights:", &besides[RP_BESIDES_AVERAGE]);
    }
    (void)fprintf(file, ".\n");
    bool any = false;
    for (uint32_t codec = 0; codec < RP_CODECS; codec++) {
        const double *encode_s = &besides[rp_besides_codec(codec, 0, 0)];
        const double *decode_s = &besides[rp_besides_codec(codec, 1, 0)];
        if (encode_s[1] > 0) {
            const double of = RP_BESIDES_FLOATS[1] * 1e-6;
            (void)fprintf(
                file, "%s %s %s / %s", any ? "," : "A million values, to encode / to decode:",
                rp_codec_name((rp_codec)codec), time_text(encode_s[1] / of, text[0], TEXT_BYTES),
                time_text(decode_s[1] / of, text[1], TEXT_BYTES));
            any = true;
        }
    }
    (void)fprintf(file, "%s", any ? ".\n" : "");
}

/* "12.50 MB/s, 3.1 at 16 KiB, 9.8 at 256 KiB, both ways at once" */
static void print_rate(FILE *file, const rp_profile_wire *wire) {
    const rp_curve *busy = &wire->busy;
    if (!(wire->bytes_per_s > 0)) {
        (void)fprintf(file, "not measured\n");
        return;
    }
    (void)fprintf(file, "%.2f MB/s", wire->bytes_per_s * 1e-6);
    for (uint32_t i = 0; i + 1 < busy->count; i++) {
        const rp_curve_point *p = &busy->point[i];
        if (p->seconds > 0) {
            (void)fprintf(file, ", %.2f at %.0f KiB", p->samples / p->seconds * 1e-6,
                          p->samples / 1024);
        }
    }
    (void)fprintf(file, "%s\n",
                  wire->shared      ? ", both ways take turns"
                  : busy->count > 0 ? ", both ways at once"
                                    : "");
}

static void print_wire(FILE *file, const rp_profile *profile, uint32_t from, uint32_t to) {
    const uint32_t host = profile->board_count;
    const rp_profile_wire *wire = &profile->wire[(size_t)from * (host + 1) + to];
    char name[TEXT_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(name, sizeof name, "%.60s to %.60s",
                   from == host ? "host" : profile->board[from].name,
                   to == host ? "host" : profile->board[to].name);
    (void)fprintf(file, "%-24s  %10s  ", name, time_text(wire->latency_s, text, TEXT_BYTES));
    print_rate(file, wire);
}

/* Prints the wires between neighbours, and between the host and each board. */
static void print_wires(FILE *file, const rp_profile *profile, uint32_t boards) {
    const uint32_t host = profile->board_count;
    (void)fprintf(file, "\n%-24s  %10s  %s\n", "wire", "latency", "rate");
    for (uint32_t k = 0; k + 1 < boards; k++) {
        print_wire(file, profile, k, k + 1);
        print_wire(file, profile, k + 1, k);
    }
    for (uint32_t k = 0; k < boards; k++) {
        print_wire(file, profile, host, k);
        print_wire(file, profile, k, host);
    }
}

void rp_profile_show(FILE *file, const rp_runfile *run, const rp_profile *profile) {
    uint32_t boards = 0;
    (void)fprintf(file, "%s, a microbatch of %u samples\n", run->model_name, profile->micro);
    for (uint32_t k = 0; k < profile->board_count; k++) {
        const rp_profile_board *board = &profile->board[k];
        boards += board->known;
        if (!board->known || strcmp(board->like, board->name) != 0) {
            continue;
        }
        print_board(file, profile, k);
        (void)fprintf(file, "%-24s  %-14s  %10s  %10s  %10s  %10s  %10s  %7s\n", "layer", "kind",
                      "forward", "backward", "its input", "its weight", "update", "share");
        print_layers(file, run, profile, board);
        print_sizes(file, profile, board);
        if (board->has_besides) {
            print_additional(file, board);
        }
    }
    if (boards > 1) {
        print_wires(file, profile, boards);
    }
}
