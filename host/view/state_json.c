#include "view/state_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ,"key":value, unless the value is unknown. */
static void add_real(rp_view_text *out, const char *key, double value) {
    if (isfinite(value)) {
        rp_view_add(out, ",\"%s\":%.9g", key, value);
    }
}

static void add_word(rp_view_text *out, const char *key, const char *value) {
    if (value[0]) {
        rp_view_add(out, ",\"%s\":", key);
        rp_view_add_string(out, value);
    }
}

/* Share of busy time over the whole run; NAN: unknown. */
static double busy_mean_of(const rp_view_board *board) {
    double sum = 0;
    for (uint32_t i = 0; i < RP_VIEW_OPS; i++) {
        sum += board->op_s[i];
    }
    return sum + board->idle_s > 0 ? sum / (sum + board->idle_s) : (double)NAN;
}

static void add_board(const rp_view_board *board, rp_view_text *out) {
    rp_view_add(out, "{\"name\":");
    rp_view_add_string(out, board->name);
    add_word(out, "state", board->state);
    add_word(out, "op", board->op);
    add_word(out, "stages", board->stages);
    add_word(out, "layers", board->layers);
    add_word(out, "role", board->role);
    add_real(out, "layer_count", board->layer_count);
    add_real(out, "busy", board->busy);
    add_real(out, "busy_mean", busy_mean_of(board));
    add_real(out, "memory_bytes", board->memory_bytes);
    add_real(out, "heat_c", board->heat_c);
    add_real(out, "power_w", board->power_w);
    add_real(out, "energy_j", board->energy_j);
    add_real(out, "silent_s", board->silent_s);
    add_real(out, "staleness", board->staleness);
    rp_view_add(out, "}");
}

static void add_wire(const rp_view_wire *wire, rp_view_text *out) {
    rp_view_add(out, "{\"kind\":");
    rp_view_add_string(out, wire->kind);
    add_word(out, "from", wire->from);
    add_word(out, "to", wire->to);
    add_real(out, "bytes", wire->bytes);
    add_real(out, "rate_bytes_s", wire->rate_bytes_s);
    add_real(out, "use", wire->use);
    add_real(out, "queue", wire->queue);
    add_real(out, "resent", wire->resent);
    add_real(out, "delay_s", wire->delay_s[0]);
    rp_view_add(out, "}");
}

static void add_site(const rp_view_site *site, rp_view_text *out) {
    rp_view_add(out, "{\"site\":");
    rp_view_add_string(out, site->name);
    add_word(out, "state", site->state);
    rp_view_add(out, "}");
}

static void add_head(const rp_view_facts *facts, rp_view_text *out) {
    const rp_run_state *state = &facts->state;
    const rp_view_log_totals *log = &facts->run->log.totals;
    rp_view_add(out, "{\"run\":");
    rp_view_add_string(out, facts->run->name);
    add_word(out, "condition", rp_run_condition_name(state->condition));
    add_word(out, "controller", facts->controller);
    add_word(out, "model", state->model);
    add_word(out, "schedule", state->schedule);
    rp_view_add(out, ",\"step\":%" PRIu64, state->step);
    if (state->steps > 0) {
        rp_view_add(out, ",\"steps\":%" PRIu64, state->steps);
    }
    rp_view_add(out, ",\"unit\":\"%s\"", state->rounds ? "round" : "step");
    if (log->step > 0 && !state->rounds) {
        rp_view_add(out, ",\"epoch\":%" PRIu64, log->epoch);
    }
    add_real(out, "loss", state->loss);
    add_real(out, "learning_rate", log->learning_rate);
    add_real(out, "samples_per_s", state->samples_per_s);
    add_real(out, "left_s", facts->left_s);
    add_real(out, "time_s", log->time_s);
    add_real(out, "age_s", facts->age_s);
}

void rp_view_state_json(const rp_view_facts *facts, rp_view_text *out) {
    add_head(facts, out);
    rp_view_add(out, ",\"boards\":[");
    for (uint32_t i = 0; i < facts->board_count; i++) {
        rp_view_add(out, i > 0 ? "," : "");
        add_board(&facts->board[i], out);
    }
    rp_view_add(out, "],\"wires\":[");
    bool any = false;
    for (uint32_t i = 0; i < facts->wire_count; i++) {
        if (strcmp(facts->wire[i].kind, "control") != 0) {
            rp_view_add(out, any ? "," : "");
            add_wire(&facts->wire[i], out);
            any = true;
        }
    }
    rp_view_add(out, "],\"sites\":[");
    for (uint32_t i = 0; i < facts->site_count; i++) {
        rp_view_add(out, i > 0 ? "," : "");
        add_site(&facts->site[i], out);
    }
    rp_view_add(out, "]}");
}

void rp_view_row_json(const rp_view_run *run, const rp_run_state *state, rp_view_text *out) {
    rp_view_add(out, "{\"run\":");
    rp_view_add_string(out, run->name);
    add_word(out, "condition", rp_run_condition_name(state->condition));
    add_word(out, "model", state->model);
    add_word(out, "schedule", state->schedule);
    rp_view_add(out, ",\"step\":%" PRIu64, state->step);
    if (state->steps > 0) {
        rp_view_add(out, ",\"steps\":%" PRIu64, state->steps);
    }
    if (state->boards > 0) {
        rp_view_add(out, ",\"boards\":%u", state->boards);
    }
    add_real(out, "loss", state->loss);
    add_real(out, "samples_per_s", state->samples_per_s);
    add_real(out, "left_s", state->left_s);
    rp_view_add(out, "}");
}
