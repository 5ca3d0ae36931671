/* Microbatches in flight, for checkpoints: the executor's memory as bytes. The bookkeeping is not
 * stored; a resumed run repeats it. */
#include "stage/stage_own.h"

static const rp_region in_flight = {.kind = RP_REGION_IN_FLIGHT};

size_t rp_stage_in_flight_bytes(const rp_stage *stage) {
    return rp_stage_facts(stage).in_flight_bytes;
}

rp_err rp_stage_in_flight_read(rp_stage *stage, size_t first, size_t count, void *out) {
    return stage->executor->kind->read(stage->executor, &in_flight, first, count, out);
}

rp_err rp_stage_in_flight_write(rp_stage *stage, size_t first, size_t count, const void *bytes) {
    return stage->executor->kind->write(stage->executor, &in_flight, first, count, bytes);
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
