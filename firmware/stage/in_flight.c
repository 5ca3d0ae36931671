/* Microbatches in flight, for checkpoints: the executor's memory as bytes. The bookkeeping is not
 * stored; a resumed run repeats it. */
#include "stage/stage_own.h"

static const rp_region in_flight = {.kind = RP_REGION_IN_FLIGHT};

/* Bytes of the executor. */
static size_t memory_bytes(const rp_stage *stage) {
    return rp_stage_facts(stage).in_flight_bytes;
}

/* If steps have several lengths, the length of the samples in each slot follows, as a u32. */
static size_t time_bytes(const rp_stage *stage) {
    return stage->job->model->view_count > 0 ? stage->slots.count * sizeof(uint32_t) : 0;
}

size_t rp_stage_in_flight_bytes(const rp_stage *stage) {
    return memory_bytes(stage) + time_bytes(stage);
}

/* The part of [first, first + count) before `end`. */
static size_t part_before(size_t first, size_t count, size_t end) {
    const size_t here = first < end ? end - first : 0;
    return count < here ? count : here;
}

rp_err rp_stage_in_flight_read(rp_stage *stage, size_t first, size_t count, void *out) {
    const size_t memory = memory_bytes(stage);
    const size_t here = part_before(first, count, memory);
    rp_err err = RP_OK;
    if (here > 0) {
        RP_TRY(stage->executor->kind->read(stage->executor, &in_flight, first, here, out));
    }
    for (size_t i = here; i < count; i++) {
        const size_t at = first + i - memory;
        const rp_slot *slot = &stage->slots.slot[at / sizeof slot->time];
        const uint32_t time = slot->busy ? slot->time : 0;
        ((unsigned char *)out)[i] = (unsigned char)(time >> at % sizeof time * 8);
    }
fail:
    return err;
}

/* Sets one byte of a slot's length. The last one completes it. */
static rp_err write_time(rp_stage *stage, size_t at, unsigned char byte) {
    const uint32_t index = (uint32_t)(at / sizeof(uint32_t));
    const uint32_t shift = (uint32_t)(at % sizeof(uint32_t)) * 8;
    rp_slot *slot = &stage->slots.slot[index];
    slot->time = (shift > 0 ? slot->time : 0) | (uint32_t)byte << shift;
    slot->has_time = slot->busy;
    return shift < 24 || rp_model_has_time(stage->job->model, slot->time)
               ? RP_OK
               : rp_fail(RP_ERR_PEER,
                         "in-flight state: slot %u has samples of %u tokens, which is no length "
                         "of the run",
                         index, slot->time);
}

rp_err rp_stage_in_flight_write(rp_stage *stage, size_t first, size_t count, const void *bytes) {
    const size_t memory = memory_bytes(stage);
    const size_t here = part_before(first, count, memory);
    rp_err err = RP_OK;
    if (here > 0) {
        RP_TRY(stage->executor->kind->write(stage->executor, &in_flight, first, here, bytes));
    }
    for (size_t i = here; i < count; i++) {
        RP_TRY(write_time(stage, first + i - memory, ((const unsigned char *)bytes)[i]));
    }
fail:
    return err;
}

/* The slots of half a stage are empty between ops, so only a whole stage is walked. */
static void walk_slot(rp_stage *stage, const rp_op *op) {
    if (stage->job->role != RP_ROLE_BOTH) {
        return;
    }
    const rp_stash stash = rp_slots_find(&stage->slots, op, false);
    if (op->kind == RP_OP_FORWARD) {
        (void)rp_slots_place(&stage->slots, op, false, rp_job_slot_range(stage->job, op));
    } else if (op->kind != RP_OP_BACKWARD_INPUT && stash.slot != RP_NO_SLOT) {
        rp_slots_release(&stage->slots, stash.slot, op);
    }
}

void rp_stage_resume(rp_stage *stage, uint64_t fill_step, uint64_t step) {
    rp_versions *versions = &stage->versions;
    rp_op op;
    rp_stage_start(stage, fill_step);
    rp_slots_clear(&stage->slots);
    while (versions->list.step < step) {
        rp_sched_state list = versions->list;
        rp_weight_view view = {0};
        if (!rp_job_next(stage->job, &list, &op) ||
            (stage->job->role == RP_ROLE_FORWARD && list.step >= step)) {
            /* The half with the backwards has reached the step; this board's remaining forwards
             * belong to later steps. */
            return;
        }
        if (op.kind == RP_OP_FORWARD) {
            view = rp_versions_forward(versions, &op);
        } else if (op.kind == RP_OP_UPDATE) {
            (void)rp_versions_update(versions, &op);
        } else {
            view = rp_versions_backward(versions, &op);
        }
        (void)rp_stage_probe_walk(stage, &op, &view);
        if (op.kind != RP_OP_UPDATE) {
            walk_slot(stage, &op);
        }
    }
}
