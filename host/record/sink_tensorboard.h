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

/* Opens `folder`/events.out.tfevents.ringpipe, one file for all starts of a run, so that a resumed
 * run has one curve. With `step_first` > 0 it continues: records of that step and later ones are
 * cut off. wall_s: seconds since 1970. errors  IO */
rp_err rp_tensorboard_open(rp_arena *arena, const char *folder, uint64_t step_first, double wall_s,
                           rp_tensorboard **out) RP_MUST_CHECK;

/* Writes one point of curve `tag` to the file. */
rp_err rp_tensorboard_scalar(rp_tensorboard *board, const char *tag, double value, uint64_t step,
                             double wall_s) RP_MUST_CHECK;

/* Writes one histogram of curve `tag`; adjacent empty buckets are joined. Nothing is written if no
 * value is finite. */
rp_err rp_tensorboard_histogram(rp_tensorboard *board, const char *tag, const rp_histogram *values,
                                uint64_t step, double wall_s) RP_MUST_CHECK;

#endif
