#include "train/overlap.h"

#include <math.h>
#include <string.h>

#include "nn/loss.h"

rp_err rp_overlap_open(rp_arena *arena, uint32_t outputs, uint32_t classes, rp_overlap *out) {
    rp_err err = RP_OK;
    *out = (rp_overlap){.outputs = outputs, .classes = classes};
    if (outputs > 0) {
        RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)outputs, &out->count));
        RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)outputs, &out->got));
    }
fail:
    return err;
}

/* Could the counts be those of this number of pixels? */
static bool is_possible(const double *count, uint32_t outputs, uint64_t targets) {
    const double most = (double)targets;
    double both = 0;
    for (uint32_t k = 0; k < outputs; k++) {
        const double met = count[k];
        const double either = count[outputs + k];
        if (!(met >= 0 && met <= either && either <= most) || met != floor(met) ||
            either != floor(either)) {
            return false;
        }
        both += met;
    }
    return both <= most;
}

rp_err rp_overlap_add(rp_overlap *overlap, const rp_message *report, const char *board,
                      uint64_t targets) {
    const size_t bytes = report->part_count > 0 ? report->part[0].bytes : 0;
    const size_t numbers = bytes / sizeof(double);
    if (bytes == 0) {
        overlap->lacks = true;
        return RP_OK;
    }
    const bool fits = overlap->outputs > 0 && numbers == 2 * (size_t)overlap->outputs;
    if (fits) {
        memcpy(overlap->got, report->part[0].data, bytes); /* which may not be aligned */
    }
    if (!fits || !is_possible(overlap->got, overlap->outputs, targets)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s sent counts of classes that do not fit %llu pixels of %u classes",
                       board, (unsigned long long)targets, overlap->outputs);
    }
    for (size_t k = 0; k < numbers; k++) {
        overlap->count[k] += overlap->got[k];
    }
    return RP_OK;
}

double rp_overlap_mean_iou(const rp_overlap *overlap) {
    const uint32_t classes =
        overlap->classes < overlap->outputs ? overlap->classes : overlap->outputs;
    return overlap->lacks || classes == 0
               ? (double)NAN
               : rp_loss_mean_iou(overlap->count, overlap->count + overlap->outputs, classes);
}
