/* What a stage holds, as tensors and bytes: from a file of the host, and back to one. */
#include "agent/agent_own.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_FLOATS = 65536, SAVE_UNACKED_MAX = 16 };

/* No part: there was nothing in flight. */
rp_err rp_agent_on_in_flight(rp_agent *agent, const rp_message *message) {
    const rp_InFlight *piece = &message->frame.body.in_flight;
    rp_err err = RP_OK;
    if (!agent->run.stage || agent->run.active || !agent->run.runner) {
        return rp_fail(RP_ERR_PEER, "microbatches in flight came at the wrong time");
    }
    if (piece->first == 0) {
        RP_TRY(rp_runner_resume(agent->run.runner, piece->fill_step, piece->total));
    }
    if (message->part_count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_runner_flight_write(agent->run.runner, piece->first, message->part[0].bytes,
                                  message->part[0].data));
fail:
    return err;
}

rp_err rp_agent_on_tensor(rp_agent *agent, const rp_message *message) {
    const rp_Tensor *piece = &message->frame.body.tensor;
    if (!agent->run.stage || agent->run.active) {
        return rp_fail(RP_ERR_PEER, "a tensor came at the wrong time");
    }
    if (message->part[0].dtype != RP_DTYPE_F32) {
        return rp_fail(RP_ERR_PEER, "tensor '%s' came with dtype %d, expected %d", piece->name,
                       (int)message->part[0].dtype, (int)RP_DTYPE_F32);
    }
    return rp_stage_tensor_write(agent->run.stage, piece->name, piece->first,
                                 message->part[0].bytes / sizeof(float), message->part[0].data);
}

/* Behind the tensors: how many updates each replica's optimiser has done. */
rp_err rp_agent_on_tensors_end(rp_agent *agent, const rp_message *message) {
    const uint32_t replicas = agent->run.stage ? rp_stage_replicas(agent->run.stage) : 0;
    if (message->part_count != 1 || message->part[0].bytes != replicas * sizeof(uint64_t)) {
        return rp_fail(RP_ERR_PEER, "the end of the tensors does not say what was applied");
    }
    for (uint32_t r = 0; r < replicas; r++) {
        uint64_t applied;
        memcpy(&applied, (const char *)message->part[0].data + r * sizeof applied, sizeof applied);
        rp_stage_set_applied(agent->run.stage, r, applied);
    }
    return RP_OK;
}

rp_err rp_agent_on_prediction_gain(rp_agent *agent, const rp_message *message) {
    const rp_PredictionGain *gain = &message->frame.body.prediction_gain;
    if (!agent->run.stage) {
        return rp_fail(RP_ERR_PEER, "a prediction gain came before the assignment");
    }
    return rp_stage_trust(agent->run.stage, gain->step, message->part[0].data,
                          message->part[0].bytes / sizeof(double));
}

static rp_err send_in_flight(rp_agent *agent, size_t total, float piece[PIECE_FLOATS]) {
    agent_run *run = &agent->run;
    const size_t rest = total - run->save_flight;
    const size_t bytes = rest < PIECE_FLOATS * sizeof *piece ? rest : PIECE_FLOATS * sizeof *piece;
    rp_Frame frame = {.which_body = RP_KIND_IN_FLIGHT,
                      .body.in_flight = {.first = run->save_flight,
                                         .total = total,
                                         .fill_step = rp_runner_fill_step(run->runner)}};
    const rp_part part = rp_part_of_bytes(piece, bytes);
    rp_err err;
    RP_TRY(rp_runner_flight_read(run->runner, run->save_flight, bytes, piece));
    RP_TRY(rp_agent_answer(agent, &frame, &part, 1));
    run->save_flight += bytes;
fail:
    return err;
}

static rp_err send_tensor(rp_agent *agent, float piece[PIECE_FLOATS]) {
    agent_run *run = &agent->run;
    rp_Frame frame = {.which_body = RP_KIND_TENSOR};
    rp_Tensor *tensor = &frame.body.tensor;
    rp_shape shape;
    rp_err err;
    RP_TRY(
        rp_stage_tensor_at(run->stage, run->save_index, tensor->name, sizeof tensor->name, &shape));
    const size_t total = rp_shape_count(&shape);
    const size_t rest = total - run->save_first;
    const size_t count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
    RP_TRY(rp_stage_tensor_read(run->stage, run->save_index, run->save_first, count, piece));
    tensor->first = run->save_first;
    tensor->total = total;
    const rp_part part = rp_part_of_array(RP_DTYPE_F32, piece, count);
    RP_TRY(rp_agent_answer(agent, &frame, &part, 1));
    run->save_first += count;
    if (run->save_first == total) {
        run->save_first = 0;
        run->save_index++;
    }
fail:
    return err;
}

void rp_agent_start_save(rp_agent *agent) {
    agent->run.saving = true;
    agent->run.save_index = 0;
    agent->run.save_first = agent->run.save_flight = 0;
}

rp_err rp_agent_continue_save(rp_agent *agent) {
    static float piece[PIECE_FLOATS];
    agent_run *run = &agent->run;
    uint32_t total = rp_stage_tensor_count(run->stage, true);
    size_t flight = run->runner ? rp_runner_flight_bytes(run->runner) : 0;
    bool over = run->save_index == total && run->save_flight == flight;
    rp_link_stats stats;
    rp_err err = RP_OK;
    rp_link_stats_of(agent->control, &stats);
    for (uint64_t i = stats.unacked; i < SAVE_UNACKED_MAX && !over; i++) {
        RP_TRY(run->save_index < total ? send_tensor(agent, piece)
                                       : send_in_flight(agent, flight, piece));
        over = run->save_index == total && run->save_flight == flight;
    }
    if (over && stats.unacked < SAVE_UNACKED_MAX) {
        rp_Frame frame = {.which_body = RP_KIND_TENSORS_END};
        RP_TRY(rp_agent_answer(agent, &frame, NULL, 0));
        run->saving = false;
    }
fail:
    return err;
}
