/* The loss of a text in bits: of a character or byte, or for tokens of a BPE of a byte of the text.
 */
#include <math.h>

#include "data/data.h"

/* Targets of a part that count, and the bytes of their text. */
typedef struct {
    uint64_t targets, bytes;
} extent;

static void add_labels(const rp_data *data, const int32_t *label, extent *sum) {
    for (uint32_t i = 0; i < data->target_width; i++) {
        if (!data->ignores || label[i] != data->ignore) {
            sum->targets++;
            sum->bytes += data->vocab->bpe->text[label[i]].bytes;
        }
    }
}

static rp_err measure_part(const rp_data *data, rp_split split, extent *sum) {
    rp_arena scratch;
    int32_t *x;
    int32_t *label;
    rp_err err;
    rp_arena_init(&scratch, "bits", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, rp_shape_count(&data->sample), &x));
    RP_TRY(RP_ARENA_NEW(&scratch, rp_data_label_width(data), &label));
    for (uint32_t i = 0; i < rp_data_drawn(data, split); i++) {
        RP_TRY(rp_data_batch(data, split, 0, &i, 1, false, x, label, NULL));
        add_labels(data, label, sum);
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

rp_err rp_data_bits(const rp_data *data, rp_split split, double *out) {
    extent sum = {0};
    rp_err err = RP_OK;
    *out = 0;
    if (data->bits == RP_BITS_OF_TOKEN && data->count[split] > 0) {
        *out = 1 / log(2);
    }
    if (data->bits == RP_BITS_OF_BYTE) {
        RP_TRY(measure_part(data, split, &sum));
        *out = sum.bytes > 0 ? (double)sum.targets / (double)sum.bytes / log(2) : 0;
    }
fail:
    return err;
}
