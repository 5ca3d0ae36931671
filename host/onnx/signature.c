#include "onnx/signature.h"

#include <stdio.h>
#include <string.h>

static const char again[] = "export again with ringpipe_export.py, or torch.onnx.export(..., "
                            "dynamo=True, optimize=False)";
static const char mean_name[] = ".running_mean";

/* Names that are missing, for one message. */
typedef struct {
    uint32_t count;
    char text[300];
} missing;

/* What a list of parameters is compared with, and what is missing. */
typedef struct {
    rp_onnx_symbols have;  /* names of the file's initialisers */
    rp_onnx_symbols norms; /* batch normalisations without running statistics */
    missing params, folded;
} comparison;

bool rp_onnx_is_listed(const rp_onnx_model *model, const char *role, const char *name) {
    char line[RP_ONNX_NAME_MAX + 32];
    (void)snprintf(line, sizeof line, ": %s target='%s'", role, name);
    return model->signature &&
           memmem(model->signature, model->signature_bytes, line, strlen(line)) != NULL;
}

static void add_missing(missing *m, const char *name, size_t length) {
    const size_t used = strlen(m->text);
    if (m->count++ < 3) {
        (void)snprintf(m->text + used, sizeof m->text - used, "%s%.*s", used > 0 ? ", " : "",
                       (int)(length < 80 ? length : 80), name);
    } else if (m->count == 4) {
        (void)snprintf(m->text + used, sizeof m->text - used, ", ...");
    }
}

static bool is_in(const rp_onnx_symbols *names, const char *name) {
    return rp_onnx_symbols_find(names, name) != UINT32_MAX;
}

/* Length of the module's name if it is that of running statistics; 0: it is not. */
static size_t norm_length(const char *name) {
    const size_t length = strlen(name);
    const size_t end = strlen(mean_name);
    return length > end && strcmp(name + length - end, mean_name) == 0 ? length - end : 0;
}

/* First pass: which batch normalisations are missing. */
static rp_err add_norm(comparison *c, const char *name) {
    const size_t length = is_in(&c->have, name) ? 0 : norm_length(name);
    char module[RP_ONNX_NAME_MAX];
    uint32_t ignored;
    if (length == 0 || length >= sizeof module) {
        return RP_OK;
    }
    memcpy(module, name, length);
    module[length] = '\0';
    add_missing(&c->folded, name, length);
    return rp_onnx_symbols_add(&c->norms, module, &ignored);
}

/* Second pass: all other missing parameters. */
static void add_param(comparison *c, const char *name) {
    const char *dot = strrchr(name, '.');
    char module[RP_ONNX_NAME_MAX] = "";
    if (dot && (size_t)(dot - name) < sizeof module) {
        memcpy(module, name, (size_t)(dot - name));
    }
    if (!is_in(&c->have, name) && !is_in(&c->norms, module)) {
        add_missing(&c->params, name, strlen(name));
    }
}

static rp_err new_comparison(const rp_onnx_model *model, rp_arena *arena, comparison *c) {
    rp_err err = RP_OK;
    uint32_t ignored;
    *c = (comparison){0};
    rp_onnx_symbols_init(&c->have, arena);
    rp_onnx_symbols_init(&c->norms, arena);
    for (uint32_t i = 0; i < model->tensor_count && err == RP_OK; i++) {
        err = rp_onnx_symbols_add(&c->have, model->tensor[i].name, &ignored);
    }
    return err;
}

/* `what` ends the clause that begins with a number: "are not in the file". */
static rp_err add_results(const comparison *c, const rp_onnx_folding *folding, const char *what,
                          rp_onnx_findings *findings, rp_onnx_findings *notes) {
    rp_onnx_findings *to = folding->accept ? notes : findings;
    rp_err err = RP_OK;
    if (c->folded.count > 0) {
        RP_TRY(rp_onnx_add_finding(
            to, folding->accept ? "assumed" : "parameter",
            "%u batch normalisations were folded into convolutions (%s)%s%s%s", c->folded.count,
            c->folded.text, folding->accept ? "; what is left is trained" : ": ",
            folding->accept ? "" : again,
            folding->accept ? "" : "; --accept-folded trains what is left"));
    }
    if (c->params.count > 0 && c->params.count <= folding->tied) {
        RP_TRY(
            rp_onnx_add_finding(notes, "assumed",
                                "%s shares the tensor of another layer, whose name it has in the "
                                "weights file",
                                c->params.text));
    } else if (c->params.count > 0) {
        RP_TRY(rp_onnx_add_finding(to, folding->accept ? "assumed" : "parameter",
                                   "%u parameters %s (%s): the exporter folded them, or merged "
                                   "equal values%s%s",
                                   c->params.count, what, c->params.text,
                                   folding->accept ? "" : ": ", folding->accept ? "" : again));
    }
fail:
    return err;
}

/* ---- the signature of torch.export ----------------------------------------------------------- */

/* The target of a line like "p_fc_weight: PARAMETER target='fc.weight'"; false: it has none. */
static bool read_line(const char *line, size_t length, char name[RP_ONNX_NAME_MAX],
                      bool *parameter) {
    static const char key[] = " target='";
    const char *target = memmem(line, length, key, strlen(key));
    *parameter = memmem(line, length, ": PARAMETER ", 12) != NULL;
    if (!target) {
        return false;
    }
    target += strlen(key);
    const char *end = memchr(target, '\'', (size_t)(line + length - target));
    const size_t bytes = end ? (size_t)(end - target) : 0;
    if (bytes == 0 || bytes >= RP_ONNX_NAME_MAX) {
        return false;
    }
    memcpy(name, target, bytes);
    name[bytes] = '\0';
    return true;
}

static rp_err read_signature(const rp_onnx_model *model, comparison *c, bool params) {
    rp_err err = RP_OK;
    for (size_t at = 0; at < model->signature_bytes && err == RP_OK;) {
        const char *line = model->signature + at;
        const char *end = memchr(line, '\n', model->signature_bytes - at);
        const size_t length = end ? (size_t)(end - line) : model->signature_bytes - at;
        char name[RP_ONNX_NAME_MAX];
        bool parameter;
        const bool found = read_line(line, length, name, &parameter);
        if (found && !params) {
            err = add_norm(c, name);
        } else if (found && parameter) {
            add_param(c, name);
        }
        at += length + 1;
    }
    return err;
}

rp_err rp_onnx_check_signature(const rp_onnx_model *model, const rp_onnx_folding *folding,
                               rp_onnx_findings *findings, rp_onnx_findings *notes) {
    comparison c;
    rp_err err;
    RP_TRY(new_comparison(model, findings->arena, &c));
    RP_TRY(read_signature(model, &c, false));
    RP_TRY(read_signature(model, &c, true));
    RP_TRY(add_results(&c, folding, "are not in the file", findings, notes));
fail:
    return err;
}

/* ---- a state_dict ---------------------------------------------------------------------------- */

rp_err rp_onnx_check_state(const rp_onnx_model *model, const rp_onnx_symbols *names,
                           const char *file, const rp_onnx_folding *folding,
                           rp_onnx_findings *findings, rp_onnx_findings *notes) {
    comparison c;
    char *what;
    rp_err err;
    RP_TRY(new_comparison(model, findings->arena, &c));
    RP_TRY(rp_arena_printf(findings->arena, &what, "of %s are not in the file", file));
    for (uint32_t i = 0; i < names->count; i++) {
        RP_TRY(add_norm(&c, names->name[i]));
    }
    for (uint32_t i = 0; i < names->count; i++) {
        add_param(&c, names->name[i]);
    }
    RP_TRY(add_results(&c, folding, what, findings, notes));
fail:
    return err;
}
