/* Reads samples from files outside of a set: pictures, rows of a CSV file, arrays. They are
 * converted like those of the set that the description (data.json) is of. */
#ifndef RP_DATA_INPUTS_H
#define RP_DATA_INPUTS_H

#include "data/describe.h"

/* Origin of a sample. */
typedef struct {
    const char *path; /* as given by the user; "standard input" for "-" */
    enum { RP_INPUT_PICTURE, RP_INPUT_ROW, RP_INPUT_ELEMENT } kind;
    uint32_t number; /* ROW: line, from 1; ELEMENT: index, from 0 */
} rp_input_place;

/* For samples that are not token ids. Calls `on_sample` for every sample of a file; an error of it
 * ends the reading. x: [sample] floats, normalised, borrowed until it returns. Only one sample is
 * in memory.
 *
 *   picture  JPEG or PNG, for a net of images: resized to the sample's size; grey if the sample has
 *            one channel
 *   CSV      for all further nets. With a header and names in the description: columns are found
 *            by name, and extra columns are ignored. Otherwise either all columns are inputs, or
 * the columns are those of the training file. array    .npy, .gz, or a file that begins like idx:
 * samples of the same shape, with channels last if the training arrays had them so; unsigned bytes
 * are divided by 255. A net that was trained on bytes also accepts numbers from 0 to 1; a net that
 * was trained on numbers does not accept bytes.
 *
 * `path`: "-" is standard input with a picture or a CSV file (base/input.h).
 * errors  IO; FORMAT naming the file, line and column, and what was expected; those of on_sample */
rp_err rp_inputs_read(const rp_description *about, const char *path,
                      rp_err (*on_sample)(void *context, const rp_input_place *place,
                                          const float *x),
                      void *context) RP_MUST_CHECK;

#endif
