/* Tokens of texts and their ids: bytes, characters, words, parts of words (BPE). Private to the
 * room, except for the structs and rp_tokens_names_file().
 *
 * source  words: Python's `\w+|[^\w\s]` or str.split(); the most frequent words as torchtext's
 *         build_vocab_from_iterator(), but ties by the bytes of the word */
#ifndef RP_DATA_VOCAB_H
#define RP_DATA_VOCAB_H

#include "base/arena.h"
#include "base/config.h"
#include "data/bpe.h"
#include "data/words.h"

typedef enum {
    RP_TOKENS_IDS, /* numbers of a file, without a text */
    RP_TOKENS_BYTES,
    RP_TOKENS_CHARS,
    RP_TOKENS_WORDS,
    RP_TOKENS_BPE,
    RP_TOKENS_KINDS
} rp_token_kind;
extern const char *const rp_token_kinds[RP_TOKENS_KINDS + 1]; /* "ids", "bytes" ..., NULL */
extern const char *const rp_token_splits[];                   /* "punctuation", "space", NULL */

/* Ids that are not of a token, in a vocabulary that has them. */
enum { RP_TOKEN_PADDING, RP_TOKEN_UNKNOWN, RP_TOKEN_BEGIN, RP_TOKEN_END, RP_TOKENS_SPECIAL };
extern const char *const rp_token_specials[RP_TOKENS_SPECIAL]; /* "<padding>" ... */

/* How a text becomes tokens. */
typedef struct {
    rp_token_kind kind;
    bool lower;       /* WORDS: in lower case */
    bool by_space;    /* WORDS: only white space separates; otherwise punctuation is a word, too */
    bool nfc;         /* BPE: texts have to be in normal form C */
    const char *file; /* BPE: its tokenizer.json, borrowed; NULL: it is in a description */
} rp_token_rules;

typedef struct {
    rp_token_rules rules;
    uint32_t special;        /* ids below it are not of a token: 0 or RP_TOKENS_SPECIAL */
    uint32_t count;          /* ids are below it */
    const char *const *name; /* [count] in UTF-8, "<padding>" etc. first; NULL: bytes */
    uint32_t *id_of;         /* CHARS: [RP_UNICODE_END], 1 + id of a character; 0: it has none */
    rp_words words;          /* WORDS: [count - special] */
    const rp_bpe *bpe;       /* BPE, with the same names */
} rp_vocab;

/* Does a value of `tokens` name a tokenizer.json? Otherwise it is a kind of token. */
bool rp_tokens_names_file(const char *text);
/* Reads `tokens`: a kind, or the path of a tokenizer.json; and for words `vocab` (*most: ids at
 * most), `lower` and `split`. errors USAGE */
rp_err rp_token_rules_read(rp_node *keys, rp_token_rules *out, uint32_t *most) RP_MUST_CHECK;

/* Texts whose tokens are characters or words are split before they have ids. The text that is to be
 * split: the same, or its lower case in `arena`. errors MEMORY */
rp_err rp_tokens_prepare(rp_arena *arena, const rp_token_rules *rules, const char *text,
                         size_t bytes, const char **out, size_t *out_bytes) RP_MUST_CHECK;
/* Takes the next token from *at; false: the text ends. Unless tokens are bytes, the text is valid
 * UTF-8. */
bool rp_tokens_next(const rp_token_rules *rules, const char **at, const char *end,
                    const char **token, size_t *bytes);
/* Moves *at after the next `most` tokens, or to `end` if there are fewer. Returns their number.
 * Lower case does not change it. */
uint64_t rp_tokens_skip(const rp_token_rules *rules, const char **at, const char *end,
                        uint64_t most);
/* Number of tokens in a text. */
uint64_t rp_tokens_count(const rp_token_rules *rules, const char *text, size_t bytes);

/* Learns a vocabulary from texts, which have to exist until it is finished. */
typedef struct {
    rp_arena *scratch;
    rp_token_rules rules;
    rp_words words; /* WORDS, with their counts */
    bool *has_char; /* CHARS: [RP_UNICODE_END] */
} rp_vocab_learner;
/* The learner is stored in `scratch`. errors MEMORY */
rp_err rp_vocab_begin(rp_arena *scratch, const rp_token_rules *rules,
                      rp_vocab_learner *out) RP_MUST_CHECK;
/* errors  MEMORY; LIMIT */
rp_err rp_vocab_learn(rp_vocab_learner *learner, const char *text, size_t bytes) RP_MUST_CHECK;
/* Makes the vocabulary: characters in order, or the most frequent words. `special`: as in rp_vocab.
 * `most`: ids at most, for words. errors  MEMORY */
rp_err rp_vocab_finish(rp_arena *arena, const rp_vocab_learner *learner, uint32_t special,
                       uint32_t most, rp_vocab *out) RP_MUST_CHECK;
/* Makes a vocabulary of bytes, characters or words from its names, which are borrowed. errors
 * MEMORY; FORMAT: not names of such a vocabulary, or one of them twice */
rp_err rp_vocab_restore(rp_arena *arena, const rp_token_rules *rules, uint32_t special,
                        const char *const *name, uint32_t count, rp_vocab *out) RP_MUST_CHECK;

/* Reads the tokenizer.json of the rules, and completes these. errors  as rp_bpe_read() */
rp_err rp_vocab_read_bpe(rp_arena *arena, rp_token_rules *rules, rp_vocab *out) RP_MUST_CHECK;
/* The vocabulary of a byte-level BPE, which is borrowed. It has no special ids of its own. */
rp_vocab rp_vocab_of_bpe(const rp_bpe *bpe);

/* Checks that the vocabulary begins with the four special tokens, which `set: pairs` marks
 * sentences with. `where`: a file, or a file and a key, for the message. errors  FORMAT */
rp_err rp_vocab_check_sentences(const rp_vocab *vocab, const char *where) RP_MUST_CHECK;

/* Id of a token; `count`: it has none, and the vocabulary has no id for unknown tokens. */
uint32_t rp_vocab_find(const rp_vocab *vocab, const char *token, size_t bytes);

#endif
