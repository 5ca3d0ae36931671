#include "federation/trace.h"

#include <jansson.h>
#include <math.h>

#include "base/json_read.h"

static const double TIME_MAX_S = 1e12;

bool rp_trace_is_there(const rp_trace_site *site, double at_s) {
    const double at = fmod(at_s, site->period_s);
    for (uint32_t i = 0; i < site->count; i++) {
        if (at >= site->on[i] && at < site->off[i]) {
            return true;
        }
    }
    return false;
}

static bool take_time(const json_t *value, double *out) {
    *out = json_is_number(value) ? json_number_value(value) : -1;
    return *out >= 0 && *out <= TIME_MAX_S;
}

/* A site that is there when the trace ends may have no last time in `inactive`. */
static rp_err take_times(rp_arena *arena, const json_t *active, const json_t *inactive,
                         rp_trace_site *out, bool *good) {
    const size_t count = json_array_size(active);
    double before = 0;
    double *on;
    double *off;
    rp_err err;
    *good = json_is_array(active) && json_is_array(inactive) && count <= RP_TRACE_INTERVALS_MAX &&
            (json_array_size(inactive) == count || json_array_size(inactive) + 1 == count);
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &on));
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &off));
    for (size_t i = 0; *good && i < count; i++) {
        off[i] = out->period_s;
        *good = take_time(json_array_get(active, i), &on[i]) &&
                (i == json_array_size(inactive) || take_time(json_array_get(inactive, i), &off[i]));
        *good = *good && on[i] >= before && off[i] > on[i] && off[i] <= out->period_s;
        before = off[i];
    }
    out->on = on;
    out->off = off;
    out->count = (uint32_t)count;
fail:
    return err;
}

static rp_err take_site(rp_arena *arena, const char *path, const char *name, const json_t *object,
                        rp_trace_site *out) {
    bool good =
        take_time(json_object_get(object, "finish_time"), &out->period_s) && out->period_s > 0;
    rp_err err = RP_OK;
    if (good) {
        RP_TRY(take_times(arena, json_object_get(object, "active"),
                          json_object_get(object, "inactive"), out, &good));
    }
    return good ? RP_OK
                : rp_fail(RP_ERR_USAGE,
                          "%s: site '%s': expected {\"active\": [0, 30], \"inactive\": [10, 40], "
                          "\"finish_time\": 60}: seconds that ascend in turns, up to finish_time",
                          path, name);
fail:
    return err;
}

rp_err rp_trace_read(rp_arena *arena, const char *path, const char *const *name, uint32_t sites,
                     rp_trace_site **out) {
    json_t *root = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)sites + 1, out));
    RP_TRY(rp_json_read(path, &root));
    for (uint32_t i = 0; i < sites; i++) {
        const json_t *object = json_object_get(root, name[i]);
        if (!object) {
            RP_TRY(rp_fail(RP_ERR_USAGE,
                           "%s: no trace of site '%s': expected an object with the name of each "
                           "site of the split file",
                           path, name[i]));
        }
        RP_TRY(take_site(arena, path, name[i], object, &(*out)[i]));
    }
fail:
    json_decref(root);
    return err;
}
