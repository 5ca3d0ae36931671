/* data.json: whatever the bytes, an error or a description whose vocabulary encodes a text. */
#include "fuzz.h"

#include <string.h>

#include "data/describe.h"
#include "data/encode.h"

static const char text[] = "It's a cat, 12 caf\xc3\xa9s <end>";

static void encode(rp_arena *arena, const rp_vocab *vocab) {
    int32_t *ids;
    uint32_t count;
    rp_text again;
    if (rp_text_encode(arena, vocab, text, &ids, &count) == RP_OK) {
        for (uint32_t i = 0; i < count; i++) {
            RP_ASSERT(ids[i] >= 0 && (uint32_t)ids[i] < vocab->count);
        }
        RP_ASSERT(rp_text_decode(arena, vocab, ids, count, &again) == RP_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_description about;
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 256 << 20);
    if (rp_data_parse_description(&arena, (const char *)bytes, count, "fuzz", &about) == RP_OK &&
        about.type == RP_I32) {
        RP_ASSERT(about.vocab.count == about.tokens);
        RP_ASSERT(strcmp(about.set, "pairs") != 0 ||
                  strcmp(about.vocab.name[RP_TOKEN_END], "<end>") == 0);
        encode(&arena, &about.vocab);
    }
    rp_arena_finish(&arena);
    return 0;
}
