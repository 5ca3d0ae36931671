/* The mean IoU of an evaluation whose targets are pixels, from counts that the boards report. Pure.
 */
#ifndef RP_TRAIN_OVERLAP_H
#define RP_TRAIN_OVERLAP_H

#include "base/arena.h"
#include "link/link.h"

typedef struct {
    uint32_t outputs; /* classes of the model's output; 0: the targets are not pixels */
    uint32_t classes; /* classes of the data */
    bool lacks;       /* a report had no counts, because its agent is older */
    double *count;    /* [2][outputs], as the part of EVALUATE_DONE: the sum of all reports */
    double *got;      /* the same of the last report */
} rp_overlap;

/* errors  MEMORY */
rp_err rp_overlap_open(rp_arena *arena, uint32_t outputs, uint32_t classes,
                       rp_overlap *out) RP_MUST_CHECK;
/* Adds the part of a report on this number of targets. `board`: for people.
 * errors  PEER: the counts are impossible; then none is added */
rp_err rp_overlap_add(rp_overlap *overlap, const rp_message *report, const char *board,
                      uint64_t targets) RP_MUST_CHECK;
/* The mean over the classes of intersection / union, as rp_confusion_mean_iou(); NAN: unknown. */
double rp_overlap_mean_iou(const rp_overlap *overlap);

#endif
