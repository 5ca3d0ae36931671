#include "record/sink_tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pb_decode.h>
#include <pb_encode.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "event.pb.h"
#include "record/sink.h"

enum {
    TAIL_BYTES = 4,    /* checksum after a record */
    FRAME_BYTES = 12,  /* length and its checksum, before a record */
    RECORD_MAX = 32768 /* a histogram has two numbers for each bucket */
};

/* A record in the layout of the file; `bytes` follows the frame directly. */
typedef struct {
    unsigned char frame[FRAME_BYTES];
    unsigned char bytes[RECORD_MAX + TAIL_BYTES];
    size_t count;
} record;
_Static_assert(offsetof(record, bytes) == FRAME_BYTES, "a record is written in one piece");

struct rp_tensorboard {
    const char *path;
    FILE *file;
    size_t end; /* end of the records in the file */
    uint32_t stages;
    rp_targets targets;
    double speeds_s; /* time of the last speeds, which are written once a second */
    double limit[RP_HISTOGRAM_BUCKETS];
    record record; /* buffer */
};

/* CRC-32C (Castagnoli), half a byte at a time. */
static uint32_t crc32c(const unsigned char *bytes, size_t count) {
    static const uint32_t half[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                      0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                      0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                      0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ half[crc & 15];
        crc = crc >> 4 ^ half[crc & 15];
    }
    return ~crc;
}

static uint32_t masked_crc(const unsigned char *bytes, size_t count) {
    const uint32_t crc = crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(unsigned char *to, uint64_t value, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(value >> 8 * i);
    }
}

/* Encodes an event with the same bytes as TensorBoard, because nanopb writes fields in order. */
static rp_err encode_event(rp_tensorboard *board, const tb_Event *event) {
    record *r = &board->record;
    pb_ostream_t stream = pb_ostream_from_buffer(r->bytes, RECORD_MAX);
    if (!pb_encode(&stream, tb_Event_fields, event)) {
        return rp_fail(RP_ERR_FORMAT, "an event for TensorBoard: %s", PB_GET_ERROR(&stream));
    }
    r->count = stream.bytes_written;
    return RP_OK;
}

/* Writes the record. If the disk is full a partial record is removed, so that later ones stay
 * valid. */
static rp_err write_record(rp_tensorboard *board) {
    record *r = &board->record;
    const int fd = fileno(board->file);
    size_t done = 0;
    put_little(r->frame, r->count, 8);
    put_little(r->frame + 8, masked_crc(r->frame, 8), 4);
    put_little(r->bytes + r->count, masked_crc(r->bytes, r->count), TAIL_BYTES);
    const size_t bytes = FRAME_BYTES + r->count + TAIL_BYTES;
    while (done < bytes) {
        const ssize_t wrote =
            pwrite(fd, (const char *)r + done, bytes - done, (off_t)(board->end + done));
        if (wrote > 0) {
            done += (size_t)wrote;
        } else if (wrote == 0 || errno != EINTR) {
            const int code = wrote == 0 ? ENOSPC : errno;
            (void)!ftruncate(fd, (off_t)board->end);
            errno = code;
            return rp_replace_unwritten(board->path);
        }
    }
    board->end += bytes;
    return RP_OK;
}

static rp_err write_event(rp_tensorboard *board, const tb_Event *event) {
    const rp_err err = encode_event(board, event);
    return err == RP_OK ? write_record(board) : err;
}

static uint64_t get_little(const unsigned char *from, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = bytes; i-- > 0;) {
        value = value << 8 | from[i];
    }
    return value;
}

/* Reads one record; false: end of the file, or it is damaged from here on. */
static bool read_record(FILE *file, record *r) {
    unsigned char frame[FRAME_BYTES];
    unsigned char tail[4];
    if (fread(frame, 1, sizeof frame, file) != sizeof frame ||
        get_little(frame + 8, 4) != masked_crc(frame, 8) || get_little(frame, 8) > RECORD_MAX) {
        return false;
    }
    r->count = (size_t)get_little(frame, 8);
    return fread(r->bytes, 1, r->count, file) == r->count &&
           fread(tail, 1, sizeof tail, file) == sizeof tail &&
           get_little(tail, 4) == masked_crc(r->bytes, r->count);
}

/* Step of an event; 0 for the first record, which has no step, and for unknown records. */
static uint64_t read_step(const record *r) {
    pb_istream_t stream = pb_istream_from_buffer(r->bytes, r->count);
    tb_Event event = tb_Event_init_zero;
    return pb_decode(&stream, tb_Event_fields, &event) ? event.step : 0;
}

/* Keeps the records of steps before `step_end`, and cuts off the rest. */
static rp_err drop_later_records(rp_tensorboard *board, uint64_t step_end) {
    record *r = &board->record;
    long keep = 0;
    while (read_record(board->file, r) && read_step(r) < step_end) {
        keep = ftell(board->file);
    }
    if (keep < 0 || fseek(board->file, keep, SEEK_SET) != 0 ||
        ftruncate(fileno(board->file), keep) != 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be truncated: %s", board->path, strerror(errno));
    }
    board->end = (size_t)keep;
    return RP_OK;
}

static FILE *open_file(const char *path, bool is_new) {
    const int fd = rp_replace_open(path, O_RDWR | (is_new ? O_TRUNC : 0));
    FILE *file = fd >= 0 ? fdopen(fd, "r+b") : NULL;
    if (!file && fd >= 0) {
        (void)close(fd);
    }
    if (file) { /* writes bypass the stream, and a rewind reads the file again */
        (void)setvbuf(file, NULL, _IONBF, 0);
    }
    return file;
}

rp_err rp_tensorboard_open(rp_arena *arena, const char *folder, uint64_t step_first, double wall_s,
                           rp_tensorboard **out) {
    const tb_Event first = {
        .wall_time = wall_s, .which_what = tb_Event_file_version_tag, .what = {"brain.Event:2"}};
    rp_err err = RP_OK;
    rp_tensorboard *board = NULL;
    char *path;
    RP_TRY(RP_ARENA_NEW(arena, 1, &board));
    RP_TRY(rp_arena_printf(arena, &path, "%s/events.out.tfevents.ringpipe", folder));
    board->path = path;
    rp_histogram_limits(board->limit);
    board->file = open_file(path, step_first == 0);
    if (!board->file) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
        goto fail;
    }
    RP_TRY(drop_later_records(board, step_first));
    if (board->end == 0) {
        err = write_event(board, &first);
        if (err != RP_OK) {
            (void)rp_fail(err, "%s: cannot be written: %s", path, strerror(errno));
            goto fail;
        }
    }
    *out = board;
    return RP_OK;
fail:
    if (board && board->file) {
        (void)fclose(board->file);
    }
    return err;
}

rp_err rp_tensorboard_scalar(rp_tensorboard *board, const char *tag, double value, uint64_t step,
                             double wall_s) {
    tb_Event event = {.wall_time = wall_s, .step = step, .which_what = tb_Event_summary_tag};
    tb_Value *point = event.what.summary.value;
    event.what.summary.value_count = 1;
    (void)snprintf(point->tag, sizeof point->tag, "%s", tag);
    point->which_value = tb_Value_simple_value_tag;
    point->value.simple_value = (float)value;
    return write_event(board, &event);
}

/* Numbers of a packed protobuf field. */
typedef struct {
    double number[RP_HISTOGRAM_BUCKETS];
    uint32_t count;
} numbers;

static bool encode_numbers(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const numbers *list = *arg;
    bool good = pb_encode_tag(stream, PB_WT_STRING, field->tag) &&
                pb_encode_varint(stream, list->count * sizeof list->number[0]);
    for (uint32_t i = 0; i < list->count && good; i++) {
        good = pb_encode_fixed64(stream, &list->number[i]);
    }
    return good;
}

/* Lists limits and counts of buckets. Of adjacent empty buckets only the last limit is kept, which
 * is the lower end of the next bucket; empty buckets after the last value are dropped. */
static void list_buckets(const rp_tensorboard *board, const rp_histogram *values, numbers *limits,
                         numbers *counts) {
    limits->count = 0;
    for (uint32_t i = 0; i < RP_HISTOGRAM_BUCKETS; i++) {
        const bool below = i + 1 < RP_HISTOGRAM_BUCKETS && values->bucket[i + 1] > 0;
        if (values->bucket[i] > 0 || below) {
            limits->number[limits->count] = board->limit[i];
            counts->number[limits->count++] = (double)values->bucket[i];
        }
    }
    counts->count = limits->count;
}

rp_err rp_tensorboard_histogram(rp_tensorboard *board, const char *tag, const rp_histogram *values,
                                uint64_t step, double wall_s) {
    tb_Event event = {.wall_time = wall_s, .step = step, .which_what = tb_Event_summary_tag};
    tb_Value *point = event.what.summary.value;
    tb_Histogram *histogram = &point->value.histo;
    numbers limits;
    numbers counts;
    if (values->count == 0) {
        return RP_OK;
    }
    list_buckets(board, values, &limits, &counts);
    event.what.summary.value_count = 1;
    (void)snprintf(point->tag, sizeof point->tag, "%s", tag);
    point->which_value = tb_Value_histo_tag;
    *histogram = (tb_Histogram){.min = values->min,
                                .max = values->max,
                                .num = (double)values->count,
                                .sum = values->sum,
                                .sum_squares = values->sum_squares,
                                .bucket_limit = {{.encode = encode_numbers}, &limits},
                                .bucket = {{.encode = encode_numbers}, &counts}};
    return write_event(board, &event);
}

/* ---- the sink -------------------------------------------------------------------------------- */

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    rp_tensorboard *board = NULL;
    rp_err err = RP_OK;
    if (!run->folder) {
        return RP_OK;
    }
    RP_TRY(rp_tensorboard_open(arena, run->folder, run->step_first, run->wall_s, &board));
    board->stages = run->stages;
    board->targets = run->targets;
    board->speeds_s = -1;
    *sink = board;
fail:
    return err;
}

static rp_err put_speeds(rp_tensorboard *board, const rp_sink_step *step) {
    rp_err err = RP_OK;
    if (step->samples_per_s > 0) {
        RP_TRY(rp_tensorboard_scalar(board, "speed/samples_per_s", step->samples_per_s, step->step,
                                     step->wall_s));
    }
    if (step->tokens_per_s > 0 && rp_targets_are_tokens(board->targets)) {
        RP_TRY(rp_tensorboard_scalar(board, "speed/tokens_per_s", step->tokens_per_s, step->step,
                                     step->wall_s));
    }
    for (uint32_t k = 0; step->busy && k < board->stages; k++) {
        char tag[64];
        (void)snprintf(tag, sizeof tag, "busy/board%u", k);
        RP_TRY(rp_tensorboard_scalar(board, tag, step->busy[k], step->step, step->wall_s));
    }
    board->speeds_s = step->time_s;
fail:
    return err;
}

/* A loss of tokens also as perplexity and bits. `part`: "train", "test", ... */
static rp_err put_loss(rp_tensorboard *board, const char *part, double loss, double bits,
                       uint64_t step, double wall_s) {
    char tag[64];
    rp_err err;
    (void)snprintf(tag, sizeof tag, "%s/loss", part);
    RP_TRY(rp_tensorboard_scalar(board, tag, loss, step, wall_s));
    if (rp_targets_are_tokens(board->targets)) {
        (void)snprintf(tag, sizeof tag, "%s/perplexity", part);
        RP_TRY(rp_tensorboard_scalar(board, tag, rp_perplexity(loss), step, wall_s));
    }
    if (board->targets == RP_TARGETS_TEXT) {
        (void)snprintf(tag, sizeof tag, "%s/bits", part);
        RP_TRY(rp_tensorboard_scalar(board, tag, bits, step, wall_s));
    }
fail:
    return err;
}

static rp_err on_step(void *sink, const rp_sink_step *step) {
    rp_tensorboard *board = sink;
    rp_err err;
    RP_TRY(put_loss(sink, "train", step->loss, step->bits, step->step, step->wall_s));
    RP_TRY(rp_tensorboard_scalar(sink, "train/lr", step->lr, step->step, step->wall_s));
    if (board->speeds_s < 0 || !(step->time_s < board->speeds_s + 1)) {
        RP_TRY(put_speeds(board, step));
    }
fail:
    return err;
}

/* Written for the last step trained, so that a run that resumes after it keeps the point. */
static rp_err on_eval(void *sink, const rp_sink_eval *eval) {
    const rp_tensorboard *board = sink;
    const uint64_t last = eval->step > 0 ? eval->step - 1 : 0;
    char name[64];
    rp_err err;
    RP_TRY(put_loss(sink, eval->split, eval->loss, eval->bits, last, eval->wall_s));
    if (eval->accuracy >= 0) {
        (void)snprintf(name, sizeof name, "%s/accuracy", eval->split);
        RP_TRY(rp_tensorboard_scalar(sink, name, eval->accuracy, last, eval->wall_s));
    }
    if (board->targets == RP_TARGETS_PIXELS && isfinite(eval->mean_iou)) {
        (void)snprintf(name, sizeof name, "%s/mean_iou", eval->split);
        RP_TRY(rp_tensorboard_scalar(sink, name, eval->mean_iou, last, eval->wall_s));
    }
fail:
    return err;
}

static rp_err on_prediction(void *sink, const rp_sink_prediction *line) {
    char tag[64];
    rp_err err;
    (void)snprintf(tag, sizeof tag, "prediction/stage%u/error", line->stage);
    RP_TRY(rp_tensorboard_scalar(sink, tag, line->error, line->step, line->wall_s));
    (void)snprintf(tag, sizeof tag, "prediction/stage%u/stale_error", line->stage);
    RP_TRY(rp_tensorboard_scalar(sink, tag, line->stale_error, line->step, line->wall_s));
    if (line->error > 0) { /* a ratio above 1 means that the prediction helps */
        (void)snprintf(tag, sizeof tag, "prediction/stage%u/stale_over_predicted", line->stage);
        RP_TRY(rp_tensorboard_scalar(sink, tag, line->stale_error / line->error, line->step,
                                     line->wall_s));
    }
fail:
    return err;
}

static rp_err on_norm(void *sink, const rp_sink_norm *line) {
    return rp_tensorboard_scalar(sink, "train/gradient_norm", line->norm, line->step, line->wall_s);
}

/* Written for the last step trained, like evaluations. Values outside of all buckets (NaN,
 * infinite) have separate curves. */
static rp_err on_histogram(void *sink, const rp_sink_histogram *line) {
    const uint64_t last = line->step > 0 ? line->step - 1 : 0;
    const rp_histogram *values = line->values;
    char tag[RP_TENSORBOARD_TAG_MAX + 1];
    rp_err err;
    (void)snprintf(tag, sizeof tag, "weights/%s", line->name);
    RP_TRY(rp_tensorboard_histogram(sink, tag, values, last, line->wall_s));
    if (values->nan > 0) {
        (void)snprintf(tag, sizeof tag, "nan/%s", line->name);
        RP_TRY(rp_tensorboard_scalar(sink, tag, (double)values->nan, last, line->wall_s));
    }
    if (values->infinite > 0) {
        (void)snprintf(tag, sizeof tag, "infinite/%s", line->name);
        RP_TRY(rp_tensorboard_scalar(sink, tag, (double)values->infinite, last, line->wall_s));
    }
fail:
    return err;
}

/* Written for the last step trained, like evaluations. */
static rp_err put_fact(void *sink, const rp_sink_facts *facts, const char *what, uint32_t board,
                       double value) {
    char tag[64];
    (void)snprintf(tag, sizeof tag, "%s/board%u", what, board);
    return rp_tensorboard_scalar(sink, tag, value, facts->step > 0 ? facts->step - 1 : 0,
                                 facts->wall_s);
}

static rp_err on_facts(void *sink, const rp_sink_facts *facts) {
    const uint64_t last = facts->step > 0 ? facts->step - 1 : 0;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < facts->stage_count; k++) {
        const rp_summary_stage *stage = &facts->stage[k];
        RP_TRY(put_fact(sink, facts, "memory_mib", k, (double)stage->device_bytes_max / (1 << 20)));
        RP_TRY(put_fact(sink, facts, "staleness_max", k, stage->gap_max));
        RP_TRY(put_fact(sink, facts, "in_flight_max", k, stage->in_flight_max));
    }
    for (uint32_t i = 0; i < facts->link_count; i++) {
        const rp_summary_link *link = &facts->link[i];
        char tag[64];
        (void)snprintf(tag, sizeof tag, "link_mb/%u-%u", link->from, link->to);
        RP_TRY(rp_tensorboard_scalar(sink, tag, (double)link->bytes * 1e-6, last, facts->wall_s));
    }
fail:
    return err;
}

static rp_err rewind_sink(void *sink, uint64_t step) {
    rp_tensorboard *board = sink;
    if (fflush(board->file) != 0 || fseek(board->file, 0, SEEK_SET) != 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", board->path, strerror(errno));
    }
    return drop_later_records(board, step);
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    const rp_tensorboard *board = sink;
    (void)summary;
    return fclose(board->file) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s: cannot be written: %s", board->path, strerror(errno));
}

const rp_sink_kind rp_sink_tensorboard = {.name = "tensorboard",
                                          .spared = true,
                                          .open = open_sink,
                                          .on_step = on_step,
                                          .on_eval = on_eval,
                                          .on_prediction = on_prediction,
                                          .on_facts = on_facts,
                                          .on_norm = on_norm,
                                          .on_histogram = on_histogram,
                                          .rewind = rewind_sink,
                                          .close = close_sink};
