#include "sites/answer.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json_read.h"
#include "base/json_values.h"
#include "base/replace.h"
#include "sites/state.h"

enum { PATH_BYTES = RP_REPLACE_PATH_BYTES };

double rp_round_norm_a(const rp_round_steps *steps) {
    const bool anchored = steps->anchor > 0;
    const bool gathers = steps->momentum > 0;
    double in_buffer = 0; /* weight of the gradients in the momentum buffer */
    double a = 0;
    if ((anchored && gathers) || !(steps->lr > 0)) {
        return NAN;
    }
    for (uint64_t k = 0; k < steps->count; k++) {
        const double rate = steps->rate[k];
        const double kept = k > 0 ? 1 - steps->dampening : 1;
        in_buffer = gathers ? steps->momentum * in_buffer + kept : 1;
        const double step = steps->nesterov ? 1 + steps->momentum * in_buffer : in_buffer;
        a = (anchored ? 1 - rate * steps->anchor : 1) * a + rate / steps->lr * step;
    }
    return a;
}

static json_t *json_of_loss(const rp_site_losses *loss, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "first", rp_json_of_real(loss->first), good);
    rp_json_put(object, "mean", rp_json_of_real(loss->mean), good);
    rp_json_put(object, "last", rp_json_of_real(loss->last), good);
    return object;
}

static json_t *json_of_optimizer(const rp_round_answer *answer, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "kind", json_string(answer->optimizer), good);
    rp_json_put(object, "lr", rp_json_of_real(answer->lr), good);
    rp_json_put(object, "momentum", rp_json_of_real(answer->momentum), good);
    rp_json_put(object, "state", json_string(answer->start->optimizer ? "kept" : "fresh"), good);
    return object;
}

static json_t *state_word(bool in_use, bool own, const char *own_word, const char *other) {
    return in_use ? json_string(own ? own_word : other) : json_null();
}

/* What the site had from an earlier round; NULL of `from`: it had nothing. */
static json_t *json_of_state(const rp_round_answer *answer, bool *good) {
    const rp_round_rules *rules = &answer->asked->rules;
    const rp_site_start *start = answer->start;
    json_t *object = json_object();
    rp_json_put(object, "from",
                start->from == RP_SITE_NO_ROUND ? json_null() : rp_json_of_whole(start->from),
                good);
    rp_json_put(object, "drift", state_word(rules->drift, start->drift, "kept", "fresh"), good);
    rp_json_put(object, "kept", rp_json_of_whole(start->kept), good);
    rp_json_put(object, "own", rp_json_of_whole(start->own), good);
    if (rules->delta.kind != RP_DELTA_NONE) {
        rp_json_put(object, "error", state_word(true, start->errors > 0, "kept", "fresh"), good);
    }
    return object;
}

static json_t *json_of(const rp_round_answer *answer, bool *good) {
    const rp_round_asked *asked = answer->asked;
    char delta[RP_DELTA_TEXT];
    json_t *object = json_object();
    json_t *before = answer->before ? json_deep_copy(answer->before) : json_null();
    json_t *after = answer->after ? json_deep_copy(answer->after) : json_null();
    rp_json_put(object, "version", json_integer(1), good);
    rp_json_put(object, "round", rp_json_of_whole(asked->round), good);
    rp_json_put(object, "site", json_string(asked->site), good);
    rp_json_put(object, "status", json_string(answer->partial ? "partial" : "finished"), good);
    rp_json_put(object, "steps", rp_json_of_whole(answer->loss.steps), good);
    rp_json_put(object, "asked", rp_json_of_whole(asked->steps), good);
    rp_json_put(object, "samples", rp_json_of_whole(answer->samples), good);
    rp_json_put(object, "held", rp_json_of_whole(answer->held), good);
    rp_json_put(object, "loss", json_of_loss(&answer->loss, good), good);
    rp_json_put(object, "before", before, good);
    rp_json_put(object, "after", after, good);
    rp_json_put(object, "delta_norm", rp_json_of_real(answer->difference.norm), good);
    rp_json_put(object, "clipped", json_boolean(answer->difference.clipped), good);
    rp_json_put(object, "norm_a", rp_json_of_real(answer->norm_a), good);
    rp_json_put(object, "seconds",
                json_pack("{s:f, s:f}", "start", answer->start_s, "train", answer->train_s), good);
    rp_json_put(object, "bytes", json_pack("{s:I}", "ring", (json_int_t)answer->ring_bytes), good);
    rp_json_put(object, "joules", rp_json_of_real(answer->joules), good);
    rp_json_put(object, "optimizer", json_of_optimizer(answer, good), good);
    rp_json_put(object, "anchor", rp_json_of_real(asked->rules.anchor), good);
    rp_delta_print(&asked->rules.delta, delta);
    rp_json_put(object, "delta", delta[0] ? json_string(delta) : json_null(), good);
    rp_json_put(object, "state", json_of_state(answer, good), good);
    rp_json_put(object, "in", json_string(asked->in), good);
    rp_json_put(object, "out", json_string(answer->out), good);
    if (asked->split[0]) {
        rp_json_put(object, "split", json_string(asked->split), good);
    }
    return object;
}

rp_err rp_round_write_answer(const char *folder, const rp_round_answer *answer) {
    char path[PATH_BYTES];
    bool good = true;
    json_t *object = json_of(answer, &good);
    (void)snprintf(path, sizeof path, "%s/round.json", folder);
    FILE *file = good ? rp_replace_begin(path) : NULL;
    good = file && json_dumpf(object, file, JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    json_decref(object);
    return rp_replace_end(file, path, good);
}

rp_err rp_round_read_answer(const char *folder, json_t **out) {
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/round.json", folder);
    *out = NULL;
    return access(path, F_OK) == 0 ? rp_json_read(path, out) : RP_OK;
}
