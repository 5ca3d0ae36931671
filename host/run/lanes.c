#include "run/lanes.h"

#include <string.h>

enum { EVERY = 50, EVERY_MAX = 1 << 30, LAG_MAX = 1000 };

/* The authors' choice (EASGD) of beta = p * alpha: all lanes together move the centre by 0.9 of its
 * distance to their mean. */
static const double BETA = 0.9;

static bool is_auto(rp_node *map, const char *key) {
    const rp_node *node = rp_node_find(map, key);
    return !node || (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0);
}

static rp_err read_alpha(rp_node *lanes, rp_lanes_keys *out) {
    rp_err err = RP_OK;
    out->alpha = BETA / out->count;
    if (is_auto(lanes, "alpha")) {
        return rp_node_default(lanes, "alpha", "auto");
    }
    RP_TRY(rp_node_f64(lanes, "alpha", 0, 1, &out->alpha));
    if (out->alpha <= 0) {
        return rp_node_fail(rp_node_find(lanes, "alpha"), "expected a number above 0");
    }
    if (out->alpha * out->count > 1) {
        return rp_node_fail(rp_node_find(lanes, "alpha"),
                            "%g for each of %u lanes adds up to more than 1, so the centre would "
                            "move past their mean; expected at most %g",
                            out->alpha, out->count, 1.0 / out->count);
    }
fail:
    return err;
}

rp_err rp_lanes_read(rp_node *root, rp_lanes_keys *out) {
    rp_node *lanes = rp_node_find(root, "lanes");
    rp_err err;
    *out = (rp_lanes_keys){.own = RP_LANE_NONE};
    if (!lanes) {
        return RP_OK;
    }
    if (!rp_node_is_map(lanes)) {
        return rp_node_fail(lanes, "expected a map like {count: 3, every: 50}");
    }
    RP_TRY(rp_node_need(lanes, "count"));
    RP_TRY(rp_node_u32(lanes, "count", 2, RP_LANES_MAX, &out->count));
    out->every = EVERY;
    RP_TRY(rp_node_u32(lanes, "every", 1, EVERY_MAX, &out->every));
    RP_TRY(read_alpha(lanes, out));
    out->lag_auto = is_auto(lanes, "lag");
    RP_TRY(out->lag_auto ? rp_node_default(lanes, "lag", "auto")
                         : rp_node_u32(lanes, "lag", 0, LAG_MAX, &out->lag));
    if (rp_node_find(lanes, "lane")) { /* written by the run itself, for its lanes */
        RP_TRY(rp_node_u32(lanes, "lane", 0, out->count - 1, &out->own));
    }
    RP_TRY(rp_node_done(lanes));
fail:
    return err;
}

/* Index of a lane's first board (or spare) among `all`. */
static uint32_t first_of_lane(const rp_lanes_keys *lanes, uint32_t all, uint32_t lane) {
    return (uint32_t)((uint64_t)all * lane / lanes->count);
}

rp_err rp_lanes_check_own(const rp_lanes_keys *lanes, const char *run_path, bool has_end) {
    if (lanes->count == 0 || (lanes->own != RP_LANE_NONE && has_end)) {
        return RP_OK;
    }
    return lanes->own == RP_LANE_NONE
               ? rp_fail(RP_ERR_USAGE,
                         "%s: lanes: only `ringpipe train` and `resume` support lanes; remove the "
                         "key for this verb",
                         run_path)
               : rp_fail(RP_ERR_USAGE,
                         "%s: this is one lane of a run; resume the whole run, whose folder "
                         "contains this one",
                         run_path);
}

rp_err rp_lanes_deal(rp_arena *arena, const rp_lanes_keys *lanes, const rp_node *at,
                     rp_roster_entry **roster, uint32_t *boards, uint32_t *spares) {
    const uint32_t lane = lanes->own == RP_LANE_NONE ? 0 : lanes->own;
    const uint32_t first = first_of_lane(lanes, *boards, lane);
    const uint32_t first_spare = first_of_lane(lanes, *spares, lane);
    const uint32_t own = first_of_lane(lanes, *boards, lane + 1) - first;
    const uint32_t own_spares = first_of_lane(lanes, *spares, lane + 1) - first_spare;
    rp_roster_entry *dealt;
    rp_err err;
    if (*boards < lanes->count) {
        return rp_node_fail(at, "%u lanes need at least one board each, but the roster has %u",
                            lanes->count, *boards);
    }
    RP_TRY(RP_ARENA_NEW(arena, own + own_spares, &dealt));
    memcpy(dealt, *roster + first, own * sizeof *dealt);
    memcpy(dealt + own, *roster + *boards + first_spare, own_spares * sizeof *dealt);
    *roster = dealt;
    *boards = own;
    *spares = own_spares;
fail:
    return err;
}
