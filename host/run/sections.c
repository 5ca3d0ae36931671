#include "run/runfile_own.h"

rp_err rp_section_map(rp_node *root, const char *key, const char *like, rp_node **out) {
    rp_err err = rp_node_section(root, key, NULL, out);
    return err == RP_OK && *out && !rp_node_is_map(*out)
               ? rp_node_fail(*out, "expected a map%s%s", like[0] ? " like " : "", like)
               : err;
}

rp_err rp_section_need(rp_node *root, const char *key, rp_node **out) {
    rp_err err = rp_node_need(root, key);
    *out = err == RP_OK ? rp_node_find(root, key) : NULL;
    return err == RP_OK && !rp_node_is_map(*out) ? rp_node_fail(*out, "expected a map") : err;
}
