/* Computes the steps at which a run pauses, from numbers of steps alone. */
#ifndef RP_TRAIN_PAUSES_H
#define RP_TRAIN_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of steps; an interval of 0 is unused. */
typedef struct {
    uint64_t step;           /* steps trained so far */
    uint64_t end;            /* last step of the run file */
    uint64_t save_every[5];  /* epochs, checkpoints, histograms, evaluations, rounds of lanes */
    uint64_t score_every[2]; /* evaluations by epochs, and by steps; 0: no data to score */
    uint64_t look;           /* step of the first measurement of links; 0: none */
    uint32_t returns;        /* recoveries since the last checkpoint */
    bool must_save;          /* a checkpoint is required here; copies are not enough */
} rp_pauses;

/* End of the segment that begins at `step`. `copies`: step at which copies are due; UINT64_MAX:
 * never. The result is always greater than `step`. */
uint64_t rp_pauses_next(const rp_pauses *pauses, uint64_t copies);
/* At a step where copies are due: nothing else is due. */
bool rp_pauses_need_no_save(const rp_pauses *pauses);
/* The next step with an evaluation, or the end of the run. */
uint64_t rp_pauses_next_score(const rp_pauses *pauses);

#endif
