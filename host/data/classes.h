/* Classes that a training part does not have. Private to the room. */
#ifndef RP_DATA_CLASSES_H
#define RP_DATA_CLASSES_H

#include "data/notes.h"

/* Notes that some of the classes have no training sample, or that all samples are of one class.
 * `samples` has [classes] counts; `name` is NULL where classes are numbers. errors MEMORY */
rp_err rp_classes_note(rp_arena *arena, const uint32_t *samples, uint32_t classes,
                       const char *const *name, rp_notes *notes) RP_MUST_CHECK;

#endif
