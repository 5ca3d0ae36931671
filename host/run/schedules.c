#include "run/schedules.h"

#include <string.h>

#include "stage/job.h"

enum { METHOD_TEXT = 256 };

/* Makes a map with the node as its `schedule`. */
static rp_err put_under(rp_arena *arena, const rp_node *node, rp_schedule *out) {
    char *written;
    char *text;
    rp_err err;
    RP_TRY(rp_config_text(arena, node, &written));
    const size_t room = 3 * strlen(written) + 64; /* each line begins with two blanks more */
    RP_TRY(RP_ARENA_NEW(arena, room, &text));
    FILE *file = fmemopen(text, room, "w");
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a schedule");
    }
    err = rp_config_put(arena, file, "schedule", node);
    if (fclose(file) != 0 && err == RP_OK) {
        err = rp_fail(RP_ERR_MEMORY, "no memory for a schedule");
    }
    RP_TRY(err);
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "plan.schedules", &out->root));
    out->text = rp_node_is_scalar(node) ? rp_node_text(node) : written;
fail:
    return err;
}

static rp_err check_kind(const rp_node *node, const rp_method *method) {
    return rp_method_is_plain(method)
               ? RP_OK
               : rp_node_fail(node,
                              "plan.schedules: expected schedules with one stage on each board and "
                              "one size for all microbatches, like gpipe, 1f1b, zb-h1, pipedream, "
                              "ea-pipe; found %s",
                              method->kind->name);
}

/* Errors inside of the schedule name the node, because its copy has no lines of the file. */
static rp_err read_schedule(rp_arena *arena, const rp_node *node, uint32_t boards,
                            const rp_optim *optim, rp_schedule *out) {
    rp_err err;
    RP_TRY(put_under(arena, node, out));
    err = rp_method_parse(out->root, boards, &out->method);
    if (err == RP_ERR_USAGE) {
        char why[RP_ERR_MESSAGE_BYTES];
        (void)snprintf(why, sizeof why, "%s", rp_err_message());
        return rp_node_fail(node, "%s", why);
    }
    RP_TRY(err);
    RP_TRY(check_kind(node, &out->method));
    out->optim = *optim;
    RP_TRY(rp_method_fit(&out->method, &out->optim, node));
fail:
    return err;
}

rp_err rp_schedules_read(rp_arena *arena, rp_node *root, rp_node *plan, uint32_t boards,
                         const rp_optim *optim, rp_schedules *out, const rp_node **node) {
    const rp_node *list = plan ? rp_node_find(plan, "schedules") : NULL;
    rp_err err = RP_OK;
    *out = (rp_schedules){.count = 0};
    if (!list || (rp_node_is_scalar(list) && strcmp(rp_node_text(list), "none") == 0)) {
        return RP_OK;
    }
    if (!rp_node_is_list(list) || rp_node_count(list) == 0 ||
        rp_node_count(list) >= RP_SCHEDULES_MAX) {
        return rp_node_fail(list,
                            "expected none, or a list of 1 to %d schedules, each as under "
                            "`schedule`",
                            RP_SCHEDULES_MAX - 1);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)rp_node_count(list) + 1, &out->at));
    node[0] = rp_node_find(root, "schedule");
    RP_TRY(read_schedule(arena, node[0], boards, optim, &out->at[0]));
    out->count = 1;
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        rp_schedule *next = &out->at[out->count];
        node[out->count] = rp_node_item(list, i);
        RP_TRY(read_schedule(arena, node[out->count], boards, optim, next));
        out->count += rp_schedules_find(out, &next->method, boards) == out->count;
    }
fail:
    return err;
}

uint32_t rp_schedules_find(const rp_schedules *schedules, const rp_method *method,
                           uint32_t stages) {
    char wanted[METHOD_TEXT];
    uint32_t at = 0;
    rp_method_text(method, wanted, sizeof wanted);
    for (; at < schedules->count; at++) {
        rp_method own = schedules->at[at].method;
        char is[METHOD_TEXT];
        if (own.advance_auto) {
            rp_method_set_advance(&own, stages, method->advance);
        }
        rp_method_text(&own, is, sizeof is);
        if (own.kind == method->kind && (own.advance_auto || !method->advance_auto) &&
            strcmp(is, wanted) == 0) {
            break;
        }
    }
    return at;
}
