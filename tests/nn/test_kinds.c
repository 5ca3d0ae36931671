/* What every kind of layer in the registry has to keep. */
#include "expect.h"

#include "nn/layer.h"

enum { TEXT_BYTES = 1024 };

/* A value that the key takes in the kind; some keys have other values in one kind. */
static const char *value_of(const char *kind, const char *key) {
    static const char *const values[][2] = {{"out", "3"},
                                            {"bias", "true"},
                                            {"kernel", "2"},
                                            {"stride", "1"},
                                            {"pad", "0"},
                                            {"dilation", "1"},
                                            {"ceil_mode", "true"},
                                            {"count_include_pad", "false"},
                                            {"groups", "1"},
                                            {"deferred", "true"},
                                            {"momentum", "0"},
                                            {"count", "tokens"},
                                            {"padding", "0"},
                                            {"length", "3"},
                                            {"approximate", "tanh"},
                                            {"shared", "true"},
                                            {"mode", "max"},
                                            {"layout", "in-out"},
                                            {"lora", "{rank: 2}"},
                                            {"dims", "1"},
                                            {"heads", "2"},
                                            {"kv_heads", "1"},
                                            {"causal", "true"},
                                            {"rotary", "{base: 100}"},
                                            {"hidden", "3"},
                                            {"bidirectional", "true"},
                                            {"reverse", "false"},
                                            {"output", "last"},
                                            {"lengths", "true"},
                                            {"align_corners", "false"},
                                            {"output_pad", "0"},
                                            {"axis", "1"},
                                            {"normalise", "true"},
                                            {"start", "1"},
                                            {"end", "2"},
                                            {"axes", "[0]"},
                                            {"keep", "true"},
                                            {"perm", "[1, 0]"},
                                            {"shape", "[2, 3]"},
                                            {"pads", "[1, 0]"},
                                            {"indices", "[1, 0]"},
                                            {"transpose", "true"},
                                            {"min", "-1"},
                                            {NULL, NULL}};
    if (strcmp(kind, "upsample") == 0 && strcmp(key, "align_corners") != 0) {
        return strcmp(key, "scale") == 0 ? "2" : "bilinear";
    }
    for (size_t i = 0; values[i][0]; i++) {
        if (strcmp(values[i][0], key) == 0) {
            return values[i][1];
        }
    }
    return "0.5";
}

/* The keys that `kind` says it has, with values; `from` is the model's. Returns their count. */
static uint32_t write_keys(const rp_layer_kind *kind, char text[TEXT_BYTES]) {
    char keys[TEXT_BYTES];
    uint32_t count = 0;
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "kind: %s\n", kind->name);
    (void)snprintf(keys, sizeof keys, "%s", kind->keys ? kind->keys : "");
    for (char *at = NULL, *key = strtok_r(keys, ", ", &at); key; key = strtok_r(NULL, ", ", &at)) {
        if (strcmp(key, "from") != 0) {
            used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s: %s\n", key,
                                     value_of(kind->name, key));
            count++;
        }
    }
    return count;
}

/* Parses the text as `kind` does and asks whether all of it was read. */
static rp_err read_all(const rp_layer_kind *kind, const char *text) {
    rp_layer layer = {.kind = kind, .name = "l"};
    rp_arena arena;
    rp_node *keys;
    rp_arena_init(&arena, "keys", 0);
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "keys", &keys));
    assert_non_null(rp_node_find(keys, "kind"));
    expect_ok(rp_arena_alloc(&arena, 1, kind->spec_bytes + 1, &layer.spec));
    rp_err err = kind->parse(&layer, keys, &(rp_model_data){.classes = 10, .tokens = 10});
    if (err == RP_OK) {
        err = rp_node_done(keys);
    }
    rp_arena_finish(&arena);
    return err;
}

/* The manual is written from `keys`. */
static void keys_are_those_that_are_read(void **state) {
    (void)state;
    for (uint32_t i = 0; rp_layer_kinds[i]; i++) {
        char text[TEXT_BYTES];
        const uint32_t count = write_keys(rp_layer_kinds[i], text);
        if (read_all(rp_layer_kinds[i], text) != RP_OK) {
            fail_msg("%s: %s", rp_layer_kinds[i]->name, rp_err_message());
        }
        (void)strncat(text, "xyzzy-plugh: 1\n", TEXT_BYTES - strlen(text) - 1);
        expect_err(read_all(rp_layer_kinds[i], text), RP_ERR_USAGE);
        const char *known = strstr(rp_err_message(), "known here: ");
        assert_non_null(known);
        uint32_t words = 1;
        for (const char *at = known + strlen("known here: "); *at; at++) {
            words += *at == ' ';
        }
        if (words != count + 1) { /* and `kind` */
            fail_msg("%s says it has the keys '%s', reads: %s", rp_layer_kinds[i]->name,
                     rp_layer_kinds[i]->keys, known);
        }
    }
}

static void found_by_name(void **state) {
    (void)state;
    for (uint32_t i = 0; rp_layer_kinds[i]; i++) {
        assert_ptr_equal(rp_layer_find(rp_layer_kinds[i]->name), rp_layer_kinds[i]);
        assert_true(rp_layer_kinds[i]->source && rp_layer_kinds[i]->source[0]);
    }
    assert_null(rp_layer_find("xyzzy"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_those_that_are_read),
        cmocka_unit_test(found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
