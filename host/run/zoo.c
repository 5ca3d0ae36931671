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

enum { USUAL_TIME = 64, USUAL_TOKENS = 65 }; /* of tiny Shakespeare's characters */

/* What a model file leaves to the data set. */
typedef struct {
    bool classes, tokens, sample;
    bool ids; /* its input is token ids, by a type or an embedding */
} left_open;

static rp_model_data assume_data(const char *path, const left_open *open) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (open->ids) {
        return (rp_model_data){.sample = rp_shape_1(USUAL_TIME),
                               .type = RP_I32,
                               .classes = USUAL_TOKENS,
                               .tokens = USUAL_TOKENS};
    }
    return strncmp(name, "torchvision-", 12) == 0
               ? (rp_model_data){.sample = rp_shape_3(3, 224, 224), .classes = 1000}
               : (rp_model_data){.sample = rp_shape_3(3, 32, 32), .classes = 10};
}

static bool has_word(rp_node *layer, const char *key, const char *word) {
    const rp_node *node = rp_node_find(layer, key);
    return node && rp_node_is_scalar(node) && strcmp(rp_node_text(node), word) == 0;
}

/* Reads the file separately, because looking at a key of the tree marks it as known. */
static rp_err find_left_open(rp_arena *arena, const char *path, left_open *out) {
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, path, &root));
    const rp_node *layers = rp_node_find(root, "layers");
    rp_node *input = rp_node_find(root, "input");
    const bool several = rp_model_names_inputs(input);
    input = several && rp_node_count(input) > 0 ? rp_node_item(input, 0) : input; /* of one type */
    const bool typed = input && rp_node_is_map(input);
    const rp_node *shape = typed ? rp_node_find(input, "shape") : input;
    *out = (left_open){.sample = !several && (!shape || rp_node_is_scalar(shape)),
                       .ids = typed && has_word(input, "type", "i32")};
    for (uint32_t i = 0; layers && rp_node_is_list(layers) && i < rp_node_count(layers); i++) {
        rp_node *layer = rp_node_item(layers, i);
        out->classes |= has_word(layer, "out", "classes");
        out->tokens |= has_word(layer, "count", "tokens");
        out->ids |= !typed && out->sample && has_word(layer, "kind", "embedding");
    }
fail:
    return err;
}

rp_err rp_zoo_open(rp_arena *arena, const char *path, const rp_model_data *data, bool *assumed,
                   rp_model **out) {
    rp_model_data chosen = *data;
    left_open open;
    rp_node *root;
    rp_err err;
    RP_TRY(find_left_open(arena, path, &open));
    RP_TRY(rp_config_read_file(arena, path, &root));
    const rp_model_data usual = assume_data(path, &open);
    *assumed = (open.sample && data->sample.dims == 0) || (open.classes && data->classes == 0) ||
               (open.tokens && data->tokens == 0);
    chosen.sample = open.sample && data->sample.dims == 0 ? usual.sample : data->sample;
    chosen.type = usual.type;
    chosen.classes = data->classes > 0 ? data->classes : usual.classes;
    chosen.tokens = data->tokens > 0 ? data->tokens : usual.tokens;
    RP_TRY(rp_model_parse(arena, root, &chosen, out));
fail:
    return err;
}
