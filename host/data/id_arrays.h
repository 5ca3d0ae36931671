/* Arrays of token ids, and of a label for each token or pixel. Private to the room. */
#ifndef RP_DATA_ID_ARRAYS_H
#define RP_DATA_ID_ARRAYS_H

#include "data/array.h"

/* Reads all numbers of an array of ids. *below: raised to the largest id + 1.
 * errors  IO; FORMAT: not whole numbers, or one that cannot be an id */
rp_err rp_id_array_measure(const rp_array *array, uint32_t *below) RP_MUST_CHECK;
/* Reads all numbers of an array of labels; negative ones may be ignored by the loss. *classes:
 * raised to the largest label + 1, without labels that are *ignore. ignore NULL: there is no such
 * label. times: [RP_TOKENS_MAX], how often each label occurs is added; or NULL. errors  as
 * rp_id_array_measure() */
rp_err rp_label_array_measure(const rp_array *array, const int32_t *ignore, uint32_t *classes,
                              uint32_t *times) RP_MUST_CHECK;

/* Reads the ids of a sample. errors  IO; FORMAT: the file has changed */
rp_err rp_id_array_read(const rp_array *array, uint32_t index, int32_t *id) RP_MUST_CHECK;
/* Reads the labels of a sample. errors  IO; FORMAT: one is not from 0 to classes - 1, and not
 * *ignore. ignore NULL: no label is ignored */
rp_err rp_label_array_read(const rp_array *array, uint32_t index, uint32_t classes,
                           const int32_t *ignore, int32_t *label) RP_MUST_CHECK;

#endif
