#include "predict/evaluate_bleu.h"

#include <string.h>

#include "predict/bleu.h"
#include "predict/translate.h"

/* Samples that are translated in one call. */
typedef struct {
    rp_translator *translator;
    const rp_data *data;
    rp_split split;
    uint32_t time;
    uint32_t *index; /* [batch] */
    int32_t *x;      /* [batch][2 time] */
    int32_t *source; /* [batch][time] */
    int32_t *label;  /* [batch][label width]; not used */
    rp_text *text;   /* [batch]: translations */
} batch;

rp_err rp_bleu_check_data(const rp_data *data) {
    return data->kind->read_texts
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "--bleu needs sentences and their translations (`set: pairs`), but the "
                         "set is %s",
                         data->kind->name);
}

static rp_err make_batch(rp_arena *arena, batch *b) {
    const uint32_t n = rp_translator_batch(b->translator);
    const size_t ids = (size_t)n * b->time;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, n, &b->index));
    RP_TRY(RP_ARENA_NEW(arena, 2 * ids, &b->x));
    RP_TRY(RP_ARENA_NEW(arena, ids, &b->source));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)n * rp_data_label_width(b->data), &b->label));
    RP_TRY(RP_ARENA_NEW(arena, n, &b->text));
fail:
    return err;
}

/* Translates samples [first, first + count) and compares them with the texts of the set. */
static rp_err add_batch(batch *b, uint32_t first, uint32_t count, rp_bleu *bleu) {
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "translations", 0);
    for (uint32_t i = 0; i < count; i++) {
        b->index[i] = first + i;
    }
    RP_TRY(rp_data_batch(b->data, b->split, 0, b->index, count, false, b->x, b->label, NULL));
    for (uint32_t i = 0; i < count; i++) {
        memcpy(b->source + (size_t)i * b->time, b->x + 2 * (size_t)i * b->time,
               b->time * sizeof *b->source);
    }
    RP_TRY(rp_translate(b->translator, &arena, b->source, count, b->text));
    for (uint32_t i = 0; i < count; i++) {
        const char *source;
        const char *reference;
        rp_data_texts(b->data, b->split, b->index[i], &source, &reference);
        RP_TRY(rp_bleu_add(bleu, &b->text[i],
                           &(rp_text){.at = reference, .bytes = strlen(reference)}));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_evaluate_bleu(rp_network *network, const rp_data *data, rp_split split, uint32_t beam,
                        FILE *progress, double *out) {
    const uint32_t all = data->count[split];
    batch b = {.data = data, .split = split, .time = data->target_width};
    rp_bleu bleu = {0};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "translations", 0);
    RP_TRY(rp_translator_open(&arena, network, data->vocab, b.time, beam, &b.translator));
    RP_TRY(make_batch(&arena, &b));
    const uint32_t most = rp_translator_batch(b.translator);
    for (uint32_t first = 0; first < all; first += most) {
        const uint32_t count = all - first < most ? all - first : most;
        RP_TRY(add_batch(&b, first, count, &bleu));
        if (progress) {
            (void)fprintf(progress, "\r\033[K%u of %u sentences translated", first + count, all);
            (void)fflush(progress);
        }
    }
    *out = rp_bleu_score(&bleu);
fail:
    if (progress) {
        (void)fprintf(progress, "\r\033[K");
        (void)fflush(progress);
    }
    rp_arena_finish(&arena);
    return err;
}
