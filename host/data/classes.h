/* Notes on classes without training samples or pixels. Private to the room. */
#ifndef RP_DATA_CLASSES_H
#define RP_DATA_CLASSES_H

#include "data/notes.h"

/* Adds a note if some classes have no training sample, or all samples have one class.
 * samples: [classes] counts; name: [classes], or NULL if classes are numbers. errors MEMORY */
rp_err rp_classes_note(rp_arena *arena, const uint32_t *samples, uint32_t classes,
                       const char *const *name, rp_notes *notes) RP_MUST_CHECK;
/* Like rp_classes_note(), for the pixels of masks. pixels: [classes] counts */
rp_err rp_classes_note_pixels(rp_arena *arena, const uint32_t *pixels, uint32_t classes,
                              const char *const *name, rp_notes *notes) RP_MUST_CHECK;

#endif
