/* A save: boards send pieces in any order; the files appear after the last piece. */
#include "checkpoint/checkpoint_own.h"

#include <inttypes.h>
#include <string.h>

#include "base/folders.h"

struct rp_checkpoint_writer {
    rp_checkpoint_list list;
    uint32_t weight_count; /* number of weights, which come first in the list */
    rp_st_writer *checkpoint, *weights, *in_flight, *gains;
    rp_checkpoint_sidecars sidecars;
    const char *folder;
    const char *path;       /* of the checkpoint */
    const char *not_finite; /* first tensor with a value that is not finite; NULL: none yet */
};

static rp_err create_files(rp_arena *arena, const rp_checkpoint_content *content,
                           const char *checkpoint, rp_checkpoint_writer *writer) {
    const char *const plain[] = {"format", "pt", NULL};
    const char *meta[RP_CHECKPOINT_META];
    rp_err err;
    RP_TRY(rp_checkpoint_create_in_flight(arena, content, checkpoint, &writer->sidecars.in_flight,
                                          &writer->in_flight));
    RP_TRY(rp_checkpoint_create_gains(arena, content->estimator, checkpoint,
                                      &writer->sidecars.gains, &writer->gains));
    RP_TRY(rp_checkpoint_make_meta(arena, content->run, content->plan, content->position,
                                   content->applied, &writer->sidecars, meta));
    RP_TRY(rp_st_create(arena, checkpoint, writer->list.entry, writer->list.count, meta, true,
                        &writer->checkpoint));
    if (content->weights) {
        RP_TRY(rp_st_create(arena, content->weights, writer->list.entry, writer->weight_count,
                            plain, false, &writer->weights));
    }
fail:
    return err;
}

rp_err rp_checkpoint_open_writer(rp_arena *arena, const rp_checkpoint_content *content,
                                 rp_checkpoint_writer **out) {
    rp_checkpoint_writer *writer = NULL;
    rp_checkpoint_list weights;
    char *checkpoint;
    char *folder;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &writer));
    RP_TRY(rp_checkpoint_make_list(arena, content->run, false, &weights));
    RP_TRY(rp_checkpoint_make_list(arena, content->run, true, &writer->list));
    RP_TRY(rp_arena_string(arena, content->folder, &folder));
    writer->folder = folder;
    writer->weight_count = weights.count;
    RP_TRY(rp_folders_make_own(folder, 0777));
    RP_TRY(rp_arena_printf(arena, &checkpoint, "%s/step-%010" PRIu64 ".safetensors", folder,
                           content->position->step));
    writer->path = checkpoint;
    RP_TRY(create_files(arena, content, checkpoint, writer));
    *out = writer;
    return RP_OK;
fail:
    rp_checkpoint_abandon(&writer);
    return err;
}

static uint32_t find_entry(const rp_checkpoint_list *list, const char *name) {
    uint32_t i = 0;
    while (i < list->count && strcmp(list->entry[i].name, name) != 0) {
        i++;
    }
    return i;
}

rp_err rp_checkpoint_write_tensor(rp_checkpoint_writer *writer, uint32_t stage, const char *name,
                                  uint64_t first, const void *data, size_t bytes) {
    const uint32_t index = find_entry(&writer->list, name);
    rp_err err;
    if (index == writer->list.count) {
        return rp_fail(RP_ERR_PEER, "board %u sent the unknown tensor '%s'", stage, name);
    }
    if (first > writer->list.entry[index].bytes / sizeof(float)) {
        return rp_fail(RP_ERR_PEER, "board %u sent elements after the end of '%s'", stage, name);
    }
    uint64_t at;
    if (!writer->not_finite && !rp_st_are_finite(data, bytes / sizeof(float), &at)) {
        writer->not_finite = writer->list.entry[index].name;
    }
    const uint64_t offset = first * sizeof(float);
    RP_TRY(rp_st_write(writer->checkpoint, index, offset, data, bytes));
    if (writer->weights && index < writer->weight_count) {
        RP_TRY(rp_st_write(writer->weights, index, offset, data, bytes));
    }
fail:
    return err;
}

rp_err rp_checkpoint_write_in_flight(rp_checkpoint_writer *writer, uint32_t part, uint64_t first,
                                     const void *data, size_t bytes) {
    if (!writer->in_flight) {
        return rp_fail(RP_ERR_PEER,
                       "part %u of the ring has in-flight state that its report did not announce",
                       part);
    }
    return rp_st_write(writer->in_flight, part, first, data, bytes);
}

const char *rp_checkpoint_not_finite(const rp_checkpoint_writer *writer) {
    return writer->not_finite;
}

rp_err rp_checkpoint_commit(rp_checkpoint_writer **taken) {
    rp_checkpoint_writer *writer = *taken;
    rp_err err = RP_OK;
    if (writer->weights) { /* before the checkpoint, because the last checkpoint ends the run */
        RP_TRY(rp_st_commit(&writer->weights));
    }
    if (writer->not_finite) {
        goto fail; /* no run could resume from it, so earlier checkpoints are kept */
    }
    if (writer->in_flight) {
        RP_TRY(rp_st_commit(&writer->in_flight));
    }
    if (writer->gains) {
        RP_TRY(rp_st_commit(&writer->gains));
    }
    RP_TRY(rp_st_commit(&writer->checkpoint)); /* names both sidecar files, so it comes last */
    rp_checkpoint_remove_other_sidecars(writer->path, &writer->sidecars);
    rp_checkpoint_remove_old(writer->folder);
fail:
    rp_checkpoint_abandon(taken);
    return err;
}

void rp_checkpoint_abandon(rp_checkpoint_writer **taken) {
    rp_checkpoint_writer *writer = *taken;
    *taken = NULL;
    if (writer) {
        rp_st_abandon(&writer->in_flight);
        rp_st_abandon(&writer->gains);
        rp_st_abandon(&writer->checkpoint);
        rp_st_abandon(&writer->weights);
    }
}
