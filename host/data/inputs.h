/* Samples from files that belong to no set: pictures, rows of a CSV file, arrays. They become what
 * a set would have given, by the description of the set (data.json). */
#ifndef RP_DATA_INPUTS_H
#define RP_DATA_INPUTS_H

#include "data/describe.h"

/* Where a sample comes from. */
typedef struct {
    const char *path; /* as it was named; "standard input" for "-" */
    enum { RP_INPUT_PICTURE, RP_INPUT_ROW, RP_INPUT_ELEMENT } kind;
    uint32_t number; /* ROW: its line, from 1; ELEMENT: its place, from 0 */
} rp_input_place;

/* Gives every sample of a file to `on_sample`, which ends the reading with an error: x has as many
 * floats as a sample, normalised, borrowed until it returns. One sample is in memory at a time.
 *
 *   picture  JPEG or PNG, for a net of images: resized to the sample's size, grey where it has one
 *            channel
 *   CSV      for other nets. With a header and names in the description: the columns of these
 *            names, others are passed over. Otherwise all columns are inputs, or there are as many
 *            as in the training file and its inputs are taken.
 *   array    .npy, .gz, or what begins as an idx file: of samples of the same shape, with
 *            their channels last where the training arrays had them so; unsigned bytes are divided
 *            by 255, as a set does. What was trained on bytes takes numbers from 0 to 1 as well;
 *            what was trained on other numbers takes no bytes.
 *
 * `path`: "-" is the standard input, a file (base/input.h): a picture or a CSV file.
 * errors  IO; FORMAT naming the file, line and column, and what was expected; those of on_sample */
rp_err rp_inputs_read(const rp_description *about, const char *path,
                      rp_err (*on_sample)(void *context, const rp_input_place *place,
                                          const float *x),
                      void *context) RP_MUST_CHECK;

#endif
