#include "run/zoo.h"

#include <stdlib.h>
#include <string.h>

#include "run/listing.h"

const char *rp_zoo_folder(void) {
    const char *folder = getenv("RINGPIPE_MODELS");
    return folder ? folder : RP_MODELS_DIR;
}

rp_err rp_zoo_names(rp_arena *arena, const char *const **out, uint32_t *count) {
    return rp_listing_read(arena, rp_zoo_folder(), ".yaml", out, count);
}

rp_err rp_zoo_path(rp_arena *arena, const char *name, const char **out) {
    char *path;
    rp_err err;
    if (strchr(name, '/') || strstr(name, ".yaml")) {
        *out = name;
        return RP_OK;
    }
    err = rp_arena_printf(arena, &path, "%s/%s.yaml", rp_zoo_folder(), name);
    *out = err == RP_OK ? path : name;
    return err;
}

static rp_model_data assume_data(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "torchvision-", 12) == 0
               ? (rp_model_data){.sample = rp_shape_3(3, 224, 224), .classes = 1000}
               : (rp_model_data){.sample = rp_shape_3(3, 32, 32), .classes = 10};
}

/* Does a layer have `out: classes`? Reads the file separately, because looking at a key of the tree
 * marks it as known. */
static rp_err find_classes(rp_arena *arena, const char *path, bool *found) {
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, path, &root));
    const rp_node *layers = rp_node_find(root, "layers");
    *found = false;
    for (uint32_t i = 0; layers && rp_node_is_list(layers) && i < rp_node_count(layers); i++) {
        const rp_node *width = rp_node_find(rp_node_item(layers, i), "out");
        *found |= width && rp_node_is_scalar(width) && strcmp(rp_node_text(width), "classes") == 0;
    }
fail:
    return err;
}

rp_err rp_zoo_open(rp_arena *arena, const char *path, const rp_model_data *data, bool *assumed,
                   rp_model **out) {
    const rp_model_data usual = assume_data(path);
    rp_model_data chosen = *data;
    bool classes;
    rp_node *root;
    rp_err err;
    RP_TRY(find_classes(arena, path, &classes));
    RP_TRY(rp_config_read_file(arena, path, &root));
    const rp_node *input = rp_node_find(root, "input");
    const bool follows = !input || rp_node_is_scalar(input);
    *assumed = (follows && data->sample.dims == 0) || (classes && data->classes == 0);
    chosen.sample = follows && data->sample.dims == 0 ? usual.sample : data->sample;
    chosen.classes = data->classes > 0 ? data->classes : usual.classes;
    RP_TRY(rp_model_parse(arena, root, &chosen, out));
fail:
    return err;
}
