#include "codec/codec.h"
#include "expect.h"

static void names_there_and_back(void **state) {
    (void)state;
    static const char *const names[RP_CODECS] = {
        "f32", "f16", "bf16", "int8", "int4", "uint8", "topk-0.1", "topk-0.03", "topk-0.01"};
    for (unsigned codec = 0; codec < RP_CODECS; codec++) {
        assert_string_equal(rp_codec_name((rp_codec)codec), names[codec]);
        assert_int_equal(rp_codec_find(names[codec]), codec);
    }
    assert_int_equal(rp_codec_find("float16"), RP_CODECS);
    assert_string_equal(rp_codec_name(RP_CODECS), "unknown");
}

static void a_sample_has_its_bytes(void **state) {
    (void)state;
    static const struct {
        size_t count, bytes[RP_CODECS];
    } cases[] = {
        {1, {4, 2, 2, 5, 6, 1, 3, 3, 3}},
        {127, {508, 254, 254, 131, 74, 127, 39, 12, 6}},
        {128, {512, 256, 256, 132, 74, 128, 39, 12, 6}},
        {129, {516, 258, 258, 137, 80, 129, 39, 12, 6}},
        {3136,
         {12544, 6272, 6272, 3136 + 25 * 4, 1568 + 49 * 5, 3136, 3 * (12 * 26 + 7),
          3 * (12 * 8 + 2), 3 * (12 * 3 + 1)}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned codec = 0; codec < RP_CODECS; codec++) {
            assert_int_equal(rp_codec_bytes((rp_codec)codec, cases[i].count),
                             cases[i].bytes[codec]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_there_and_back),
        cmocka_unit_test(a_sample_has_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
