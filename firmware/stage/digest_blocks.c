/* Commands of the digest executor on blocks of weights, states and gradients: optimisers,
 * predictions, averages. */
#include "stage/digest_own.h"

#include <string.h>

static rp_digest_optimise optimise_of(const digest_executor *e, const rp_optimise *by,
                                      uint32_t trained) {
    const uint32_t states = e->as.base.layout->state_count;
    rp_digest_optimise out = {
        .param = digest_trained(e, trained),
        .weight = digest_block(e, by->weights)[trained],
        .gradient = digest_block(e, (rp_block){RP_BLOCK_GRADIENT, 0})[trained],
        .state_count = e->as.base.job->optim.kind->state_count(&e->as.base.job->optim),
        .rate = by->rate,
        .grad_scale = by->grad_scale,
        .applied = by->applied,
    };
    for (uint32_t s = 0; s < states; s++) {
        out.state[s] =
            digest_block(e, (rp_block){RP_BLOCK_STATE, by->replica * states + s})[trained];
    }
    return out;
}

static void digest_update(digest_executor *e, const rp_optimise *by, uint32_t trained) {
    const uint32_t states = e->as.base.layout->state_count;
    if (e->as.base.layout->far[trained]) {
        return;
    }
    rp_digest_optimise at = optimise_of(e, by, trained);
    rp_digest_update(&at);
    digest_block(e, by->weights)[trained] = at.weight;
    for (uint32_t s = 0; s < states; s++) {
        digest_block(e, (rp_block){RP_BLOCK_STATE, by->replica * states + s})[trained] =
            at.state[s];
    }
}

static void digest_anchor(digest_executor *e, const rp_optimise *by, uint32_t trained) {
    const rp_optim *optim = &e->as.base.job->optim;
    const uint32_t anchor = rp_optim_anchor_state(optim);
    const uint32_t drift = rp_optim_drift_state(optim);
    const rp_digest_optimise at = optimise_of(e, by, trained);
    const rp_digest zero = {0};
    if (!e->as.base.layout->far[trained]) {
        digest_block(e, (rp_block){RP_BLOCK_GRADIENT, 0})[trained] = rp_digest_anchor(
            at.param, at.gradient, at.weight, anchor == RP_OPTIM_NO_STATE ? zero : at.state[anchor],
            drift == RP_OPTIM_NO_STATE ? zero : at.state[drift], (float)optim->anchor.mu);
    }
}

static void digest_predict(digest_executor *e, const rp_optimise *by, uint32_t trained) {
    const rp_digest_optimise at = optimise_of(e, by, trained);
    const float share = by->share ? by->share[trained] : 1.0f;
    digest_block(e, by->to)[trained] = rp_digest_predict(&at, by->ahead, share);
}

static void digest_average(digest_executor *e, const rp_command *command, uint32_t trained) {
    const rp_layout *layout = e->as.base.layout;
    const rp_block centre = {RP_BLOCK_CENTRE, 0};
    const rp_block scratch = {RP_BLOCK_SCRATCH, 0};
    rp_digest_average(command->average.term, digest_trained(e, trained),
                      &digest_block(e, command->average.x)[trained],
                      layout->copies.centres ? &digest_block(e, centre)[trained] : NULL,
                      layout->copies.scratches ? &digest_block(e, scratch)[trained] : NULL,
                      command->average.alpha, command->average.share);
}

static void digest_probe(digest_executor *e, rp_block newest, uint32_t trained) {
    const uint32_t count = e->as.base.layout->trained_count;
    for (uint32_t i = 0; i < RP_PROBE_NORMS; i++) {
        e->probe_norms[i * count + trained] = rp_digest_probe(
            i, digest_trained(e, trained), digest_block(e, (rp_block){RP_BLOCK_PROBE, 0})[trained],
            digest_block(e, (rp_block){RP_BLOCK_PROBE, 1})[trained],
            digest_block(e, newest)[trained]);
    }
}

static void digest_sum(digest_executor *e, const rp_command *command, uint32_t trained) {
    rp_digest sum = {0};
    for (uint32_t i = 0; i < command->sum.count; i++) {
        rp_digest summand;
        memcpy(&summand, (const char *)command->sum.gradient[i] + trained * sizeof summand,
               sizeof summand);
        sum = i == 0 ? summand : rp_digest_accumulate(sum, summand, e->strict);
    }
    digest_block(e, (rp_block){RP_BLOCK_GRADIENT, 0})[trained] = sum;
}

void rp_digest_run_block(digest_executor *e, const rp_command *command, uint32_t trained) {
    switch (command->kind) {
    case RP_COMMAND_NORMS:
        command->read.out[trained] =
            rp_digest_number(digest_block(e, (rp_block){RP_BLOCK_GRADIENT, 0})[trained]);
        return;
    case RP_COMMAND_BLOCK:
        memcpy((char *)command->read.out + trained * sizeof(rp_digest),
               &digest_block(e, command->read.block)[trained], sizeof(rp_digest));
        return;
    case RP_COMMAND_TAKE:
        memcpy(&digest_block(e, command->write.block)[trained],
               (const char *)command->write.from + trained * sizeof(rp_digest), sizeof(rp_digest));
        return;
    case RP_COMMAND_SUM:
        digest_sum(e, command, trained);
        return;
    case RP_COMMAND_COPY:
        digest_block(e, command->move.to)[trained] = digest_block(e, command->move.from)[trained];
        return;
    case RP_COMMAND_PROBE:
        digest_probe(e, command->move.from, trained);
        return;
    case RP_COMMAND_PREDICT:
        digest_predict(e, &command->optimise, trained);
        return;
    case RP_COMMAND_UPDATE:
        digest_update(e, &command->optimise, trained);
        return;
    case RP_COMMAND_ANCHOR:
        digest_anchor(e, &command->optimise, trained);
        return;
    case RP_COMMAND_AVERAGE:
        digest_average(e, command, trained);
        return;
    default:
        RP_ASSERT(false && "a command on blocks");
    }
}

void rp_digest_run_kept(digest_executor *e, const rp_command *command) {
    const uint32_t count = e->as.base.layout->param_count;
    rp_digest *kept = e->kept + (size_t)command->kept * count;
    for (uint32_t p = 0; p < count; p++) {
        const rp_param_role role = digest_param(e, p)->role;
        if (command->kind == RP_COMMAND_KEEP) {
            kept[p] = e->running[p];
        } else if (role == RP_PARAM_STATE) {
            e->running[p] = kept[p];
        } else if (role == RP_PARAM_SCRATCH) {
            e->running[p] = (rp_digest){0};
        }
    }
}
