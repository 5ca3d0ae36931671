#include "sim/tally.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json_print.h"

static void add_count(json_t *to, const char *name, uint32_t count) {
    (void)json_object_set_new(to, name, json_integer(count));
}

static json_t *json_of_marks(const rp_sim_marks *marks) {
    json_t *kinds = json_object();
    json_t *remedies = json_object();
    json_t *failed = json_object();
    json_t *passed = json_object();
    for (uint32_t k = 0; k < RP_SIM_FAULT_KINDS; k++) {
        add_count(kinds, rp_sim_fault_facts_at(k)->name, marks->kind[k]);
    }
    for (uint32_t r = 0; r < RP_REMEDIES; r++) {
        add_count(remedies, rp_remedy_name((rp_remedy)r), marks->remedy[r]);
    }
    for (uint32_t s = 0; s < RP_CONTROL_RECOVER; s++) {
        add_count(failed, rp_control_states[s].name, marks->failed[s]);
        add_count(passed, rp_control_states[s].name, marks->passed[s]);
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:{s:I}}", "faults", kinds, "remedies", remedies,
                     "failed_in", failed, "way_back", passed, "boards", "rejoined",
                     (json_int_t)marks->rejoined);
}

static json_t *json_of(const rp_sim_tally *t, json_t *more) {
    json_t *root = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:n, s:I, s:I, s:f, s:f}", "version", 1, "runs",
        (json_int_t)t->runs, "finished", (json_int_t)t->finished, "stopped_resumable",
        (json_int_t)t->stopped_resumable, "hung", (json_int_t)t->hung, "wrong",
        (json_int_t)t->wrong, "first_bad_seed", "faults", (json_int_t)t->faults, "faults_min",
        (json_int_t)t->faults_min, "seconds", t->seconds, "virtual_seconds", t->virtual_s);
    if (root) {
        json_t *marks = json_of_marks(&t->marks);
        (void)json_object_update(marks, more);
        (void)json_object_set_new(root, "marks", marks);
    }
    if (root && t->any_bad) {
        (void)json_object_set_new(root, "first_bad_seed",
                                  json_integer((json_int_t)t->first_bad_seed));
    }
    return root;
}

/* Prints a word quoted for a shell. */
static void print_word(const char *word) {
    (void)fputs(" '", stdout);
    for (; *word; word++) {
        if (*word == '\'') {
            (void)fputs("'\\''", stdout);
        } else {
            (void)fputc(*word, stdout);
        }
    }
    (void)fputc('\'', stdout);
}

static void print_option(const char *option, const char *value) {
    if (value) {
        (void)printf(" --%s", option);
        print_word(value);
    }
}

/* Prints the command that runs one seed again with the same options. */
static void print_command(const rp_sim_options *options, uint64_t seed) {
    (void)printf("ringpipe sim");
    print_word(options->run_path);
    for (uint32_t i = 0; i < options->set_count; i++) {
        print_option("set", options->set[i]);
    }
    print_option("plan", options->plan);
    print_option("profile", options->profile);
    print_option("executor", options->executor);
    print_option("faults", options->faults);
    (void)printf(" --seed %" PRIu64 " --trace\n", seed);
}

rp_err rp_sim_print_tally(const rp_sim_options *options, const rp_sim_tally *t, json_t *more) {
    if (options->format == RP_FORMAT_JSON) {
        json_t *root = json_of(t, more);
        json_decref(more);
        return rp_json_print(root, 0, stdout);
    }
    json_decref(more);
    (void)printf("%" PRIu64 " runs: %" PRIu64 " finished, %" PRIu64 " stopped and resumed, %" PRIu64
                 " hung, %" PRIu64 " wrong; %" PRIu64 " faults, %.1f virtual seconds in %.1f s\n",
                 t->runs, t->finished, t->stopped_resumable, t->hung, t->wrong, t->faults,
                 t->virtual_s, t->seconds);
    if (t->any_bad) {
        (void)printf("first bad seed %" PRIu64 "; to see what happens in it: ", t->first_bad_seed);
        print_command(options, t->first_bad_seed);
    }
    return RP_OK;
}

rp_err rp_sim_check_tally(const rp_sim_tally *t) {
    return !t->any_bad ? RP_OK
                       : rp_fail(RP_ERR_FAULT,
                                 "%" PRIu64 " of %" PRIu64 " runs hung or ended wrong, the first "
                                 "with seed %" PRIu64,
                                 t->hung + t->wrong, t->runs, t->first_bad_seed);
}
