#include "sim/marks.h"

#include <string.h>

static void add_counts(uint32_t *to, const uint32_t *more, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] += more[i];
    }
}

void rp_sim_marks_add(rp_sim_marks *to, const rp_sim_marks *more) {
    add_counts(to->kind, more->kind, RP_SIM_FAULT_KINDS);
    add_counts(to->remedy, more->remedy, RP_REMEDIES);
    add_counts(to->failed, more->failed, RP_CONTROL_RECOVER);
    add_counts(to->passed, more->passed, RP_CONTROL_RECOVER);
    add_counts(to->kill, more->kill, RP_SIM_KILLS_MAX);
    to->rejoined += more->rejoined;
}

static void note_state(uint32_t *counts, const char *name) {
    for (uint32_t s = 0; s < RP_CONTROL_RECOVER; s++) {
        counts[s] += strcmp(rp_control_states[s].name, name) == 0;
    }
}

void rp_sim_marks_pass(rp_sim_marks *marks, const char *state) {
    note_state(marks->passed, state);
}

void rp_sim_marks_note(rp_sim_marks *marks, const char *failed, const char *remedy) {
    note_state(marks->failed, failed);
    for (uint32_t r = 0; r < RP_REMEDIES; r++) {
        marks->remedy[r] += strcmp(rp_remedy_name((rp_remedy)r), remedy) == 0;
    }
}
