/* tokenizer.json: whatever the bytes, an error or a tokeniser that encodes texts, and that is the
 * same after it was written. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "data/bpe_encode.h"
#include "data/bpe_file.h"

static const char text[] = "It's 12345 tokens  of\r\n\r\n text: na\xc3\xafve, caf\xc3\xa9 "
                           "\xf0\x9f\x98\x80\xe2\x80\x8d! <|end|> <mask>  x\t \xe6\x9d\xbf";

/* The ids stand for the text again: some blanks may be added, and white space may be a part of an
 * added token. */
static uint64_t encode(const rp_bpe *bpe, uint32_t *sum) {
    rp_bpe_encoder *encoder;
    const uint32_t *ids;
    uint64_t count = 0;
    *sum = 0;
    if (rp_bpe_encoder_open(bpe, &encoder) != RP_OK) {
        return 0;
    }
    if (rp_bpe_encode(encoder, text, sizeof text - 1, &ids, &count) == RP_OK) {
        for (uint64_t i = 0; i < count; i++) {
            RP_ASSERT(ids[i] < bpe->count && bpe->text[ids[i]].bytes > 0);
            *sum = 31 * *sum + ids[i];
        }
    } else {
        count = 0;
    }
    rp_bpe_encoder_close(&encoder);
    return count;
}

static void expect_same(rp_arena *arena, const rp_bpe *bpe) {
    json_t *root = rp_bpe_to_json(bpe);
    const rp_bpe *again;
    uint32_t sum[2];
    RP_ASSERT(root && rp_bpe_from_json(arena, root, "written", &again) == RP_OK);
    json_decref(root);
    RP_ASSERT(again->count == bpe->count && again->merges == bpe->merges &&
              again->added_count == bpe->added_count);
    const uint64_t count = encode(bpe, &sum[0]);
    RP_ASSERT(encode(again, &sum[1]) == count && sum[0] == sum[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const rp_bpe *bpe;
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 256 << 20);
    if (rp_bpe_parse(&arena, (const char *)bytes, count, "fuzz", &bpe) == RP_OK) {
        expect_same(&arena, bpe);
    }
    rp_arena_finish(&arena);
    return 0;
}
