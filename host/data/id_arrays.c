#include "data/id_arrays.h"

#include "data/vocab.h"

/* *below: raised to the largest number + 1, without *ignore. `what`: the numbers, for a message.
 * times: as in rp_label_array_measure(), or NULL. */
static rp_err measure_numbers(const rp_array *array, const char *what, int32_t least,
                              const int32_t *ignore, uint32_t *below, uint32_t *times) {
    const size_t values = rp_shape_count(&array->sample);
    char type[RP_ARRAY_TYPE_BYTES];
    rp_arena scratch;
    int32_t *value;
    rp_err err;
    if (array->number == RP_NUMBER_FLOAT) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: has numbers of type %s, expected whole numbers like i4 or u2, because "
                       "they are %s",
                       array->path, rp_array_type(array, type), what);
    }
    rp_arena_init(&scratch, "ids", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, values, &value));
    for (uint32_t i = 0; i < array->count; i++) {
        RP_TRY(rp_array_read_whole(array, i, least, RP_TOKENS_MAX - 1, value));
        for (size_t k = 0; k < values; k++) {
            const bool ignored = ignore && value[k] == *ignore;
            if (ignored || value[k] < 0) {
                continue;
            }
            const uint32_t number = (uint32_t)value[k];
            *below = number < *below ? *below : number + 1;
            if (times && times[number] < UINT32_MAX) {
                times[number]++;
            }
        }
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

rp_err rp_id_array_measure(const rp_array *array, uint32_t *below) {
    return measure_numbers(array, "token ids", 0, NULL, below, NULL);
}

rp_err rp_label_array_measure(const rp_array *array, const int32_t *ignore, uint32_t *classes,
                              uint32_t *times) {
    return measure_numbers(array, "classes", INT32_MIN, ignore, classes, times);
}

rp_err rp_id_array_read(const rp_array *array, uint32_t index, int32_t *id) {
    return rp_array_read_whole(array, index, 0, RP_TOKENS_MAX - 1, id);
}

rp_err rp_label_array_read(const rp_array *array, uint32_t index, uint32_t classes,
                           const int32_t *ignore, int32_t *label) {
    const size_t values = rp_shape_count(&array->sample);
    rp_err err;
    RP_TRY(rp_array_read_whole(array, index, INT32_MIN, INT32_MAX, label));
    for (size_t i = 0; i < values; i++) {
        const bool known = label[i] >= 0 && (uint32_t)label[i] < classes;
        if (!known && !(ignore && label[i] == *ignore)) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: label %zu of sample %u is %d, expected 0 to %u, or the value of "
                           "`ignore` of the loss",
                           array->path, i, index, label[i], classes - 1);
        }
    }
fail:
    return err;
}
