/* A TensorBoard event file with scalars and histograms.
 *
 * source  TFRecord framing (length u64, masked CRC32C of it, bytes, masked CRC32C of them), from
 *         tensorflow/core/lib/io/record_writer; messages Event and Summary, from
 *         tensorboard/compat/proto/{event,summary}.proto: event.proto has the fields in use */
#ifndef RP_RECORD_SINK_TENSORBOARD_H
#define RP_RECORD_SINK_TENSORBOARD_H

#include "base/arena.h"
#include "record/histogram.h"

typedef struct rp_tensorboard rp_tensorboard;

enum { RP_TENSORBOARD_TAG_MAX = 200 };

/* The file is `folder`/events.out.tfevents.ringpipe: one for the run's life, so that a resumed run
 * has one curve. With `step_first` > 0 goes on: records of that step and later ones are cut off.
 * errors  IO */
rp_err rp_tensorboard_open(rp_arena *arena, const char *folder, uint64_t step_first, double wall_s,
                           rp_tensorboard **out) RP_MUST_CHECK;

/* One point of curve `tag`; in the file when the call returns. wall_s: seconds since 1970. */
rp_err rp_tensorboard_scalar(rp_tensorboard *board, const char *tag, double value, uint64_t step,
                             double wall_s) RP_MUST_CHECK;

/* One histogram of curve `tag`, likewise; empty buckets beside each other become one. Without a
 * finite value there is none. */
rp_err rp_tensorboard_histogram(rp_tensorboard *board, const char *tag, const rp_histogram *values,
                                uint64_t step, double wall_s) RP_MUST_CHECK;

#endif
