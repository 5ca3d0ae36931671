/* Weights as safetensors, under the names of the framework. */
#include <jansson.h>
#include <string.h>

#include "export/net.h"

/* A tensor of the net is in the file once, under the name of its first use. */
static bool is_written(const rp_export_net *net, uint32_t param) {
    return net->model->param[param].owner == param && net->value[param];
}

/* {"lm_head.weight": "wte.weight"}: names that uses of a shared tensor would have by their layers,
 * and the name that the tensor has. NULL: there is no such name. */
static rp_err list_tied(const rp_export_net *net, char **out, uint32_t *count) {
    const rp_model *model = net->model;
    json_t *names = json_object();
    rp_err err = RP_OK;
    *out = NULL;
    *count = 0;
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *param = &model->param[i];
        char *own;
        if (!param->tied || param->role == RP_PARAM_SCRATCH) {
            continue;
        }
        RP_TRY(rp_arena_printf(net->arena, &own, "%s.%s", model->layer[param->layer].name,
                               model->plan[param->layer].param[param->index].suffix));
        if (strcmp(own, param->name) == 0) {
            continue;
        }
        if (json_object_set_new(names, own, json_string(param->name)) != 0) {
            err = RP_ERR_MEMORY;
            goto fail;
        }
        (*count)++;
    }
    if (*count > 0) {
        const size_t bytes = json_dumpb(names, NULL, 0, 0);
        RP_TRY(RP_ARENA_NEW(net->arena, bytes + 1, out));
        (void)json_dumpb(names, *out, bytes, 0);
    }
fail:
    json_decref(names);
    return err;
}

static rp_err write_values(const rp_export_net *net, rp_st_writer *writer) {
    const rp_model *model = net->model;
    uint32_t index = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < model->param_count; i++) {
        if (is_written(net, i)) {
            RP_TRY(rp_st_write(writer, index++, 0, net->value[i],
                               model->param[i].count * sizeof(float)));
        }
    }
fail:
    return err;
}

rp_err rp_export_weights(const rp_export_net *net, const char *path, rp_export_report *out) {
    const rp_model *model = net->model;
    const char *meta[] = {"format", "pt", NULL, NULL, NULL};
    rp_st_entry *entry;
    rp_st_writer *writer = NULL;
    char *tied;
    rp_err err;
    *out = (rp_export_report){0};
    RP_TRY(list_tied(net, &tied, &out->tied));
    meta[2] = tied ? "tied" : NULL;
    meta[3] = tied;
    RP_TRY(RP_ARENA_NEW(net->arena, model->param_count + 1, &entry));
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *param = &model->param[i];
        if (!is_written(net, i)) {
            continue;
        }
        rp_st_entry *e = &entry[out->tensors++];
        *e = (rp_st_entry){.name = param->name, .type = RP_ST_F32, .dims = param->shape.dims};
        for (uint32_t d = 0; d < e->dims; d++) {
            e->dim[d] = param->shape.dim[d];
        }
        out->elements += param->count;
    }
    RP_TRY(rp_st_create(net->arena, path, entry, out->tensors, meta, false, &writer));
    RP_TRY(write_values(net, writer));
    RP_TRY(rp_st_commit(&writer));
    out->bytes = out->elements * sizeof(float);
fail:
    rp_st_abandon(&writer);
    return err;
}
