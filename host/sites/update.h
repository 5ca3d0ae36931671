/* An update leaves a site instead of weights: the coded differences from the given weights, with
 * error feedback. A file in the safetensors format has, for each tensor that leaves the site,
 *
 *   U8 [bytes]   the coded difference (codec/delta.h)
 *   F32 [shape]  running statistics: their values, because a variance must not become negative
 *
 * and in its metadata `codec`, as --delta gives it, and `in`, the digest of the given weights. With
 * x: given, y: trained, C: the codec, each round of a site does
 *
 *   e = e + (y - x);  sends C(e);  e = e - C(e)
 *
 * and whoever has x sets y' = x + C(e). e starts as zeros and is a state of the site.
 * source  Seide et al. 2014 (1-bit SGD); Karimireddy et al. 2019 (1901.09847) */
#ifndef RP_SITES_UPDATE_H
#define RP_SITES_UPDATE_H

#include "nn/model.h"
#include "sites/weights.h"

#define RP_UPDATE_ERROR "optim.error." /* before a name: its e, in start.safetensors and states */

/* The two sides have the same. */
typedef struct {
    const rp_round_rules *rules; /* with a delta */
    const rp_model *model;       /* tells which tensors are running statistics */
    const char *given;           /* file of the weights of the round */
    const char *digest;          /* of that file */
} rp_update_facts;

typedef struct {
    const char *trained; /* weights file or checkpoint of the run */
    const char *start;   /* start.safetensors, with e of the round before */
    const char *update;  /* is written */
    const char *errors;  /* is written: e after the round, under the names of the tensors */
} rp_update_files;

/* Writes the update and the errors. out->norm: as rp_site_write_weights() gives it.
 * errors  IO; FORMAT: a file is damaged, a tensor has another shape or a value that is not finite
 */
rp_err rp_update_write(rp_arena *arena, const rp_update_facts *facts, const rp_update_files *files,
                       rp_site_difference *out) RP_MUST_CHECK;

/* Checks every byte of an update, and writes the weights y' in the form of the given ones to `to`.
 * errors  IO; FORMAT: the update is damaged, of other weights or of another codec */
rp_err rp_update_read(rp_arena *arena, const rp_update_facts *facts, const char *update,
                      const char *to) RP_MUST_CHECK;

/* Bytes of an update's tensors, or without a delta of the weights. */
uint64_t rp_update_bytes(const rp_round_rules *rules, const rp_model *model);

#endif
