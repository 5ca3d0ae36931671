/* The steps at which a run pauses: arithmetic of steps, and nothing else. */
#ifndef RP_TRAIN_PAUSES_H
#define RP_TRAIN_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of steps; an interval of 0 is unused. */
typedef struct {
    uint64_t step;           /* trained so far */
    uint64_t end;            /* last step of the run file */
    uint64_t save_every[5];  /* epochs, checkpoints, histograms, evaluations, rounds of lanes */
    uint64_t score_every[2]; /* evaluations by epochs, and by steps; 0: no data for them */
    uint64_t look;           /* links are measured first after this step; 0: they are not */
    uint32_t returns;        /* ways back since the last checkpoint */
    bool must_save;          /* copies do not suffice here, whatever the step */
} rp_pauses;

/* End of the segment that begins at `step`. `copies`: copies are due then; UINT64_MAX: never. The
 * result is greater than `step`, also where that is the last step. */
uint64_t rp_pauses_next(const rp_pauses *pauses, uint64_t copies);
/* Nothing but copies is due at `step`, where copies are due. */
bool rp_pauses_need_no_save(const rp_pauses *pauses);
/* The next step before which an evaluation is due, or the end of the run. */
uint64_t rp_pauses_next_score(const rp_pauses *pauses);

#endif
