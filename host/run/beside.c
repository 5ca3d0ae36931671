/* What lies beside a checkpoint, under its name: microbatches in flight, trust in predictions. */
#include "run/checkpoint_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/runner.h"

static rp_err path_beside(rp_arena *arena, const char *checkpoint, const char *end, char **out) {
    const size_t stem = strlen(checkpoint) - strlen(".safetensors");
    return rp_arena_printf(arena, out, "%.*s%s", (int)stem, checkpoint, end);
}

/* ---- trust in predictions -------------------------------------------------------------------- */

rp_err rp_checkpoint_save_steer(rp_arena *arena, const rp_steer *steer, const char *checkpoint) {
    const size_t count = rp_steer_size(steer);
    const rp_st_entry entry = {.name = "steer",
                               .type = RP_ST_F64,
                               .dims = 1,
                               .dim = {count},
                               .bytes = count * sizeof(double)};
    const char *const none[] = {NULL};
    rp_st_writer *writer = NULL;
    double *values;
    char *path;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count, &values));
    rp_steer_pack(steer, values);
    RP_TRY(path_beside(arena, checkpoint, ".steer", &path));
    RP_TRY(rp_st_create(arena, path, &entry, 1, none, &writer));
    RP_TRY(rp_st_write(writer, 0, 0, values, count * sizeof *values));
    RP_TRY(rp_st_commit(&writer));
fail:
    rp_st_abandon(&writer);
    return err;
}

rp_err rp_checkpoint_load_steer(const char *path, rp_steer *steer) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    char *beside;
    rp_err err;
    rp_arena_init(&arena, "trust", 0);
    RP_TRY(path_beside(&arena, path, ".steer", &beside));
    RP_TRY(rp_st_open(&arena, beside, &reader));
    const rp_st_entry *entry = rp_st_find(reader, "steer");
    if (!entry || entry->type != RP_ST_F64 ||
        entry->bytes != rp_steer_size(steer) * sizeof(double)) {
        err = rp_fail(RP_ERR_FORMAT, "%s: is not the trust in predictions of this model", beside);
        goto fail;
    }
    double *values;
    RP_TRY(RP_ARENA_NEW(&arena, rp_steer_size(steer), &values));
    memcpy(values, rp_st_data(reader, entry), entry->bytes);
    RP_TRY(rp_steer_unpack(steer, values));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

/* ---- in flight ------------------------------------------------------------------------------- */

/* One entry of bytes a stage. */
rp_err rp_checkpoint_open_flight(rp_arena *arena, rp_saving *saving, const rp_ring *ring,
                                 const rp_cut *cut, const char *checkpoint) {
    rp_st_entry *entry;
    uint64_t bytes = 0;
    char *path;
    char *made_for;
    char *fill;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &entry));
    for (uint32_t k = 0; k < ring->count; k++) {
        char *name;
        RP_TRY(rp_arena_printf(arena, &name, "stage.%u", k));
        entry[k] = (rp_st_entry){.name = name,
                                 .type = RP_ST_U8,
                                 .dims = 1,
                                 .dim = {ring->board[k].flight_bytes},
                                 .bytes = ring->board[k].flight_bytes};
        bytes += ring->board[k].flight_bytes;
    }
    if (bytes == 0) {
        return RP_OK;
    }
    RP_TRY(rp_checkpoint_cut_text(arena, ring->run->model, cut, &made_for));
    RP_TRY(rp_arena_printf(arena, &fill, "%" PRIu64, saving->fill));
    const char *const meta[] = {"cut", made_for, "fill", fill, NULL};
    RP_TRY(path_beside(arena, checkpoint, ".flight", &path));
    RP_TRY(rp_st_create(arena, path, entry, ring->count, meta, &saving->flight));
fail:
    return err;
}

rp_err rp_checkpoint_save_flight(rp_saving *saving, uint32_t stage, const rp_message *message) {
    if (message->part_count != 1 || message->header.whole_count < 3 || !saving->flight) {
        return rp_fail(RP_ERR_PEER, "board %u sent microbatches in flight that nobody asked for",
                       stage);
    }
    const rp_part *part = &message->part[0];
    return rp_st_write(saving->flight, stage, message->header.whole[0], part->data, part->bytes);
}

static rp_err send_flight(rp_ring *ring, uint32_t stage, uint64_t fill, const char *bytes,
                          size_t count) {
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_TENSOR;
    (void)snprintf(header.text, sizeof header.text, "%s", RP_FLIGHT_NAME);
    header.whole_count = 3;
    header.whole[1] = count;
    header.whole[2] = fill;
    return rp_checkpoint_send(ring, stage, header, 1, bytes, count);
}

/* The flight file's entries of all stages, or an error that says what does not fit. */
static rp_err send_flights(rp_ring *ring, const rp_st_reader *reader, const char *path,
                           uint64_t fill) {
    for (uint32_t k = 0; k < ring->count; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "stage.%u", k);
        const rp_st_entry *entry = rp_st_find(reader, name);
        if (!entry || entry->type != RP_ST_U8 || entry->bytes % sizeof(float)) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s: missing, or not a run of bytes", path, name);
        }
        rp_err err = send_flight(ring, k, fill, rp_st_data(reader, entry), entry->bytes);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_checkpoint_load_flight(rp_ring *ring, const rp_cut *cut, const char *path, uint64_t step,
                                 uint64_t *fill) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    char *beside;
    char *own_cut;
    rp_err err;
    rp_arena_init(&arena, "in flight", 0);
    *fill = step;
    RP_TRY(path_beside(&arena, path, ".flight", &beside));
    if (access(beside, F_OK) != 0) {
        goto fail;
    }
    RP_TRY(rp_st_open(&arena, beside, &reader));
    RP_TRY(rp_checkpoint_cut_text(&arena, ring->run->model, cut, &own_cut));
    const char *made_for = rp_st_meta(reader, "cut");
    const char *filled = rp_st_meta(reader, "fill");
    if (!made_for || !filled) {
        err = rp_fail(RP_ERR_FORMAT, "%s: has no `cut` and `fill`", beside);
        goto fail;
    }
    if (strcmp(made_for, own_cut) == 0) {
        const uint64_t from = strtoull(filled, NULL, 10);
        if (from > step) {
            err = rp_fail(RP_ERR_FORMAT, "%s: `fill` lies behind step %" PRIu64, beside, step);
            goto fail;
        }
        RP_TRY(send_flights(ring, reader, beside, from));
        *fill = from;
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}
