#include "planning/joint.h"

#include <math.h>
#include <stdio.h>

enum { LEFT_PRINTED = 4, NEXT_PRINTED = 2 };
static const double WORTH = 0.05; /* fraction of a step; smaller gains are not printed */

static void print_order(FILE *file, const rp_joint_plan *plan, const char *const *name) {
    const bool shared = rp_joint_is_shared(plan);
    uint32_t stage = 0;
    for (uint32_t k = 0; k < plan->count; k++) {
        const bool begins = !shared || k == plan->group[stage + 1] || k == 0;
        stage += shared && k == plan->group[stage + 1];
        (void)fprintf(file, "%s%s", k == 0 ? "" : begins ? ", " : " + ", name[plan->place[k]]);
        if (shared && plan->group[stage + 1] - plan->group[stage] > 1) {
            const double before = k == plan->group[stage] ? 0 : plan->share[k - 1];
            (void)fprintf(file, " (%.0f %%)", 100 * (plan->share[k] - before));
        }
    }
}

/* "Left out: board a (0.2 s for a microbatch), board b (0.1 s for a microbatch)". At most
 * LEFT_PRINTED boards. */
static void print_left_out(FILE *file, const rp_joint_answer *answer, const char *const *name) {
    uint32_t printed = 0;
    for (uint32_t k = 0; k < answer->now.count && printed < LEFT_PRINTED; k++) {
        if (!rp_joint_has(&answer->plan[0], k)) {
            (void)fprintf(file, "%sboard %s (%.4g s for a microbatch)",
                          printed++ ? ", " : "Left out: ", name[k], answer->micro_s[k]);
        }
    }
}

/* Seconds of a step with one size on all stages and the run's own schedule, as the present ring
 * has. */
static double even_s(const rp_joint_plan *plan) {
    return plan->even_s > 0 ? plan->even_s : plan->own_s > 0 ? plan->own_s : plan->step_s;
}

static void print_best(FILE *file, const rp_joint_answer *answer, const char *const *name) {
    const rp_joint_plan *now = &answer->now;
    const rp_joint_plan *best = &answer->plan[0];
    if (!(even_s(best) <= (1 - WORTH) * now->step_s)) {
        (void)fprintf(
            file, "No other order of these boards and no subset of them saves %.0f %% of a step.\n",
            100 * WORTH);
    } else if (best->count < now->count) {
        (void)fprintf(file, "%u of %u boards are faster, %.4g s a step instead of %.4g. ",
                      best->count, now->count, even_s(best), now->step_s);
        print_left_out(file, answer, name);
        (void)fprintf(file, ".\nIn this order: ");
        print_order(file, best, name);
        (void)fprintf(file, "; then %s.\n", best->limits);
    } else {
        const char *what = rp_joint_is_shared(best) ? "plan, in which boards share stages,"
                           : rp_joint_is_ring(best, now->count) ? "cut"
                                                                : "order";
        (void)fprintf(file, "Another %s is faster, %.4g s a step instead of %.4g: ", what,
                      even_s(best), now->step_s);
        print_order(file, best, name);
        (void)fprintf(file, "; then %s.\n", best->limits);
    }
}

static void print_next_best(FILE *file, const rp_joint_answer *answer, const char *const *name) {
    uint32_t printed = 0;
    bool had_ring = rp_joint_is_ring(&answer->plan[0], answer->now.count);
    for (uint32_t i = 1; i < answer->count && printed < NEXT_PRINTED; i++) {
        const rp_joint_plan *next = &answer->plan[i];
        const bool ring = rp_joint_is_ring(next, answer->now.count);
        if (ring && had_ring) { /* a second cut of the present ring */
            continue;
        }
        had_ring = had_ring || ring;
        (void)fprintf(file, "Next best, %s: ",
                      ring                       ? "each board with a stage, in their order"
                      : rp_joint_is_shared(next) ? "with stages that are shared"
                                                 : "with other boards");
        print_order(file, next, name);
        (void)fprintf(file, ", %.4g s a step (%+.0f %%).\n", next->step_s,
                      100 * (next->step_s / answer->plan[0].step_s - 1));
        printed++;
    }
}

/* How much each decision saves. */
static void print_savings(FILE *file, const rp_joint_answer *answer) {
    const rp_joint_plan *best = &answer->plan[0];
    const double coded_s = best->own_s > 0 ? best->own_s : best->step_s;
    (void)fprintf(file,
                  "Boards and cut save %.0f %% of %.4g s with layers divided as on equal boards",
                  100 * (1 - even_s(best) / answer->alike.step_s), answer->alike.step_s);
    if (best->even_s > 0 && rp_joint_is_shared(best)) {
        (void)fprintf(file,
                      "; microbatches of %u samples forward and %u backward save %.0f %% of %.4g s "
                      "with %u in both directions",
                      best->size[0][0], best->size[0][1], 100 * (1 - best->step_s / best->even_s),
                      best->even_s, answer->with_micro);
    } else if (best->even_s > 0) {
        (void)fprintf(file, "; unequal sizes save %.0f %% of %.4g s with %u samples on all stages",
                      100 * (1 - best->step_s / best->even_s), best->even_s, answer->with_micro);
    }
    if (best->plain_s > 0) {
        (void)fprintf(file, "; codecs save %.0f %% of %.4g s with f32 on all wires",
                      100 * fmax(0, 1 - coded_s / best->plain_s), best->plain_s);
    }
    if (answer->micro != answer->with_micro) {
        (void)fprintf(file, "; microbatches of %u samples instead of %u would save %.0f %% more",
                      answer->micro, answer->with_micro,
                      100 * (1 - answer->micro_step_s / best->step_s));
    }
    (void)fprintf(file, ".\n");
}

static void print_search(FILE *file, const rp_joint_answer *answer) {
    if (answer->bound_s > 0) {
        (void)fprintf(file,
                      "No plan of these boards takes less than %.4g s a step; this one takes "
                      "%.2f times as long.\n",
                      answer->bound_s, answer->plan[0].step_s / answer->bound_s);
    }
    if (!answer->is_complete) {
        (void)fprintf(file, "The search stopped at its limit (plan.seconds) after %u rings.\n",
                      answer->tried);
    }
}

void rp_joint_say(FILE *file, const rp_joint_answer *answer, const char *const *name) {
    if (!answer->is_known || !isfinite(answer->now.step_s)) {
        return;
    }
    print_best(file, answer, name);
    print_next_best(file, answer, name);
    print_savings(file, answer);
    if (answer->schedule[0]) {
        (void)fprintf(file, "By prediction, %s.\n", answer->schedule);
    }
    print_search(file, answer);
}
