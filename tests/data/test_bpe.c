/* Byte-level BPE: ids equal to those of Hugging Face's tokenizers (tests/golden/bpe.py), texts
 * back, files that are refused. */
#include "fixture.h"

#include <jansson.h>

#include "data/bpe_encode.h"
#include "data/bpe_file.h"
#include "data/bpe_split.h"
#include "data/bpe_train.h"
#include "data/encode.h"
#include "data/unicode.h"

static const char *golden(const char *name) {
    static char path[4][512];
    static uint32_t turn;
    const char *root = getenv("RP_SOURCE_DIR");
    char *out = path[turn++ % 4];
    (void)snprintf(out, sizeof *path, "%s/tests/golden/bpe/%s", root ? root : ".", name);
    return out;
}

static const rp_bpe *read_golden(const char *name) {
    const rp_bpe *bpe;
    expect_ok(rp_bpe_read(&arena, golden(name), &bpe));
    return bpe;
}

static json_t *load(const char *path) {
    json_error_t problem;
    json_t *root = json_load_file(path, 0, &problem);
    assert_non_null(root);
    return root;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void expect_ids(rp_bpe_encoder *encoder, const char *text, const json_t *want) {
    const uint32_t *ids;
    uint64_t count;
    expect_ok(rp_bpe_encode(encoder, text, strlen(text), &ids, &count));
    if (count != json_array_size(want)) {
        fail_msg("'%s' has %zu tokens, expected %zu", text, (size_t)count, json_array_size(want));
    }
    for (size_t i = 0; i < count; i++) {
        if (ids[i] != json_integer_value(json_array_get(want, i))) {
            fail_msg("'%s': token %zu is %u, expected %lld", text, i, ids[i],
                     (long long)json_integer_value(json_array_get(want, i)));
        }
    }
}

static void expect_same_text(const rp_vocab *vocab, rp_bpe_encoder *encoder, const char *text) {
    char written[4096] = "";
    const uint32_t *ids;
    uint64_t count;
    FILE *file = fmemopen(written, sizeof written, "w");
    assert_non_null(file);
    expect_ok(rp_bpe_encode(encoder, text, strlen(text), &ids, &count));
    for (uint64_t i = 0; i < count; i++) {
        expect_ok(rp_text_write_token(vocab, ids[i], file));
    }
    assert_int_equal(fclose(file), 0);
    assert_string_equal(written, text);
}

/* Twice, because words are kept; `null`: the text is not in normal form C. */
static void equals_tokenizers(void **state) {
    (void)state;
    static const char *const names[] = {"gpt2", "roberta", "llama3", "qwen", "o200k"};
    json_t *cases = load(golden("cases.json"));
    const json_t *texts = json_object_get(cases, "texts");
    assert_true(json_array_size(texts) > 150);
    for (size_t n = 0; n < 5; n++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%s.json", names[n]);
        const rp_bpe *bpe = read_golden(name);
        const rp_vocab vocab = rp_vocab_of_bpe(bpe);
        const json_t *want = json_object_get(cases, names[n]);
        rp_bpe_encoder *encoder;
        expect_ok(rp_bpe_encoder_open(bpe, &encoder));
        for (size_t i = 0; i < 2 * json_array_size(texts); i++) {
            const size_t at = i % json_array_size(texts);
            const char *text = json_string_value(json_array_get(texts, at));
            const bool given = json_is_array(json_array_get(want, at));
            const bool normal = rp_unicode_nfc_bytes(text, strlen(text)) == strlen(text);
            assert_int_equal(given, !bpe->nfc || normal);
            if (given) {
                expect_ids(encoder, text, json_array_get(want, at));
                if (n != 1) { /* a blank before the text, and tokens with white space around */
                    expect_same_text(&vocab, encoder, bpe->nfc ? "plain" : text);
                }
            }
        }
        rp_bpe_encoder_close(&encoder);
    }
    json_decref(cases);
}

/* A word of any length takes memory in proportion to it, and time not much more. */
static void long_words(void **state) {
    (void)state;
    enum { BYTES = 1 << 20 };
    char *text;
    rp_bpe_encoder *encoder;
    const uint32_t *ids;
    uint64_t count;
    expect_ok(rp_arena_alloc(&arena, BYTES, 1, (void **)&text));
    expect_ok(rp_bpe_encoder_open(read_golden("llama3.json"), &encoder));
    for (uint32_t turn = 0; turn < 3; turn++) {
        memset(text, "a \n"[turn], BYTES);
        expect_ok(rp_bpe_encode(encoder, text, BYTES, &ids, &count));
        assert_true(count > 0 && count <= BYTES);
    }
    rp_bpe_encoder_close(&encoder);
}

/* A token may be a part of a character; its bytes are written as they are. */
static void parts_of_characters(void **state) {
    (void)state;
    const rp_vocab vocab = rp_vocab_of_bpe(read_golden("learnt.json"));
    char written[8] = "";
    int32_t *ids;
    uint32_t count;
    expect_ok(rp_text_encode(&arena, &vocab, "\xf0\x9f\xa6\x80", &ids, &count));
    assert_true(count > 1);
    FILE *file = fmemopen(written, sizeof written, "w");
    assert_non_null(file);
    expect_ok(rp_text_write_token(&vocab, (uint32_t)ids[0], file));
    const long length = ftell(file);
    assert_int_equal(fclose(file), 0);
    assert_true(length > 0 && length < 4);
    assert_memory_equal(written, "\xf0\x9f\xa6\x80", (size_t)length);
    expect_err(rp_text_encode(&arena, &vocab, "\xf0\x9f", &ids, &count), RP_ERR_USAGE);
    const rp_vocab composed = rp_vocab_of_bpe(read_golden("qwen.json"));
    expect_err(rp_text_encode(&arena, &composed, "cafe\xcc\x81", &ids, &count), RP_ERR_USAGE);
    expect_part("byte 4 of the text: expected a text in normal form C");
}

/* ---- learning -------------------------------------------------------------------------------- */

static void expect_same_bpe(const rp_bpe *got, const rp_bpe *want) {
    assert_int_equal(got->count, want->count);
    assert_int_equal(got->merges, want->merges);
    for (uint32_t i = 0; i < want->count; i++) {
        assert_string_equal(got->name[i], want->name[i]);
    }
    for (uint32_t i = 0; i < want->merges; i++) {
        assert_memory_equal(&got->merge[i], &want->merge[i], sizeof want->merge[i]);
    }
    assert_int_equal(got->added_count, want->added_count);
    assert_string_equal(got->pattern, want->pattern);
}

static bool stop_at_300(void *own, uint32_t tokens, uint32_t most) {
    (void)own;
    return tokens < 300 || most != 420;
}

static void learns_as_tokenizers(void **state) {
    (void)state;
    const char *files[] = {golden("train.txt")};
    const rp_bpe_watch watch = {.go_on = stop_at_300};
    rp_bpe_learnt learnt;
    const rp_bpe *got;
    expect_err(rp_bpe_train(files, 1, 420, in_folder("bpe.json"), &watch, &learnt),
               RP_ERR_INTERRUPTED);
    assert_int_not_equal(access(in_folder("bpe.json"), F_OK), 0);
    assert_int_not_equal(access(in_folder("bpe.json.tmp"), F_OK), 0);
    expect_ok(rp_bpe_train(files, 1, 420, in_folder("bpe.json"), &(rp_bpe_watch){0}, &learnt));
    assert_int_equal(learnt.tokens, 420);
    assert_int_equal(learnt.merges, 160);
    expect_ok(rp_bpe_read(&arena, in_folder("bpe.json"), &got));
    expect_same_bpe(got, read_golden("learnt.json"));
}

typedef struct {
    uint32_t calls, last; /* last: the call that says stop */
    uint32_t reading, merging, ready;
} counting;

static bool stop_at_last(void *own, uint32_t tokens, uint32_t most) {
    counting *c = own;
    assert_true(most == 300 || most == tokens);
    c->ready += most == tokens;
    c->reading += tokens == 0;
    c->merging += tokens > 0;
    return c->calls++ < c->last;
}

/* Each phase looks: reading 8 words, two loops over 5 different ones, and the merges. */
static void interrupted_anywhere(void **state) {
    (void)state;
    char path[512];
    const char *files[] = {path};
    rp_bpe_learnt learnt;
    rp_err err = RP_ERR_INTERRUPTED;
    counting c = {0};
    (void)snprintf(path, sizeof path, "%s", in_folder("a.txt"));
    write_text("a.txt", "so it goes\nso it went\n");
    for (uint32_t last = 0; err != RP_OK; last++) {
        c = (counting){.last = last};
        const rp_bpe_watch watch = {.go_on = stop_at_last, .own = &c};
        assert_int_not_equal(access(in_folder("bpe.json"), F_OK), 0);
        err = rp_bpe_train(files, 1, 300, in_folder("bpe.json"), &watch, &learnt);
        assert_int_equal(err, c.calls > last ? RP_ERR_INTERRUPTED : RP_OK);
    }
    assert_int_equal(c.reading, 8 + 2 * 5); /* so, it, goes, went, the end of a line */
    assert_true(c.merging > learnt.merges && learnt.merges > 0);
    assert_true(learnt.tokens < 300 && c.ready == 1); /* the last call, before the file is there */
}

/* Pairs that occur once stay two tokens. */
static void a_short_text(void **state) {
    (void)state;
    const char *files[] = {in_folder("a.txt"), in_folder("b.txt")};
    rp_bpe_learnt learnt;
    const rp_bpe *got;
    write_text("a.txt", "ab\n");
    write_text("b.txt", "abc");
    expect_ok(rp_bpe_train(files, 2, 1000, in_folder("bpe.json"), &(rp_bpe_watch){0}, &learnt));
    assert_int_equal(learnt.tokens, 261);
    expect_ok(rp_bpe_read(&arena, in_folder("bpe.json"), &got));
    assert_string_equal(got->name[260], "ab");
    write_file("b.txt", "ab\xff", 3);
    expect_err(rp_bpe_train(files, 2, 1000, in_folder("new.json"), &(rp_bpe_watch){0}, &learnt),
               RP_ERR_FORMAT);
    expect_part("b.txt:1: byte 2 of the file is 0xff");
}

/* Every allocation may fail: an error comes out, and no file. */
static void learning_without_memory(void **state) {
    (void)state;
    char path[512];
    const char *files[] = {path};
    rp_bpe_learnt learnt;
    bool failed = true;
    (void)snprintf(path, sizeof path, "%s", in_folder("a.txt"));
    write_text("a.txt", "so it goes, so it went\n");
    for (long n = 1; failed; n++) {
        rp_arena_fail_at(n);
        const rp_err err =
            rp_bpe_train(files, 1, 300, in_folder("bpe.json"), &(rp_bpe_watch){0}, &learnt);
        failed = rp_arena_has_failed();
        rp_arena_fail_at(0);
        assert_int_equal(err, failed ? RP_ERR_MEMORY : RP_OK);
        assert_int_equal(access(in_folder("bpe.json"), F_OK), failed ? -1 : 0);
        assert_true(n > 30 || failed);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads a golden file in which the value of a key, "model.type", is replaced; NULL: removed. */
static rp_err read_changed(const char *name, const char *key, const char *value) {
    const rp_bpe *bpe;
    char part[64];
    const char *dot = strchr(key, '.');
    json_t *root = load(golden(name));
    json_t *map = root;
    if (dot) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(dot - key), key);
        map = json_object_get(root, part);
        key = dot + 1;
    }
    assert_int_equal(value ? json_object_set_new(map, key, json_loads(value, JSON_DECODE_ANY, NULL))
                           : json_object_del(map, key),
                     0);
    char *text = json_dumps(root, 0);
    assert_non_null(text);
    json_decref(root);
    const rp_err err = rp_bpe_parse(&arena, text, strlen(text), "tok.json", &bpe);
    free(text);
    return err;
}

static void accepted_files(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"model.type", NULL},
        {"model.dropout", "0.0"},
        {"model.unk_token", "\"a\""},
        {"model.end_of_word_suffix", "\"\""},
        {"added_tokens", NULL},
        {"normalizer", NULL},
        {"decoder", "{}"},
        {"model.merges", "[]"},
        {"model.merges", "[\"#version: 0.2\", \"h e\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (read_changed("gpt2.json", cases[i][0], cases[i][1]) != RP_OK) {
            fail_msg("%s %s: %s", cases[i][0], cases[i][1] ? cases[i][1] : "", rp_err_message());
        }
    }
}

static void other_tokenisers_are_refused(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"model.type", "\"WordPiece\"", "`model.type`: expected BPE, found WordPiece"},
        {"model.type", "\"Unigram\"", "`model.type`: expected BPE, found Unigram"},
        {"model.dropout", "0.1", "`model.dropout`: expected null"},
        {"model.byte_fallback", "true", "`model.byte_fallback`: expected false"},
        {"model.continuing_subword_prefix", "\"##\"",
         "`continuing_subword_prefix`: expected null or an empty text, found ##"},
        {"model.end_of_word_suffix", "\"</w>\"", "`end_of_word_suffix`: expected null"},
        {"normalizer", "{\"type\": \"Lowercase\"}", "found Lowercase"},
        {"pre_tokenizer", "null", "`pre_tokenizer`: expected ByteLevel, or a Sequence of Split"},
        {"pre_tokenizer", "{\"type\": \"Metaspace\"}", "found Metaspace"},
        {"pre_tokenizer", "{\"type\": \"ByteLevel\", \"use_regex\": false}",
         "ByteLevel with `use_regex: true`"},
        {"pre_tokenizer",
         "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": "
         "{\"Regex\": \"a\"}, \"behavior\": \"Removed\", \"invert\": false}, {\"type\": "
         "\"ByteLevel\", \"use_regex\": false}]}",
         "`behavior` Isolated"},
        {"pre_tokenizer",
         "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": "
         "{\"Regex\": \"a\"}, \"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", "
         "\"use_regex\": true}]}",
         "`use_regex` and `add_prefix_space` false after a Split"},
        {"added_tokens",
         "[{\"id\": 420, \"content\": \"<|end|>\", \"single_word\": true, \"special\": true}]",
         "`added_tokens.single_word`: expected false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_err(read_changed("gpt2.json", cases[i][0], cases[i][1]), RP_ERR_FORMAT);
        expect_part(cases[i][2]);
        expect_part("tok.json: `");
        expect_part("write ids with it (np.save), then use `set: npy`");
    }
}

static void damaged_files_are_refused(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"model.vocab", "[]", "`model.vocab`: expected a map of 256 to 1048576 tokens"},
        {"model.vocab", "{\"a\": 0}", "`model.vocab`: expected a map of 256 to 1048576 tokens"},
        {"model.merges", "{}", "`model.merges`: expected a list"},
        {"model.merges", "[\"a\"]", "`model.merges`: entry 0: expected two tokens"},
        {"model.merges", "[\"h e\", [\"a\", 1]]", "`model.merges`: entry 1: expected two tokens"},
        {"model.merges", "[\"h e\", \"he zzz\"]", "`model.merges`: entry 1: expected two tokens"},
        {"model.merges", "[\"h e\", \"h e\"]", "entry 1 is also entry 0"},
        {"model.ignore_merges", "1", "`ignore_merges`: expected true or false"},
        {"added_tokens", "{}", "`added_tokens`: expected a list"},
        {"added_tokens", "[{\"id\": 420}]",
         "entry 0: expected a text of 1 to 1000 bytes as `content`"},
        {"added_tokens", "[{\"id\": 500, \"content\": \"x!\"}]", "'x!': expected id 420"},
        {"added_tokens", "[{\"id\": 9, \"content\": \"<end>\"}]", "'<end>': expected id 3"},
        {"added_tokens",
         "[{\"id\": 3, \"content\": \"<end>\"}, {\"id\": 3, \"content\": \"<end>\"}]",
         "`added_tokens`: '<end>': expected each token once"},
    };
    const rp_bpe *bpe;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_err(read_changed("gpt2.json", cases[i][0], cases[i][1]), RP_ERR_FORMAT);
        expect_part(cases[i][2]);
    }
    expect_err(read_changed("qwen.json", "added_tokens",
                            "[{\"id\": 420, \"content\": \"e\\u0301\", \"normalized\": true}]"),
               RP_ERR_FORMAT);
    expect_part("`added_tokens`: 'e\xcc\x81': expected a text in normal form C");
    expect_err(rp_bpe_parse(&arena, "[]", 2, "tok.json", &bpe), RP_ERR_FORMAT);
    expect_err(rp_bpe_parse(&arena, "{\"a\": ", 6, "tok.json", &bpe), RP_ERR_FORMAT);
    expect_part("tok.json:1: the file ends too early, expected a whole tokenizer.json of Hugging");
    expect_err(rp_bpe_read(&arena, in_folder("none.json"), &bpe), RP_ERR_IO);
}

/* All 256 bytes have a token, and all tokens consist of bytes. */
static void alphabets(void **state) {
    (void)state;
    const rp_bpe *bpe;
    char *text;
    for (uint32_t i = 0; i < 2; i++) {
        json_t *root = load(golden("learnt.json"));
        json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
        const char *name = i == 0 ? "\xc4\x80" : "~"; /* byte 0, and one that is itself */
        const json_int_t id = json_integer_value(json_object_get(vocab, name));
        assert_int_equal(json_object_del(vocab, name), 0);
        assert_int_equal(json_object_set_new(vocab, "\xe2\x96\x81", json_integer(id)), 0);
        assert_non_null(text = json_dumps(root, 0));
        json_decref(root);
        expect_err(rp_bpe_parse(&arena, text, strlen(text), "tok.json", &bpe), RP_ERR_FORMAT);
        expect_part(i == 0 ? "byte 0x00 has no token" : "byte 0x7e has no token");
        free(text);
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        char name[RP_BPE_CHAR_BYTES + 1] = "";
        char back[RP_BPE_CHAR_BYTES];
        (void)rp_bpe_write_byte((uint8_t)byte, name);
        assert_int_equal(rp_bpe_read_name(name, back), 1);
        assert_int_equal((uint8_t)back[0], byte);
    }
    char back[8];
    assert_int_equal(rp_bpe_read_name("a\xc5\x83", back), 2); /* U+0143, the last one */
    assert_int_equal((uint8_t)back[1], 0xad);
    assert_int_equal(rp_bpe_read_name("a\xc5\x84", back), -1);
    assert_int_equal(rp_bpe_read_name("a b", back), -1);
}

/* ---- patterns -------------------------------------------------------------------------------- */

static void patterns(void **state) {
    (void)state;
    static const char *const good[] = {"a",
                                       "(a|b)+c?",
                                       "[^\\r\\n\\p{L}]++",
                                       "\\p{N}{1,3}|\\d{2,}x",
                                       "(?>a)|(?<!b)a|(?<=b)c|(?i:x)",
                                       "\\x{1f600}|\\?[\\]\\-z]"};
    static const char *const bad[] = {
        "a.",       "^a",      "a$",    "\\w",   "\\b",  "[[:alpha:]]", "[a&&b]", "(?m:a)",
        "(?P<n>a)", "a{1,3}+", "a{,3}", "a{3}?", "[a",   "\\",          "a]",     "[\\S]",
        "\\p{L",    "\\pL",    "(a",    "a)",    "*a",   "a*",          "",       "\\p{Nothing}",
        "\\k<a>",   "\\1",     "[]a]",  "(?i)a", "\\Aa", "(?~a)"};
    rp_bpe_splitter *splitter;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (rp_bpe_splitter_open(good[i], "test", &splitter) != RP_OK) {
            fail_msg("%s: %s", good[i], rp_err_message());
        }
        rp_bpe_splitter_close(&splitter);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (rp_bpe_splitter_open(bad[i], "test", &splitter) != RP_ERR_FORMAT) {
            fail_msg("%s is accepted", bad[i]);
        }
        expect_part("test: ");
    }
}

/* What is between two matches is a word; a pattern that never ends is stopped. */
static void words_of_a_pattern(void **state) {
    (void)state;
    static const char text[] = "xxab1abyy";
    static const size_t want[] = {2, 2, 1, 2, 2};
    static char many[41];
    rp_bpe_splitter *splitter;
    size_t length;
    size_t at = 0;
    expect_ok(rp_bpe_splitter_open("ab", "test", &splitter));
    for (size_t i = 0; i < 5; i++, at += length) {
        expect_ok(rp_bpe_split(splitter, text, sizeof text - 1, at, &length));
        assert_int_equal(length, want[i]);
    }
    assert_int_equal(at, sizeof text - 1);
    rp_bpe_splitter_close(&splitter);
    memset(many, 'a', sizeof many - 1);
    memcpy(many + sizeof many - 3, "cb", 2);
    expect_ok(rp_bpe_splitter_open("(?:(?:a|a)+)+b", "test", &splitter));
    expect_err(rp_bpe_split(splitter, many, sizeof many - 1, 0, &length), RP_ERR_LIMIT);
    expect_part("the pattern that splits the text fails at byte 0 of it: match limit exceeded");
    rp_bpe_splitter_close(&splitter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equals_tokenizers, setup, teardown),
        cmocka_unit_test_setup_teardown(long_words, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_characters, setup, teardown),
        cmocka_unit_test_setup_teardown(learns_as_tokenizers, setup, teardown),
        cmocka_unit_test_setup_teardown(interrupted_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(a_short_text, setup, teardown),
        cmocka_unit_test_setup_teardown(learning_without_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(accepted_files, setup, teardown),
        cmocka_unit_test_setup_teardown(other_tokenisers_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(alphabets, setup, teardown),
        cmocka_unit_test(patterns),
        cmocka_unit_test(words_of_a_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
