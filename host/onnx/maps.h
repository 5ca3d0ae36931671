/* Mapped files: the model's, and those of its external data. */
#ifndef RP_ONNX_MAPS_H
#define RP_ONNX_MAPS_H

#include "base/arena.h"

enum { RP_ONNX_FILES_MAX = 256 };

typedef struct rp_onnx_maps rp_onnx_maps;

/* An empty set. `model` is the path of the model's file, next to which its external data are; NULL:
 * there is no folder, and so no external data. errors MEMORY */
rp_err rp_onnx_maps_new(rp_arena *arena, const char *model, rp_onnx_maps **out) RP_MUST_CHECK;
/* Maps the model's file itself. errors IO */
rp_err rp_onnx_maps_model(rp_onnx_maps *maps, const uint8_t **bytes, size_t *count) RP_MUST_CHECK;
/* Maps a file of external data. `location` is a relative path that stays inside of the model's
 * folder: no part of it is "..", and none is a symbolic link. `tensor` is for messages.
 * errors  FORMAT, IO, LIMIT naming the model's file and the tensor */
rp_err rp_onnx_maps_external(rp_onnx_maps *maps, const char *tensor, const char *location,
                             const uint8_t **bytes, size_t *count) RP_MUST_CHECK;
void rp_onnx_maps_close(rp_onnx_maps *maps); /* `maps` may be NULL */

#endif
