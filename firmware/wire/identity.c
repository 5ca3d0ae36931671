#include "wire/identity.h"

static uint32_t index_of(const rp_terms *terms, uint64_t id) {
    uint32_t i = 0;
    while (i < RP_TERMS_MAX && terms->seen[i].id != id) {
        i++;
    }
    return i;
}

uint32_t rp_terms_newest(const rp_terms *terms, uint64_t id) {
    const uint32_t i = index_of(terms, id);
    return i < RP_TERMS_MAX ? terms->seen[i].term : 0;
}

bool rp_terms_admit(rp_terms *terms, rp_run_identity run) {
    uint32_t i = index_of(terms, run.id);
    if (run.id == 0) {
        return true;
    }
    if (i == RP_TERMS_MAX) {
        i = terms->next;
        terms->next = (terms->next + 1) % RP_TERMS_MAX;
    } else if (run.term < terms->seen[i].term) {
        return false;
    }
    terms->seen[i] = run;
    return true;
}
