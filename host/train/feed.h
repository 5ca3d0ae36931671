/* Sends batches of a data set to boards along the plan's edges: inputs to the first stage, one
 * microbatch at a time, and the labels of a whole step before its inputs. It never blocks; a link's
 * credit limits what its board is sent. If several boards hold the first stage, each is fed its
 * share independently, at most a few batches apart. */
#ifndef RP_TRAIN_FEED_H
#define RP_TRAIN_FEED_H

#include "ring/ring.h"

typedef struct rp_feed rp_feed;

typedef enum {
    RP_FEED_TRAINING,   /* shuffled and augmented as the run file says */
    RP_FEED_EVALUATION, /* in order */
    RP_FEED_STATISTICS  /* training data without labels, between two segments */
} rp_feed_purpose;

/* The inputs of all steps before `step`, and the first `micros` microbatches of `step`. */
typedef struct {
    uint64_t step;
    uint32_t micros;
} rp_feed_limit;

/* Opens a feed for steps [first, end) of the run, or of one pass over a split. `arena` and the plan
 * must outlive it. */
rp_err rp_feed_open(rp_arena *arena, rp_ring *ring, const rp_plan *plan, rp_feeder_mode mode,
                    rp_split split, rp_feed_purpose purpose, uint64_t step_first, uint64_t step_end,
                    rp_feed **out) RP_MUST_CHECK;
/* Inputs up to this limit are with the boards already; their labels are still sent. */
void rp_feed_skip(rp_feed *feed, rp_feed_limit sent);
/* Call it only when everything sent was acked, or the feed links are closed. */
void rp_feed_close(rp_feed **feed);

/* Sends what the links take, up to the limit. Before an evaluation no parcel may remain in a
 * link. */
rp_err rp_feed_step(rp_feed *feed, rp_feed_limit limit) RP_MUST_CHECK;
/* The first step of which no part has been sent. */
uint64_t rp_feed_untouched(const rp_feed *feed);
/* Everything sent has been acked. */
bool rp_feed_quiet(const rp_feed *feed);
/* Readable when a batch is ready that the feed can use; -1 while it can use none. */
int rp_feed_eventfd(const rp_feed *feed);

#endif
