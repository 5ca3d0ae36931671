/* Microbatches in flight, for checkpoints: the executor's memory as bytes. The books need none:
 * they are walked again. */
#include "stage/stage_own.h"

static const rp_region flight = {.kind = RP_REGION_FLIGHT};

size_t rp_stage_flight_bytes(const rp_stage *stage) {
    return rp_stage_facts(stage).flight_bytes;
}

rp_err rp_stage_flight_read(rp_stage *stage, size_t first, size_t count, void *out) {
    return stage->executor->kind->read(stage->executor, &flight, first, count, out);
}

rp_err rp_stage_flight_write(rp_stage *stage, size_t first, size_t count, const void *bytes) {
    return stage->executor->kind->write(stage->executor, &flight, first, count, bytes);
}

static void walk_slot(rp_stage *stage, const rp_op *op) {
    for (uint32_t i = 0; i < stage->layout->slots; i++) {
        rp_slot *slot = &stage->slot[i];
        if (op->kind == RP_OP_FORWARD ? !slot->busy
                                      : slot->busy && slot->step == op->step &&
                                            slot->samples.first == op->samples.first) {
            slot->busy = op->kind == RP_OP_FORWARD;
            slot->evaluating = false;
            slot->step = op->step;
            slot->samples = op->samples;
            return;
        }
    }
}

void rp_stage_resume(rp_stage *stage, uint64_t fill, uint64_t step) {
    rp_versions *versions = &stage->versions;
    rp_op op;
    rp_stage_start(stage, fill);
    for (uint32_t i = 0; i < stage->layout->slots; i++) {
        stage->slot[i].busy = false;
    }
    while (versions->list.step < step) {
        rp_sched_state list = versions->list;
        rp_sight sight = {0};
        if (!stage->job->method.kind->next(&list, &op)) {
            return;
        }
        if (op.kind == RP_OP_FORWARD) {
            sight = rp_versions_forward(versions, &op);
        } else if (op.kind == RP_OP_UPDATE) {
            (void)rp_versions_update(versions, &op);
        } else {
            sight = rp_versions_backward(versions, &op);
        }
        (void)rp_stage_probe_walk(stage, &op, &sight);
        if (op.kind != RP_OP_UPDATE) {
            walk_slot(stage, &op);
        }
    }
}
