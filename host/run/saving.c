/* A save: every board sends its tensors, the files appear when the last byte is there. */
#include "run/checkpoint_own.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/runner.h"

static const int64_t SAVE_NS = 600 * RP_NS_PER_S;

static uint32_t find_entry(const rp_tensor_list *list, const char *name) {
    uint32_t i = 0;
    while (i < list->count && strcmp(list->entry[i].name, name) != 0) {
        i++;
    }
    return i;
}

rp_err rp_checkpoint_message(rp_ring *ring, uint32_t stage, const rp_message *message) {
    const rp_kind kind = rp_frame_kind(&message->frame);
    const rp_Tensor *piece = &message->frame.body.tensor;
    rp_saving *saving = ring->saving;
    if (!saving) {
        return rp_fail(RP_ERR_PEER, "board %u sent tensors that nobody asked for", stage);
    }
    if (kind == RP_KIND_TENSORS_END) {
        if (saving->ended[stage]) {
            return rp_fail(RP_ERR_PEER, "board %u ended its tensors twice", stage);
        }
        saving->ended[stage] = true;
        saving->boards_left--;
        return RP_OK;
    }
    if (kind == RP_KIND_IN_FLIGHT) {
        return rp_checkpoint_save_flight(saving, stage, message);
    }
    uint32_t index = find_entry(&saving->list, piece->name);
    const rp_part *part = &message->part[0];
    if (index == saving->list.count || part->dtype != RP_DTYPE_F32) {
        return rp_fail(RP_ERR_PEER,
                       "board %u sent tensor '%s' of dtype %d, which the model does "
                       "not have",
                       stage, piece->name, (int)part->dtype);
    }
    if (piece->first > saving->list.entry[index].bytes / sizeof(float)) {
        return rp_fail(RP_ERR_PEER, "board %u sent elements behind the end of '%s'", stage,
                       piece->name);
    }
    uint64_t offset = piece->first * sizeof(float);
    rp_err err;
    RP_TRY(rp_st_write(saving->checkpoint, index, offset, part->data, part->bytes));
    if (saving->weights && index < saving->weight_count) {
        RP_TRY(rp_st_write(saving->weights, index, offset, part->data, part->bytes));
    }
fail:
    return err;
}

static rp_err open_writers(rp_arena *arena, rp_saving *saving, const rp_ring *ring,
                           const rp_cut *cut, const rp_position *position, const char *checkpoint,
                           const char *weights) {
    const char *const plain[] = {"format", "pt", NULL};
    const char *meta[RP_CHECKPOINT_META];
    rp_err err;
    RP_TRY(rp_checkpoint_meta(arena, ring, cut, position, meta));
    RP_TRY(rp_checkpoint_open_flight(arena, saving, ring, cut, checkpoint));
    RP_TRY(rp_st_create(arena, checkpoint, saving->list.entry, saving->list.count, meta,
                        &saving->checkpoint));
    if (weights) {
        RP_TRY(rp_st_create(arena, weights, saving->list.entry, saving->weight_count, plain,
                            &saving->weights));
    }
fail:
    return err;
}

rp_err rp_checkpoint_save(rp_ring *ring, const rp_cut *cut, const rp_steer *steer,
                          const rp_position *position, const char *folder,
                          const char *weights_path) {
    rp_arena arena;
    rp_arena_init(&arena, "checkpoint", 0);
    rp_saving own = {0};
    rp_saving *saving = &own;
    rp_tensor_list weights;
    char *checkpoint;
    rp_err err;
    RP_TRY(rp_checkpoint_list(&arena, ring->run, false, &weights));
    RP_TRY(rp_checkpoint_list(&arena, ring->run, true, &saving->list));
    saving->weight_count = weights.count;
    saving->fill = position->fill;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        err = rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
        goto fail;
    }
    RP_TRY(rp_arena_printf(&arena, &checkpoint, "%s/step-%010" PRIu64 ".safetensors", folder,
                           position->step));
    RP_TRY(open_writers(&arena, saving, ring, cut, position, checkpoint, weights_path));
    if (steer) {
        RP_TRY(rp_checkpoint_save_steer(&arena, steer, checkpoint));
    }
    ring->saving = saving;
    saving->boards_left = ring->count;
    const rp_Frame frame = {.which_body = RP_KIND_SAVE};
    RP_TRY(rp_ring_send_all(ring, &frame));
    int64_t deadline_ns = rp_clock_now_ns(&ring->clock) + SAVE_NS;
    while (saving->boards_left > 0) {
        RP_TRY(rp_ring_pump(ring, -1, 50 * RP_NS_PER_MS));
        if (rp_clock_now_ns(&ring->clock) > deadline_ns) {
            err =
                rp_fail(RP_ERR_TIMEOUT, "%u boards did not send their tensors within %" PRId64 " s",
                        saving->boards_left, SAVE_NS / RP_NS_PER_S);
            goto fail;
        }
    }
    if (saving->weights) { /* before the checkpoint that says that the run is over */
        RP_TRY(rp_st_commit(&saving->weights));
    }
    if (saving->flight) {
        RP_TRY(rp_st_commit(&saving->flight));
    }
    RP_TRY(rp_st_commit(&saving->checkpoint));
    rp_checkpoint_remove_old(folder);
fail:
    rp_st_abandon(&saving->flight);
    rp_st_abandon(&saving->checkpoint);
    rp_st_abandon(&saving->weights);
    ring->saving = NULL;
    rp_arena_finish(&arena);
    return err;
}
