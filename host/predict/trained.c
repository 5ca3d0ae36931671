#include "predict/trained.h"

#include <unistd.h>

static rp_err find_file(rp_arena *arena, const char *folder, const char *name, const char *lacks,
                        char **out) {
    rp_err err = rp_arena_printf(arena, out, "%s/%s", folder, name);
    if (err == RP_OK && access(*out, F_OK) != 0) {
        if (access(folder, F_OK) != 0) {
            return rp_fail(RP_ERR_USAGE, "%s: the folder does not exist", folder);
        }
        return rp_fail(RP_ERR_USAGE, "%s: %s is missing: %s", folder, name, lacks);
    }
    return err;
}

uint32_t rp_trained_rows(const rp_trained *trained) {
    return trained->about.classes > 0 ? trained->about.target_width : 1;
}

uint32_t rp_trained_outputs(const rp_trained *trained) {
    return rp_network_outputs(trained->network) / rp_trained_rows(trained);
}

static rp_err check_outputs(const rp_trained *trained, const char *model) {
    const rp_description *about = &trained->about;
    const uint32_t outputs = rp_trained_outputs(trained);
    const uint32_t rows = rp_trained_rows(trained);
    if (rp_network_outputs(trained->network) % rows != 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "%s: has %u outputs, which %u targets of a sample do not divide", model,
                       rp_network_outputs(trained->network), rows);
    }
    const uint32_t wanted = about->classes > 0 ? about->classes : about->target_width;
    if (about->classes > 0 ? outputs < wanted : outputs != wanted) {
        return rp_fail(RP_ERR_SHAPE, "%s: has %u outputs, but data.json next to it has %u %s",
                       model, outputs, wanted, about->classes > 0 ? "classes" : "targets");
    }
    return RP_OK;
}

rp_err rp_trained_find(rp_arena *arena, const char *folder, const char *weights,
                       rp_trained_files *out) {
    static const char older[] = "this is not a run folder, or an older version made it, which did "
                                "not write this file";
    char *data;
    char *model;
    char *own = NULL;
    rp_err err;
    RP_TRY(find_file(arena, folder, "data.json", older, &data));
    RP_TRY(find_file(arena, folder, "model.yaml", older, &model));
    if (!weights) {
        RP_TRY(find_file(arena, folder, "weights.safetensors",
                         "the run has not finished; use the weights of a checkpoint with "
                         "--weights FILE",
                         &own));
    }
    out->model_path = model;
    out->weights = weights ? weights : own;
    RP_TRY(rp_data_read_description(arena, data, &out->about));
    RP_TRY(rp_config_read_file(arena, model, &out->model));
fail:
    return err;
}

rp_err rp_trained_read(rp_arena *arena, const char *folder, const char *weights, rp_trained *out) {
    rp_trained_files files;
    rp_network_options net = {0};
    rp_err err;
    *out = (rp_trained){0};
    RP_TRY(rp_trained_find(arena, folder, weights, &files));
    out->about = files.about;
    out->weights = files.weights;
    net.model = files.model;
    net.data = (rp_model_data){.sample = out->about.sample,
                               .type = out->about.type,
                               .classes = out->about.classes,
                               .tokens = out->about.tokens};
    net.weights = out->weights;
    net.time = out->about.buckets.time;
    net.time_count = out->about.buckets.count;
    RP_TRY(rp_network_read(arena, &net, &out->network));
    RP_TRY(check_outputs(out, files.model_path));
    return RP_OK;
fail:
    rp_trained_close(out);
    return err;
}

void rp_trained_close(rp_trained *trained) {
    rp_network_close(&trained->network);
}
