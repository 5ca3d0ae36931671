/* Nodes to YAML. */
#include <errno.h>
#include <string.h>

#include <yaml.h>

#include "base/config_own.h"
#include "base/quote.h"
#include "base/replace.h"

typedef struct {
    FILE *file; /* output file; if NULL, output goes to `text` */
    char *text; /* buffer of the size that an earlier pass with NULL counted */
    size_t bytes;
    bool whole; /* also write noted defaults */
} sink;

static int write_piece(void *context, unsigned char *piece, size_t bytes) {
    sink *to = context;
    if (to->file && fwrite(piece, 1, bytes, to->file) != bytes) {
        return 0;
    }
    if (to->text) {
        memcpy(to->text + to->bytes, piece, bytes);
    }
    to->bytes += bytes;
    return 1;
}

static bool emit_text(yaml_emitter_t *emitter, const char *text, bool plain) {
    yaml_event_t event;
    /* A plain text over several lines would read differently with its new indentation. */
    yaml_scalar_style_t style = text[strcspn(text, "\n\r\t")] ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                : plain                       ? YAML_PLAIN_SCALAR_STYLE
                                                              : YAML_SINGLE_QUOTED_SCALAR_STYLE;
    return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                        (int)strlen(text), 1, 1, style) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_node(yaml_emitter_t *emitter, const rp_node *node, bool whole);

/* Omits a map without keys whose defaults have no keys either. */
static bool emit_children(yaml_emitter_t *emitter, const rp_node *node, bool whole) {
    for (uint32_t i = 0; i < node->count; i++) {
        const rp_node *child = node->items[i];
        if ((node->type == RP_NODE_MAP && !emit_text(emitter, child->key, true)) ||
            !emit_node(emitter, child, whole)) {
            return false;
        }
    }
    for (uint32_t i = 0; whole && node->defaults && i < node->defaults->count; i++) {
        const rp_node *child = node->defaults->items[i];
        const bool empty = child->type == RP_NODE_MAP && child->count == 0 && !child->defaults;
        if (!empty && !(emit_text(emitter, child->key, true) && emit_node(emitter, child, whole))) {
            return false;
        }
    }
    return true;
}

static bool emit_node(yaml_emitter_t *emitter, const rp_node *node, bool whole) {
    yaml_event_t event;
    node = whole && node->whole && node->whole->defaults ? node->whole : node;
    if (node->type == RP_NODE_SCALAR) {
        return emit_text(emitter, node->text, node->plain);
    }
    bool made = node->type == RP_NODE_LIST
                    ? yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                           node->flow ? YAML_FLOW_SEQUENCE_STYLE
                                                                      : YAML_BLOCK_SEQUENCE_STYLE)
                    : yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                                          node->flow ? YAML_FLOW_MAPPING_STYLE
                                                                     : YAML_BLOCK_MAPPING_STYLE);
    if (!made || !yaml_emitter_emit(emitter, &event)) {
        return false;
    }
    if (!emit_children(emitter, node, whole)) {
        return false;
    }
    made = node->type == RP_NODE_LIST ? yaml_sequence_end_event_initialize(&event)
                                      : yaml_mapping_end_event_initialize(&event);
    return made && yaml_emitter_emit(emitter, &event);
}

static bool emit_document(yaml_emitter_t *emitter, const rp_node *node, bool whole) {
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit_node(emitter, node, whole) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event) &&
           yaml_emitter_flush(emitter);
}

static rp_err write_to(const rp_node *node, sink *to) {
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter)) {
        return rp_fail(RP_ERR_MEMORY, "no memory for the YAML writer");
    }
    yaml_emitter_set_output(&emitter, write_piece, to);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    rp_err err = RP_OK;
    if (!emit_document(&emitter, node, to->whole)) {
        err = rp_fail(emitter.error == YAML_WRITER_ERROR ? RP_ERR_IO : RP_ERR_MEMORY,
                      "YAML cannot be written: %s",
                      emitter.problem ? emitter.problem : strerror(errno));
    }
    yaml_emitter_delete(&emitter);
    return err;
}

static rp_err write_file(const rp_node *node, FILE *file, bool whole) {
    sink to = {.file = file, .whole = whole};
    rp_err err = write_to(node, &to);
    if (err == RP_OK && fflush(file) != 0) {
        err = rp_fail(RP_ERR_IO, "YAML cannot be written: %s", strerror(errno));
    }
    return err;
}

rp_err rp_config_write(const rp_node *node, FILE *file) {
    return write_file(node, file, false);
}

rp_err rp_config_write_whole(const rp_node *node, FILE *file) {
    return write_file(node, file, true);
}

rp_err rp_config_replace(const rp_node *node, const char *path) {
    FILE *file = rp_replace_begin(path);
    const rp_err err = file ? rp_config_write_whole(node, file) : RP_OK;
    const rp_err replaced = rp_replace_end(file, path, err == RP_OK);
    return err == RP_OK ? replaced : err;
}

rp_err rp_config_text(rp_arena *arena, const rp_node *node, char **out) {
    sink count = {0};
    rp_err err = RP_OK;
    RP_TRY(write_to(node, &count));
    sink to = {0};
    RP_TRY(RP_ARENA_NEW(arena, count.bytes + 1, &to.text));
    RP_TRY(write_to(node, &to));
    *out = to.text;
fail:
    return err;
}

rp_err rp_config_text_without(rp_arena *arena, const rp_node *map, const char *key, char **out) {
    rp_node rest = *map;
    const rp_err err = RP_ARENA_NEW(arena, map->count + 1, &rest.items);
    if (err != RP_OK) {
        return err;
    }
    rest.count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->items[i]->key, key) != 0) {
            rest.items[rest.count++] = map->items[i];
        }
    }
    return rp_config_text(arena, &rest, out);
}

/* Indents by hand because the writer starts at column 0. */
rp_err rp_config_put(rp_arena *arena, FILE *file, const char *key, const rp_node *node) {
    char *text;
    if (rp_node_is_scalar(node)) {
        (void)fprintf(file, "%s: ", key);
        if (node->plain && !strchr(node->text, '\n')) {
            (void)fputs(rp_node_text(node), file);
        } else {
            rp_quote_put(file, rp_node_text(node));
        }
        (void)fputc('\n', file);
        return RP_OK;
    }
    const rp_err err = rp_config_text(arena, node, &text);
    if (err != RP_OK) {
        return err;
    }
    (void)fprintf(file, "%s:\n", key);
    for (char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        (void)fprintf(file, "  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    return RP_OK;
}
