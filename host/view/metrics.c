#include "view/metrics.h"

#include <math.h>
#include <string.h>

/* Labels after the run's. */
enum { LABELS = 4 };
typedef struct {
    const char *key[LABELS], *value[LABELS];
} labels;

typedef struct {
    rp_view_run *const *run;
    const rp_view_facts *facts;
    uint32_t count;
    rp_view_text *out;
} page;

/* ---- lines ----------------------------------------------------------------------------------- */

static void begin(const page *p, const char *name, const char *type, const char *help) {
    rp_view_add(p->out, "# HELP ringpipe_%s %s\n# TYPE ringpipe_%s %s\n", name, help, name, type);
}

/* One sample; none if the value is not finite. */
static void add(const page *p, const char *name, const char *run, const labels *more,
                double value) {
    if (!isfinite(value)) {
        return;
    }
    rp_view_add(p->out, "ringpipe_%s{run=", name);
    rp_view_add_string(p->out, run);
    for (uint32_t i = 0; more && i < LABELS && more->key[i]; i++) {
        rp_view_add(p->out, ",%s=", more->key[i]);
        rp_view_add_string(p->out, more->value[i]);
    }
    rp_view_add(p->out, "} %.15g\n", value);
}

/* A number of each run. */
static void add_each(const page *p, const char *name, const char *type, const char *help,
                     double (*value)(const rp_view_facts *facts)) {
    begin(p, name, type, help);
    for (uint32_t r = 0; r < p->count; r++) {
        add(p, name, p->run[r]->name, NULL, value(&p->facts[r]));
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

static double count_or_nan(uint64_t count) {
    return count > 0 ? (double)count : (double)NAN;
}

static double steps_of(const rp_view_facts *facts) {
    return (double)facts->run->steps_high;
}

static double samples_of(const rp_view_facts *facts) {
    return count_or_nan(facts->run->samples_high);
}

static double epoch_of(const rp_view_facts *facts) {
    return facts->run->log.totals.step > 0 ? (double)facts->run->log.totals.epoch : (double)NAN;
}

static double goal_of(const rp_view_facts *facts) {
    return count_or_nan(facts->state.steps);
}

static double left_of(const rp_view_facts *facts) {
    return facts->left_s;
}

static double loss_of(const rp_view_facts *facts) {
    return facts->state.loss;
}

static double rate_of(const rp_view_facts *facts) {
    return facts->run->log.totals.learning_rate;
}

static void add_states(const page *p) {
    begin(p, "run_info", "gauge", "Model and schedule of a run.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_run_state *state = &p->facts[r].state;
        add(p, "run_info", p->run[r]->name,
            &(labels){{"model", "schedule"}, {state->model, state->schedule}}, 1);
    }
    begin(p, "run_state", "gauge", "1 for the present state of a run, 0 for all other states.");
    for (uint32_t r = 0; r < p->count; r++) {
        for (uint32_t i = 0; i < RP_RUN_STATES; i++) {
            add(p, "run_state", p->run[r]->name,
                &(labels){{"state"}, {rp_run_condition_name((rp_run_condition)i)}},
                p->facts[r].state.condition == (rp_run_condition)i);
        }
    }
}

static void add_scores(const page *p) {
    begin(p, "eval_loss", "gauge", "Loss of the newest evaluation.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_log_totals *log = &p->run[r]->log.totals;
        for (uint32_t i = 0; i < log->score_count; i++) {
            add(p, "eval_loss", p->run[r]->name, &(labels){{"split"}, {log->score[i].split}},
                log->score[i].loss);
        }
    }
    begin(p, "eval_accuracy_ratio", "gauge", "Accuracy of the newest evaluation, 0 to 1.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_log_totals *log = &p->run[r]->log.totals;
        for (uint32_t i = 0; i < log->score_count; i++) {
            add(p, "eval_accuracy_ratio", p->run[r]->name,
                &(labels){{"split"}, {log->score[i].split}}, log->score[i].accuracy);
        }
    }
}

static void add_faults(const page *p) {
    begin(p, "recoveries_total", "counter", "Faults after which the run continued, by class.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_log_totals *log = &p->run[r]->log.totals;
        for (uint32_t i = 0; i < log->recovery_count; i++) {
            add(p, "recoveries_total", p->run[r]->name,
                &(labels){{"cause"}, {log->recovery[i].cause}}, (double)log->recovery[i].count);
        }
    }
    begin(p, "ledger_samples_total", "counter",
          "Samples that were lost or counted twice, known at the end of a run.");
    for (uint32_t r = 0; r < p->count; r++) {
        add(p, "ledger_samples_total", p->run[r]->name, &(labels){{"kind"}, {"lost"}},
            p->facts[r].lost);
        add(p, "ledger_samples_total", p->run[r]->name, &(labels){{"kind"}, {"repeated"}},
            p->facts[r].repeated);
    }
}

/* ---- boards ---------------------------------------------------------------------------------- */

static double up_of(const rp_view_board *board) {
    return !board->state[0] ? (double)NAN
                            : strcmp(board->state, "away") != 0 && strcmp(board->state, "silent");
}

static double idle_of(const rp_view_board *board) {
    return board->idle_s;
}

static double memory_of(const rp_view_board *board) {
    return board->memory_bytes;
}

static double heat_of(const rp_view_board *board) {
    return board->heat_c;
}

static double power_of(const rp_view_board *board) {
    return board->power_w;
}

static double energy_of(const rp_view_board *board) {
    return board->energy_j;
}

static void add_boards(const page *p, const char *name, const char *type, const char *help,
                       double (*value)(const rp_view_board *board)) {
    begin(p, name, type, help);
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_facts *facts = &p->facts[r];
        for (uint32_t i = 0; i < facts->board_count; i++) {
            add(p, name, p->run[r]->name, &(labels){{"board"}, {facts->board[i].name}},
                value(&facts->board[i]));
        }
    }
}

static void add_ops(const page *p) {
    static const char *const ops[RP_VIEW_OPS] = {"forward", "backward", "update"};
    begin(p, "board_op_seconds_total", "counter", "Time that a board has computed, by kind of op.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_facts *facts = &p->facts[r];
        for (uint32_t i = 0; i < facts->board_count; i++) {
            for (uint32_t op = 0; op < RP_VIEW_OPS; op++) {
                add(p, "board_op_seconds_total", p->run[r]->name,
                    &(labels){{"board", "op"}, {facts->board[i].name, ops[op]}},
                    facts->board[i].op_s[op]);
            }
        }
    }
}

/* A stage that one board holds alone has the staleness of that board. */
static void add_staleness(const page *p) {
    begin(p, "stage_staleness_updates", "gauge",
          "Most updates of a stage between a forward and its backward.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_facts *facts = &p->facts[r];
        for (uint32_t i = 0; i < facts->board_count; i++) {
            const rp_view_board *board = &facts->board[i];
            bool alone = board->stages[0] && !strchr(board->stages, ' ');
            for (uint32_t k = 0; k < facts->board_count && alone; k++) {
                alone = k == i || strcmp(facts->board[k].stages, board->stages) != 0;
            }
            if (alone) {
                add(p, "stage_staleness_updates", p->run[r]->name,
                    &(labels){{"stage"}, {board->stages}}, board->staleness);
            }
        }
    }
}

/* ---- wires ----------------------------------------------------------------------------------- */

static double bytes_of(const rp_view_wire *wire) {
    return wire->bytes;
}

static double busy_of(const rp_view_wire *wire) {
    return wire->busy_s;
}

static double resent_of(const rp_view_wire *wire) {
    return wire->resent;
}

static double resets_of(const rp_view_wire *wire) {
    return wire->resets;
}

static double use_of(const rp_view_wire *wire) {
    return wire->use;
}

static void add_wires(const page *p, const char *name, const char *type, const char *help,
                      double (*value)(const rp_view_wire *wire)) {
    begin(p, name, type, help);
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_facts *facts = &p->facts[r];
        for (uint32_t i = 0; i < facts->wire_count; i++) {
            const rp_view_wire *wire = &facts->wire[i];
            add(p, name, p->run[r]->name,
                &(labels){{"from", "to", "kind"}, {wire->from, wire->to, wire->kind}}, value(wire));
        }
    }
}

/* Only the quantiles, without sum and count, which boards do not report. */
static void add_delays(const page *p) {
    begin(p, "wire_delay_seconds", "summary",
          "Time from sending a message to its acknowledgement: median and 95th percentile.");
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_facts *facts = &p->facts[r];
        for (uint32_t i = 0; i < 2 * facts->wire_count; i++) {
            const rp_view_wire *wire = &facts->wire[i / 2];
            add(p, "wire_delay_seconds", p->run[r]->name,
                &(labels){{"from", "to", "kind", "quantile"},
                          {wire->from, wire->to, wire->kind, i % 2 ? "0.95" : "0.5"}},
                wire->delay_s[i % 2]);
        }
    }
}

/* ---- sites ----------------------------------------------------------------------------------- */

static double round_of(const rp_view_facts *facts) {
    return facts->round;
}

static double members_of(const rp_view_facts *facts) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < facts->site_count; i++) {
        count += facts->round > 0 && facts->site[i].last_round >= facts->round;
    }
    return facts->round > 0 ? count : (double)NAN;
}

static double site_loss_of(const rp_view_site *site) {
    return site->loss;
}

static double site_samples_of(const rp_view_site *site) {
    return site->samples;
}

static double site_round_of(const rp_view_site *site) {
    return site->last_round;
}

static double site_late_of(const rp_view_site *site) {
    return site->late;
}

static void add_sites(const page *p, const char *name, const char *type, const char *help,
                      double (*value)(const rp_view_site *site)) {
    begin(p, name, type, help);
    for (uint32_t r = 0; r < p->count; r++) {
        const rp_view_facts *facts = &p->facts[r];
        for (uint32_t i = 0; i < facts->site_count; i++) {
            add(p, name, p->run[r]->name, &(labels){{"site"}, {facts->site[i].name}},
                value(&facts->site[i]));
        }
    }
}

static void add_round_bytes(const page *p) {
    begin(p, "round_bytes_total", "counter", "Bytes of weights from and to the sites.");
    for (uint32_t r = 0; r < p->count; r++) {
        const char *run = p->run[r]->name;
        add(p, "round_bytes_total", run, &(labels){{"direction"}, {"up"}}, p->facts[r].up_bytes);
        add(p, "round_bytes_total", run, &(labels){{"direction"}, {"down"}},
            p->facts[r].down_bytes);
    }
}

static void add_federation(const page *p) {
    add_each(p, "round", "gauge", "Newest round of a federated run.", round_of);
    add_each(p, "round_sites", "gauge", "Sites that are averaged in it.", members_of);
    add_round_bytes(p);
    add_sites(p, "site_loss", "gauge", "Mean loss of a site in its newest round.", site_loss_of);
    add_sites(p, "site_samples", "gauge", "Samples that a site has trained.", site_samples_of);
    add_sites(p, "site_last_round", "gauge", "Newest round of a site.", site_round_of);
    add_sites(p, "site_late_total", "counter", "Rounds for which a site was late.", site_late_of);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* A run that went back repeats steps, and a counter must not fall. */
static void raise_marks(rp_view_run *run, const rp_view_facts *facts) {
    const uint64_t samples =
        isfinite(facts->samples) && facts->samples < 1e18 ? (uint64_t)facts->samples : 0;
    run->steps_high = facts->state.step > run->steps_high ? facts->state.step : run->steps_high;
    run->samples_high = samples > run->samples_high ? samples : run->samples_high;
}

static void add_numbers(const page *p) {
    add_each(p, "steps_total", "counter", "Steps done.", steps_of);
    add_each(p, "samples_total", "counter", "Samples trained.", samples_of);
    add_each(p, "epoch", "gauge", "Epoch of the newest step, from 0.", epoch_of);
    add_each(p, "steps_goal", "gauge", "Steps of the whole run.", goal_of);
    add_each(p, "left_seconds", "gauge", "Estimated time until the end of the run.", left_of);
    add_each(p, "train_loss", "gauge", "Loss of the newest step.", loss_of);
    add_each(p, "learning_rate", "gauge", "Learning rate of the newest step.", rate_of);
}

void rp_view_metrics(rp_view_run *const *run, const rp_view_facts *facts, uint32_t count,
                     rp_view_text *out) {
    const page p = {run, facts, count, out};
    for (uint32_t r = 0; r < count; r++) {
        raise_marks(run[r], &facts[r]);
    }
    begin(&p, "build_info", "gauge", "Version of this program.");
    rp_view_add(out, "ringpipe_build_info{version=\"%s\"} 1\n", RP_VERSION);
    add_states(&p);
    add_numbers(&p);
    add_scores(&p);
    add_faults(&p);
    add_boards(&p, "board_up", "gauge", "1 while the board answers, of active runs.", up_of);
    add_ops(&p);
    add_boards(&p, "board_idle_seconds_total", "counter",
               "Time without an op, while the ring trained or evaluated.", idle_of);
    add_boards(&p, "board_memory_bytes", "gauge", "Most device memory that was used.", memory_of);
    add_boards(&p, "board_temperature_celsius", "gauge", "Temperature of a board.", heat_of);
    add_boards(&p, "board_power_watts", "gauge", "Power that a board draws.", power_of);
    add_boards(&p, "board_energy_joules_total", "counter", "Energy that a board has drawn.",
               energy_of);
    add_staleness(&p);
    add_wires(&p, "wire_bytes_total", "counter", "Bytes sent.", bytes_of);
    add_wires(&p, "wire_busy_seconds_total", "counter", "Time that the bytes took.", busy_of);
    add_wires(&p, "wire_use_ratio", "gauge", "Share of the training time, 0 to 1.", use_of);
    add_wires(&p, "wire_resent_total", "counter", "Messages sent again.", resent_of);
    add_wires(&p, "wire_resets_total", "counter", "Connections made again.", resets_of);
    add_delays(&p);
    add_federation(&p);
}
