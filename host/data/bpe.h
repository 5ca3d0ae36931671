/* A byte-level BPE: tokens, merges and what surrounds them. Private to the room, except for what
 * rp_vocab shows of it.
 *
 * source  Sennrich, Haddow, Birch 2016; bytes as characters: Radford et al. 2019 (GPT-2). Equal id
 *         by id to Hugging Face's tokenizers 0.23, encode(text, add_special_tokens=False) */
#ifndef RP_DATA_BPE_H
#define RP_DATA_BPE_H

#include "base/arena.h"
#include "data/pair_map.h"
#include "data/words.h"

enum { RP_TOKENS_MAX = 1 << 20 }; /* ids are below it; `tokens` of a job has the same limit */
enum { RP_BPE_MERGES_MAX = 1 << 20, RP_BPE_CHAR_BYTES = 2 };

/* The pattern that GPT-2 splits a text by, and every tokeniser that states none. */
#define RP_BPE_PATTERN                                                                             \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Two tokens next to each other that become one. */
typedef struct {
    uint32_t left, right, merged; /* ids */
} rp_bpe_merge;

/* The bytes that a token stands for in a text. */
typedef struct {
    const char *at;
    uint32_t bytes;
} rp_bpe_text;

/* A token that is found in the text before the text is split. */
typedef struct {
    uint32_t id;
    bool strip_left, strip_right; /* it contains the white space before or after it */
    bool normalised;              /* searched after all tokens that are not */
    bool special;                 /* of no meaning here; kept for the file */
} rp_bpe_added;

typedef struct {
    uint32_t count;          /* ids are below it */
    uint32_t learnt;         /* ids below it are of the model; the rest are added tokens */
    const char *const *name; /* [count], as in tokenizer.json: each byte is a character */
    const rp_bpe_text *text; /* [count] */
    rp_words names;          /* [learnt] */
    uint32_t id_of_byte[256];
    const rp_bpe_merge *merge; /* [merges], the first one first */
    uint32_t merges;
    rp_pair_map ranks;         /* a pair's index in `merge` */
    const rp_bpe_added *added; /* [added_count], in the order of ids */
    uint32_t added_count;
    const uint32_t *sorted; /* [added_count]: indices of `added`, in the order of the texts */
    bool starts_added[256]; /* bytes that an added token begins with */
    const char *pattern;    /* Oniguruma's syntax, see bpe_split.h */
    bool whole_words;       /* a word that is a token is not made of merges: `ignore_merges` */
    bool prefix_space;      /* a text begins with a blank: `add_prefix_space` */
    bool nfc;               /* texts have to be in Unicode's normal form C */
} rp_bpe;

/* Writes the character that stands for a byte as 1 or 2 bytes of UTF-8. Returns their number. */
uint32_t rp_bpe_write_byte(uint8_t byte, char out[RP_BPE_CHAR_BYTES]);
/* Writes the bytes that a name stands for, at most strlen(name). Returns their number, -1: the name
 * has a character that stands for no byte. */
int64_t rp_bpe_read_name(const char *name, char *out);

/* Makes `names` from `name`. `path` is for messages. errors  MEMORY; FORMAT: a name twice */
rp_err rp_bpe_index_names(rp_arena *arena, rp_bpe *bpe, const char *path) RP_MUST_CHECK;
/* Makes text, id_of_byte, ranks, sorted and starts_added from the rest.
 * errors  MEMORY; FORMAT: tokens or merges that do not fit together */
rp_err rp_bpe_finish(rp_arena *arena, rp_bpe *bpe, const char *path) RP_MUST_CHECK;

#endif
