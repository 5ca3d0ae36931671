/* Checks whether a board supports what the run asks for. */
#include <string.h>

#include "base/log.h"
#include "setup/assignment.h"
#include "setup/setup_own.h"

/* If a board cannot normalise bytes, all boards get f32, unless the run file asks for bytes. */
static void choose_inputs(rp_arrangement *a, const char *name, const rp_Hello *board) {
    const uint64_t needed = RP_WIRE_FEATURE_CODECS | RP_WIRE_FEATURE_UINT8;
    if (a->run.inputs_auto && !a->given && a->run.input_codec == RP_CODEC_UINT8 &&
        (board->features & needed) != needed) {
        rp_arrangement_lower_inputs(a);
        rp_log_warn("board %s (ringpipe %s) does not support inputs as uint8: all boards get f32, "
                    "four times the bytes",
                    name, board->software);
    }
}

/* A board without codecs would misread encoded bytes. */
static rp_err check_codecs(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    const bool encodes = a->given ? rp_plan_has_codec(a->given)
                                  : a->run.codec_auto || a->run.input_codec != RP_CODEC_F32 ||
                                        rp_codecs_any(a->run.codec, a->run.stages);
    const rp_codec inputs = a->given ? rp_plan_input_codec(a->given) : a->run.input_codec;
    const bool bytes = inputs == RP_CODEC_UINT8;
    const uint64_t needed =
        (encodes ? RP_WIRE_FEATURE_CODECS : 0) | (bytes ? RP_WIRE_FEATURE_UINT8 : 0);
    return (board->features & needed) == needed
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) does not support codec%s, which links asks for: "
                         "update ringpipe on the board",
                         name, board->software, bytes ? " uint8" : "s");
}

/* ring.verify needs boards that record microbatches. */
static rp_err check_records(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    const uint64_t needed = RP_WIRE_FEATURE_RECORDS |
                            (a->run.sizes.in_use ? RP_WIRE_FEATURE_SIZE_RECORDS : UINT64_C(0));
    return a->run.safety.verify == 0 || (board->features & needed) == needed
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) cannot recompute microbatches, which ring.verify "
                         "needs: update ringpipe on the board",
                         name, board->software);
}

/* A different device rounds differently and would be mistaken for a faulty one. */
rp_err rp_arrangement_check_device(const rp_arrangement *a, uint32_t place) {
    const rp_board_state *board = &a->ring->board[place];
    RP_ASSERT(place < a->ring->count && board->device);
    for (uint32_t k = 0; a->run.safety.verify > 0 && k < a->ring->count; k++) {
        const rp_board_state *other = &a->ring->board[k];
        if (other->device && strcmp(other->device, board->device) != 0) {
            return rp_fail(RP_ERR_USAGE,
                           "ring.verify compares the bits of equal devices: board %s has '%s', "
                           "board %s has '%s'",
                           other->name, other->device, board->name, board->device);
        }
    }
    return RP_OK;
}

/* ring.copy_steps needs copies on every board, because neighbours keep them for each other. */
static rp_err check_copies(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    return a->run.safety.copy_steps == 0 || (board->features & RP_WIRE_FEATURE_COPIES)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) does not support copies, which ring.copy_steps "
                         "needs: update ringpipe on the board",
                         name, board->software);
}

/* An older board would refuse the model file, or train the uses of a tensor apart. */
static rp_err check_names(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    return !rp_model_has_names(a->run.model) || (board->features & RP_WIRE_FEATURE_TIES)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) does not support `names` of layers, which the "
                         "model has: update ringpipe on the board",
                         name, board->software);
}

/* An older board would refuse the assignment. */
static rp_err check_storage(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    return a->run.storage == RP_F32 || (board->features & RP_WIRE_FEATURE_STORAGE)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) cannot store activations in 16 bits, which "
                         "train.storage asks for: update ringpipe on the board",
                         name, board->software);
}

/* An older board would refuse the assignment. */
static rp_err check_anchor(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    return !rp_optim_is_anchored(&a->run.optim) || (board->features & RP_WIRE_FEATURE_ANCHOR)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) cannot add a term to gradients, which "
                         "train.anchor asks for: update ringpipe on the board",
                         name, board->software);
}

/* An older board would refuse the lengths in its assignment. */
static rp_err check_times(const rp_arrangement *a, const char *name, const rp_Hello *board) {
    return a->run.data.buckets.count == 0 || (board->features & RP_WIRE_FEATURE_TIMES)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "board %s (ringpipe %s) does not support steps of several lengths, which "
                         "data.buckets asks for: update ringpipe on the board",
                         name, board->software);
}

rp_err rp_arrangement_check_software(rp_arrangement *a, uint32_t board, const rp_Hello *hello) {
    const char *name = a->ring->board[board].name;
    rp_err err;
    RP_ASSERT(board < a->ring->count);
    choose_inputs(a, name, hello);
    RP_TRY(check_codecs(a, name, hello));
    RP_TRY(check_records(a, name, hello));
    RP_TRY(check_copies(a, name, hello));
    RP_TRY(check_names(a, name, hello));
    RP_TRY(check_storage(a, name, hello));
    RP_TRY(check_times(a, name, hello));
    RP_TRY(check_anchor(a, name, hello));
fail:
    return err;
}
