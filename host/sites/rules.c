#include "sites/rules.h"

#include <fnmatch.h>

bool rp_site_keeps(const rp_round_rules *rules, const char *name) {
    for (uint32_t i = 0; i < rules->keep_count; i++) {
        if (fnmatch(rules->keep[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

rp_err rp_site_check_keep(const rp_round_rules *rules, const rp_st_reader *given,
                          const char *path) {
    for (uint32_t k = 0; k < rules->keep_count; k++) {
        uint32_t i = 0;
        while (i < rp_st_count(given) &&
               !(rp_st_is_float(rp_st_entry_at(given, i)->type) &&
                 fnmatch(rules->keep[k], rp_st_entry_at(given, i)->name, 0) == 0)) {
            i++;
        }
        if (i == rp_st_count(given)) {
            return rp_fail(RP_ERR_USAGE, "--keep: '%.200s' matches no tensor of floats in %s",
                           rules->keep[k], path);
        }
    }
    return RP_OK;
}
