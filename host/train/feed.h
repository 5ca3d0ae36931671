/* Sends batches of a data set to the boards to which the plan's edges lead: inputs in microbatches
 * of the first stage, labels for a whole step, before its inputs. It never blocks. The credit of a
 * link limits what its board is sent. Where several boards hold the first stage, each one is fed
 * its share while another one has no room; the difference is a few batches at most. */
#ifndef RP_TRAIN_FEED_H
#define RP_TRAIN_FEED_H

#include "ring/ring.h"

typedef struct rp_feed rp_feed;

typedef enum {
    RP_FEED_TRAINING,   /* shuffled and augmented as the run file says */
    RP_FEED_EVALUATION, /* in order */
    RP_FEED_STATISTICS  /* training data without labels, between two segments */
} rp_feed_purpose;

/* Inputs of the steps before `step`, and of that step its first `micros` microbatches. */
typedef struct {
    uint64_t step;
    uint32_t micros;
} rp_feed_limit;

/* Steps [first, end) of the run, or of one pass over a split. `arena` for its whole life; the plan
 * is borrowed as long. */
rp_err rp_feed_open(rp_arena *arena, rp_ring *ring, const rp_plan *plan, rp_feeder_mode mode,
                    rp_split split, rp_feed_purpose purpose, uint64_t step_first, uint64_t step_end,
                    rp_feed **out) RP_MUST_CHECK;
/* Inputs before this limit are with the boards already; their labels are sent all the same. */
void rp_feed_skip(rp_feed *feed, rp_feed_limit sent);
/* After the feed links are quiet: everything sent must have been acked or the links be closed. */
void rp_feed_close(rp_feed **feed);

/* Sends what can be sent up to the limit. No parcel may stay in a link when an evaluation
 * follows. */
rp_err rp_feed_step(rp_feed *feed, rp_feed_limit limit) RP_MUST_CHECK;
/* No part of this step or a later one has been sent. */
uint64_t rp_feed_untouched(const rp_feed *feed);
/* Nothing is on its way. */
bool rp_feed_quiet(const rp_feed *feed);
/* Readable when a batch that can be taken is ready; -1 while none can: it stays readable then. */
int rp_feed_eventfd(const rp_feed *feed);

#endif
