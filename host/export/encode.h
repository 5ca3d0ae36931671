/* A graph as the bytes of an ONNX file. Private to the room.
 *
 * source  onnx.proto3; numbers of fields in onnx_read.proto */
#ifndef RP_EXPORT_ENCODE_H
#define RP_EXPORT_ENCODE_H

#include <stdio.h>

#include "export/graph.h"

/* Elements of initialisers that are in a file of their own. */
typedef struct {
    const char *location;   /* the file's name; NULL: elements are in the model's file */
    const uint64_t *offset; /* [tensor_count], in bytes */
} rp_export_external;

/* Bytes of the file. */
uint64_t rp_export_encoded_bytes(const rp_export_graph *graph, const rp_export_external *external);
/* Returns false after an error of the file. */
bool rp_export_encode(const rp_export_graph *graph, const rp_export_external *external, FILE *file);

#endif
