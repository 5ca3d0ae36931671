/* What an import has to say: reasons to refuse, all of one pass together, and notes. */
#ifndef RP_ONNX_FINDINGS_H
#define RP_ONNX_FINDINGS_H

#include "base/arena.h"

enum { RP_ONNX_FINDINGS_SHOWN = 20, RP_ONNX_FINDINGS_KEPT = 4096 };

typedef struct {
    const char *topic; /* "operator", "parameter", "input", "file", ... */
    const char *op;    /* of topic "operator" */
    const char *text;
    uint32_t nodes; /* how many nodes it is about; the text names the first */
} rp_onnx_finding;

typedef struct {
    rp_arena *arena;
    uint32_t count, room; /* count: those that are kept */
    uint32_t lost;        /* and those that are not */
    rp_onnx_finding *item;
} rp_onnx_findings;

void rp_onnx_findings_init(rp_onnx_findings *findings, rp_arena *arena);
/* Adds one finding. errors MEMORY */
rp_err rp_onnx_add_finding(rp_onnx_findings *findings, const char *topic, const char *format,
                           ...) RP_MUST_CHECK RP_PRINTF(3, 4);
/* Adds a node that cannot be trained; nodes with one operator and reason are one finding. */
rp_err rp_onnx_add_node_finding(rp_onnx_findings *findings, const char *op, const char *node,
                                const char *output, const char *reason) RP_MUST_CHECK;

#endif
