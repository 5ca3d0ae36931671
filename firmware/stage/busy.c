#include "stage/busy.h"

void rp_busy_open(rp_busy *busy, const rp_site *site, const rp_job *job, const rp_layout *layout) {
    *busy = (rp_busy){.clock = site->clock,
                      .real = rp_clock_real(),
                      .update_s = site->update_s,
                      .costs = site->costs,
                      .hangs = site->hangs,
                      .seconds = site->seconds,
                      .seconds_samples = site->seconds_samples ? site->seconds_samples : job->micro,
                      .model = job->model,
                      .first = layout->first_layer,
                      .recomputes = layout->group_count > 0,
                      .end = layout->first_layer + layout->layer_count};
}

static int64_t now_of(const rp_busy *busy) {
    return rp_clock_now_ns(busy->clock ? busy->clock : &busy->real);
}

/* A layer's time in a shorter step, as a fraction of that in the longest: by the operations. */
static double share_of(const rp_layer_plan *longest, const rp_layer_plan *plan) {
    const double most = longest->flops_forward;
    return plan != longest && most > 0 ? plan->flops_forward / most : 1;
}

/* Reads the costs for every op again, because a board may change its speed while it runs. */
static double sample_s(const rp_busy *busy, bool backward, uint32_t time) {
    const rp_model_view view = rp_model_view_at(busy->model, time);
    double sum = 0;
    for (uint32_t layer = busy->first; busy->seconds && layer < busy->end; layer++) {
        sum += busy->seconds[2 * (size_t)layer + backward] / busy->seconds_samples *
               share_of(&busy->model->plan[layer], &view.plan[layer]);
    }
    return sum;
}

static double op_s(const rp_busy *busy, rp_op_kind kind, uint32_t samples, uint32_t time) {
    const rp_site_costs *costs = busy->costs;
    if (costs) {
        return costs->op_s(costs->self, busy->first, busy->end, kind, samples);
    }
    const double whole = kind == RP_OP_FORWARD || kind == RP_OP_BACKWARD ? 1 : 0.5;
    return whole * sample_s(busy, kind != RP_OP_FORWARD, time) * samples;
}

static double cost_of(const rp_busy *busy, const rp_command *command) {
    const rp_site_costs *costs = busy->costs;
    if (command->kind == RP_COMMAND_UPDATE) {
        return costs ? costs->op_s(costs->self, busy->first, busy->end, RP_OP_UPDATE, 0)
                     : busy->update_s;
    }
    if (command->kind != RP_COMMAND_FORWARD && command->kind != RP_COMMAND_BACKWARD) {
        return 0;
    }
    const rp_op *op = command->pass.op;
    const bool recomputes = busy->recomputes && op->kind != RP_OP_FORWARD;
    const uint32_t time = command->pass.time;
    return op_s(busy, op->kind, op->samples.count, time) +
           (recomputes ? op_s(busy, RP_OP_FORWARD, op->samples.count, time) : 0);
}

void rp_busy_spend(rp_busy *busy, const rp_command *command) {
    const int64_t now_ns = now_of(busy);
    const int64_t start_ns = busy->until_ns > now_ns ? busy->until_ns : now_ns;
    busy->until_ns = start_ns + (int64_t)(cost_of(busy, command) * 1e9);
}

rp_mark rp_busy_mark(const rp_busy *busy) {
    const int64_t now_ns = now_of(busy);
    return (rp_mark){.end_ns = busy->until_ns > now_ns ? busy->until_ns : now_ns};
}

bool rp_busy_passed(const rp_busy *busy, const rp_mark *mark) {
    return !(busy->hangs && *busy->hangs) && now_of(busy) >= mark->end_ns;
}

/* ---- entries of a table ---------------------------------------------------------------------- */

static rp_busy *busy_of(rp_executor *executor) {
    return &((rp_busy_executor *)(void *)executor)->busy; /* the base is its first member */
}

void rp_busy_executor_destroy(rp_executor **executor) {
    *executor = NULL; /* its memory belongs to the arena */
}

rp_err rp_busy_executor_mark(rp_executor *executor, rp_mark *out) {
    *out = rp_busy_mark(busy_of(executor));
    return RP_OK;
}

rp_err rp_busy_executor_poll(rp_executor *executor, const rp_mark *mark, bool *done,
                             int64_t *end_ns) {
    *done = rp_busy_passed(busy_of(executor), mark);
    *end_ns = mark->end_ns;
    return RP_OK;
}

void rp_busy_executor_release(rp_executor *executor, rp_mark *mark) {
    (void)executor;
    *mark = (rp_mark){0};
}

rp_err rp_busy_executor_drain(rp_executor *executor) {
    (void)executor;
    return RP_OK;
}
