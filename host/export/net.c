#include "export/net.h"

#include <string.h>

uint32_t rp_export_find_param(const rp_model *model, uint32_t layer, const char *suffix) {
    for (uint32_t i = model->param_first[layer]; i < model->param_first[layer + 1]; i++) {
        const rp_param *param = &model->plan[layer].param[model->param[i].index];
        if (param->role != RP_PARAM_SCRATCH && strcmp(param->suffix, suffix) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* The tree is read again, because the parser marks every key that it asks for. */
static rp_err read_again(rp_export_net *net, rp_node *model) {
    char *text;
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_text(net->arena, model, &text));
    RP_TRY(rp_config_read_text(net->arena, text, strlen(text), "model", &root));
    net->layers = rp_node_find(root, "layers");
fail:
    return err;
}

static rp_err read_values(rp_export_net *net) {
    const rp_model *model = net->model;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(net->arena, model->param_count + 1, &net->value));
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *param = &model->param[i];
        uint64_t dim[RP_DIMS_MAX];
        for (uint32_t d = 0; d < param->shape.dims; d++) {
            dim[d] = param->shape.dim[d];
        }
        if (param->owner != i) {
            net->value[i] = net->value[param->owner];
        } else if (param->role != RP_PARAM_SCRATCH) {
            RP_TRY(
                rp_st_need_f32(net->weights, param->name, param->shape.dims, dim, &net->value[i]));
        }
    }
fail:
    return err;
}

rp_err rp_export_read_net(rp_arena *arena, const rp_export_options *options, rp_export_net **out) {
    rp_export_net *net;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &net));
    *net = (rp_export_net){.arena = arena};
    *out = net;
    RP_TRY(read_again(net, options->model));
    RP_TRY(rp_model_parse(arena, options->model, &options->data, &net->model));
    RP_TRY(rp_st_open(arena, options->weights, &net->weights));
    RP_TRY(rp_st_check_sums(net->weights));
    RP_TRY(read_values(net));
fail:
    return err;
}

void rp_export_close(rp_export_net **net) {
    if (*net) {
        rp_st_close(&(*net)->weights);
    }
    *net = NULL;
}

uint32_t rp_export_input_count(const rp_export_net *net) {
    return net->model->input_count > 0 ? net->model->input_count : 1;
}

const char *rp_export_input_name(const rp_export_net *net, uint32_t input) {
    const rp_model *model = net->model;
    return model->onnx_input        ? model->onnx_input[input]
           : model->input_count > 0 ? model->layer[input].name
                                    : "input";
}

const char *rp_export_output_name(const rp_export_net *net) {
    return net->model->onnx_output ? net->model->onnx_output : "output";
}
