/* A byte-level BPE as tokenizer.json of Hugging Face's tokenizers. Private to the room.
 *
 *   {"added_tokens": [{"id": 0, "content": "<pad>", "single_word": false, "lstrip": false,
 *                      "rstrip": false, "normalized": false, "special": true}, ...],
 *    "normalizer": null,
 *    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
 *    "model": {"type": "BPE", "ignore_merges": false, "vocab": {"!": 1, ...},
 *              "merges": ["a b", ...]}}
 *
 * `normalizer` may be {"type": "NFC"}. `pre_tokenizer` may also be a Sequence of a Split with a
 * Regex, Isolated, and a ByteLevel without `use_regex`. A merge may also be ["a", "b"]. What
 * changes no id is ignored: `decoder`, `post_processor`, `truncation`, `padding`. Everything else
 * is refused. */
#ifndef RP_DATA_BPE_FILE_H
#define RP_DATA_BPE_FILE_H

#include <jansson.h>

#include "data/bpe.h"

/* Reads a file of at most 128 MiB. errors  IO; FORMAT naming file and key; LIMIT; MEMORY */
rp_err rp_bpe_read(rp_arena *arena, const char *path, const rp_bpe **out) RP_MUST_CHECK;
/* Reads the bytes of a file. errors  as rp_bpe_read() */
rp_err rp_bpe_parse(rp_arena *arena, const char *bytes, size_t count, const char *path,
                    const rp_bpe **out) RP_MUST_CHECK;
/* Reads a JSON value, which is borrowed during the call. errors  as rp_bpe_read() */
rp_err rp_bpe_from_json(rp_arena *arena, const json_t *root, const char *path,
                        const rp_bpe **out) RP_MUST_CHECK;

/* A new JSON value. NULL: memory is short */
json_t *rp_bpe_to_json(const rp_bpe *bpe);

#endif
