#include "sim/marks.h"

#include <string.h>

static void add(uint32_t *to, const uint32_t *more, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] += more[i];
    }
}

void rp_sim_marks_add(rp_sim_marks *to, const rp_sim_marks *more) {
    add(to->kind, more->kind, RP_SIM_FAULT_KINDS);
    add(to->remedy, more->remedy, RP_REMEDIES);
    add(to->failed, more->failed, RP_CONTROL_RECOVER);
    to->rejoined += more->rejoined;
}

void rp_sim_marks_note(rp_sim_marks *marks, const char *failed, const char *remedy) {
    for (uint32_t s = 0; s < RP_CONTROL_RECOVER; s++) {
        marks->failed[s] += strcmp(rp_control_states[s].name, failed) == 0;
    }
    for (uint32_t r = 0; r < RP_REMEDIES; r++) {
        marks->remedy[r] += strcmp(rp_remedy_name((rp_remedy)r), remedy) == 0;
    }
}
