#include "onnx/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rp_onnx_findings_init(rp_onnx_findings *findings, rp_arena *arena) {
    *findings = (rp_onnx_findings){.arena = arena};
}

/* Makes room for one more. */
static rp_err make_room(rp_onnx_findings *findings) {
    const uint32_t room = 2 * findings->room + 8;
    rp_onnx_finding *grown;
    if (findings->count < findings->room) {
        return RP_OK;
    }
    const rp_err err = RP_ARENA_NEW(findings->arena, room, &grown);
    if (err == RP_OK) {
        if (findings->count > 0) {
            memcpy(grown, findings->item, findings->count * sizeof *grown);
        }
        findings->item = grown;
        findings->room = room;
    }
    return err;
}

/* Adds a finding with a text in the arena. */
static rp_err add(rp_onnx_findings *findings, const char *topic, const char *op, const char *text) {
    char *copy;
    if (findings->count == RP_ONNX_FINDINGS_KEPT) {
        findings->lost++;
        return RP_OK;
    }
    rp_err err;
    RP_TRY(make_room(findings));
    RP_TRY(rp_arena_string(findings->arena, text, &copy));
    findings->item[findings->count++] =
        (rp_onnx_finding){.topic = topic, .op = op, .text = copy, .nodes = 1};
fail:
    return err;
}

rp_err rp_onnx_add_finding(rp_onnx_findings *findings, const char *topic, const char *format, ...) {
    char text[RP_ERR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add(findings, topic, NULL, text);
}

rp_err rp_onnx_add_node_finding(rp_onnx_findings *findings, const char *op, const char *node,
                                const char *output, const char *reason) {
    char text[RP_ERR_MESSAGE_BYTES];
    const size_t length = strlen(reason);
    for (uint32_t i = 0; i < findings->count; i++) {
        rp_onnx_finding *have = &findings->item[i];
        if (have->op && strcmp(have->op, op) == 0 && strncmp(have->text, reason, length) == 0 &&
            strncmp(have->text + length, ": node ", strlen(": node ")) == 0) {
            have->nodes++;
            return RP_OK;
        }
    }
    (void)snprintf(text, sizeof text, "%s: node %s (output %s)", reason, node, output);
    return add(findings, "operator", op, text);
}
