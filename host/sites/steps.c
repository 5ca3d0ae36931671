#include "sites/steps.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { STEPS_MAX = 1 << 24 };

/* Losses by step. */
typedef struct {
    double *loss;         /* [steps]: of step i + 1; NULL: steps are only counted */
    uint64_t steps, most; /* `most`: later steps are left out */
    bool skipped;
} losses;

/* A line with a step's loss is no event. A step that was skipped before a kill is skipped again
 * after it, so the event may count at any place. */
static rp_err take_line(losses *l, const json_t *line) {
    const json_t *step = json_object_get(line, "step");
    const json_t *loss = json_object_get(line, "loss");
    const char *event = json_string_value(json_object_get(line, "event"));
    if (event && strcmp(event, "skipped") == 0) {
        l->skipped = true;
    }
    if (json_object_get(line, "event") || !json_is_integer(step) || !loss) {
        return RP_OK;
    }
    const json_int_t at = json_integer_value(step);
    if (at < 1 || at > STEPS_MAX) {
        return rp_fail(RP_ERR_FORMAT, "step %lld: expected 1 to %d", (long long)at, STEPS_MAX);
    }
    if ((uint64_t)at > l->most) {
        return RP_OK;
    }
    if (l->loss) {
        l->loss[at - 1] = json_is_number(loss) ? json_number_value(loss) : NAN;
    } else if ((uint64_t)at > l->steps) {
        l->steps = (uint64_t)at;
    }
    return RP_OK;
}

static rp_err read_lines(losses *l, FILE *file, const char *path) {
    json_error_t problem;
    rp_err err = RP_OK;
    rewind(file);
    while (err == RP_OK) {
        json_t *line = json_loadf(file, JSON_DISABLE_EOF_CHECK, &problem);
        if (!line) {
            break;
        }
        err = take_line(l, line);
        json_decref(line);
    }
    return err == RP_OK && !feof(file) ? rp_fail(RP_ERR_FORMAT, "%s: %s", path, problem.text) : err;
}

static void sum_up(const losses *l, rp_site_losses *out) {
    double sum = 0;
    *out = (rp_site_losses){
        .steps = l->steps, .first = NAN, .mean = NAN, .last = NAN, .skipped = l->skipped};
    for (uint64_t i = 0; i < l->steps; i++) {
        sum += l->loss[i];
    }
    if (l->steps > 0) {
        out->first = l->loss[0];
        out->mean = sum / (double)l->steps;
        out->last = l->loss[l->steps - 1];
    }
}

rp_err rp_site_read_losses(const char *path, uint64_t most, rp_site_losses *out) {
    losses l = {.most = most};
    double *loss;
    rp_arena arena;
    rp_err err;
    FILE *file = fopen(path, "r");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    rp_arena_init(&arena, "losses", 0);
    RP_TRY(read_lines(&l, file, path));
    RP_TRY(RP_ARENA_NEW(&arena, l.steps + 1, &loss));
    for (uint64_t i = 0; i < l.steps; i++) {
        loss[i] = NAN;
    }
    l.loss = loss;
    RP_TRY(read_lines(&l, file, path));
    sum_up(&l, out);
fail:
    rp_arena_finish(&arena);
    (void)fclose(file);
    return err;
}
