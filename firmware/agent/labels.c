/* What the host's feed brings: inputs of the first stage, and labels, which wait for their step. */
#include <string.h>

#include "agent/runner_own.h"

/* The feed mixes labels and inputs: labels are put aside, an input stays the head. */
rp_err rp_runner_drain_feed(rp_runner *r) {
    for (;;) {
        if (!r->feed_head) {
            rp_err err = rp_link_recv(r->at.feed, &r->feed_head);
            if (err != RP_OK) {
                return err == RP_ERR_AGAIN ? RP_OK : err;
            }
        }
        if (r->feed_head->header.kind == RP_KIND_LABEL) {
            if (r->label_count == r->label_max) {
                return RP_OK;
            }
            r->label[r->label_count++] = r->feed_head;
        } else if (r->feed_head->header.kind == RP_KIND_INPUT && r->at.job->stage == 0) {
            if (r->input.head) {
                return RP_OK;
            }
            r->input.head = r->feed_head;
        } else {
            return rp_fail(RP_ERR_PEER, "the feed brought kind %d", (int)r->feed_head->header.kind);
        }
        r->feed_head = NULL;
    }
}

static uint32_t label_index(const rp_runner *r, uint64_t step) {
    uint32_t i = 0;
    while (i < r->label_count &&
           (r->label[i]->header.step != step || rp_of_evaluation(r->label[i]) != r->evaluating)) {
        i++;
    }
    return i;
}

rp_err rp_runner_find_target(rp_runner *r, const rp_op *op, const void **target) {
    uint32_t i = label_index(r, op->step);
    *target = NULL;
    if (i == r->label_count) {
        return i < r->label_max ? RP_OK
                                : rp_fail(RP_ERR_PEER, "no labels of step %llu among %u",
                                          (unsigned long long)op->step, i);
    }
    const rp_message *message = r->label[i];
    size_t width = r->at.job->loss->class_target ? 1 : r->at.job->target_width;
    uint32_t samples = rp_runner_step_samples(r, op->step);
    if (message->part_count != 1 || message->part[0].bytes != width * samples * sizeof(float)) {
        return rp_fail(RP_ERR_PEER, "labels of step %llu have the wrong size",
                       (unsigned long long)op->step);
    }
    *target = (const char *)message->part[0].data + op->samples.first * width * sizeof(float);
    return RP_OK;
}

void rp_runner_drop_label(rp_runner *r, uint64_t step) {
    uint32_t i = label_index(r, step);
    if (i == r->label_count) {
        return;
    }
    rp_link_release(r->at.feed, &r->label[i]);
    r->label_count--;
    memmove(r->label + i, r->label + i + 1, (r->label_count - i) * sizeof *r->label);
}
