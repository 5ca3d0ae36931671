/* The state of a stage as tensors and bytes: from a file of the host, and back to one. */
#include "agent/agent_own.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_FLOATS = RP_AGENT_PIECE_FLOATS };

/* Without a part nothing was in flight. */
rp_err rp_agent_on_in_flight(rp_agent *agent, const rp_message *message) {
    const rp_InFlight *piece = &message->frame.body.in_flight;
    rp_err err = RP_OK;
    if (piece->first == 0) {
        RP_TRY(rp_runner_resume(agent->run->runner, piece->fill_step, piece->total));
    }
    if (message->part_count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_runner_in_flight_write(agent->run->runner, piece->first, message->part[0].bytes,
                                     message->part[0].data));
fail:
    return err;
}

static bool has_tensor(const rp_stage *stage, const char *name) {
    for (uint32_t i = 0; i < rp_stage_tensor_count(stage, true); i++) {
        char own[sizeof((rp_Tensor *)0)->name];
        rp_shape shape;
        if (rp_stage_tensor_at(stage, i, own, sizeof own, &shape) == RP_OK &&
            strcmp(own, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Writes to every stage here that has the tensor; if none has, the first one reports the error. */
static rp_err write_tensor(agent_run *run, const rp_Tensor *piece, const rp_part *part) {
    const size_t count = part->bytes / sizeof(float);
    bool found = false;
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < run->held_count; h++) {
        rp_stage *stage = run->held[h].stage;
        if (run->held_count == 1 || has_tensor(stage, piece->name)) {
            RP_TRY(rp_stage_tensor_write(stage, piece->name, piece->first, count, part->data));
            found = true;
        }
    }
    RP_TRY(found ? RP_OK
                 : rp_stage_tensor_write(run->held[0].stage, piece->name, piece->first, count,
                                         part->data));
fail:
    return err;
}

rp_err rp_agent_on_tensor(rp_agent *agent, const rp_message *message) {
    const rp_Tensor *piece = &message->frame.body.tensor;
    if (message->part[0].dtype != RP_DTYPE_F32) {
        return rp_fail(RP_ERR_PEER, "tensor '%s' has dtype %d, expected %d", piece->name,
                       (int)message->part[0].dtype, (int)RP_DTYPE_F32);
    }
    return write_tensor(agent->run, piece, &message->part[0]);
}

/* After the tensors: the number of updates of each replica's optimiser, stage after stage. */
rp_err rp_agent_on_tensors_end(rp_agent *agent, const rp_message *message) {
    const agent_run *run = agent->run;
    const uint32_t replicas = rp_stage_replicas(run->held[0].stage);
    const uint32_t count = run->held_count * replicas;
    if (message->part_count != 1 || message->part[0].bytes != count * sizeof(uint64_t)) {
        return rp_fail(RP_ERR_PEER, "the end of the tensors: expected one number of updates for "
                                    "each replica of each stage");
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t applied;
        memcpy(&applied, (const char *)message->part[0].data + i * sizeof applied, sizeof applied);
        rp_stage_set_applied(run->held[i / replicas].stage, i % replicas, applied);
    }
    return RP_OK;
}

rp_err rp_agent_on_prediction_gain(rp_agent *agent, const rp_message *message) {
    const rp_PredictionGain *gain = &message->frame.body.prediction_gain;
    return rp_stage_set_gain(agent->run->held[0].stage, gain->step, message->part[0].data,
                             message->part[0].bytes / sizeof(double));
}

/* Sends to the host, or appends to the copy in progress. */
static rp_err put_piece(rp_agent *agent, rp_Frame *frame, const rp_part *part) {
    rp_copy *copy = agent->run->copy;
    return copy ? rp_copy_add(copy, frame, part) : rp_agent_answer(agent, frame, part, 1);
}

static rp_err send_in_flight(rp_agent *agent, size_t total) {
    agent_run *run = agent->run;
    float *piece = run->piece;
    const size_t rest = total - run->save_in_flight;
    const size_t bytes = rest < PIECE_FLOATS * sizeof *piece ? rest : PIECE_FLOATS * sizeof *piece;
    rp_Frame frame = {.which_body = RP_KIND_IN_FLIGHT,
                      .body.in_flight = {.first = run->save_in_flight,
                                         .total = total,
                                         .fill_step = rp_runner_fill_step(run->runner)}};
    const rp_part part = rp_part_of_bytes(piece, bytes);
    rp_err err;
    RP_TRY(rp_runner_in_flight_read(run->runner, run->save_in_flight, bytes, piece));
    RP_TRY(put_piece(agent, &frame, &part));
    run->save_in_flight += bytes;
fail:
    return err;
}

/* Advances to the next tensor that this board saves, in any stage here. */
static void find_saved(agent_run *run) {
    while (run->save_held < run->held_count) {
        const rp_stage *stage = run->held[run->save_held].stage;
        if (run->save_index == rp_stage_tensor_count(stage, true)) {
            run->save_index = 0;
            run->save_held++;
        } else if (rp_stage_tensor_is_saved(stage, run->save_index)) {
            return;
        } else {
            run->save_index++;
        }
    }
}

static rp_err send_tensor(rp_agent *agent) {
    agent_run *run = agent->run;
    float *piece = run->piece;
    rp_Frame frame = {.which_body = RP_KIND_TENSOR};
    rp_Tensor *tensor = &frame.body.tensor;
    rp_stage *stage = run->held[run->save_held].stage;
    rp_shape shape;
    rp_err err;
    RP_TRY(rp_stage_tensor_at(stage, run->save_index, tensor->name, sizeof tensor->name, &shape));
    const size_t total = rp_shape_count(&shape);
    const size_t rest = total - run->save_first;
    const size_t count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
    RP_TRY(rp_stage_tensor_read(stage, run->save_index, run->save_first, count, piece));
    tensor->first = run->save_first;
    tensor->total = total;
    const rp_part part = rp_part_of_array(RP_DTYPE_F32, piece, count);
    RP_TRY(put_piece(agent, &frame, &part));
    run->save_first += count;
    if (run->save_first == total) {
        run->save_first = 0;
        run->save_index++;
    }
    find_saved(run);
fail:
    return err;
}

void rp_agent_begin_save(rp_agent *agent) {
    agent->state = RP_AGENT_SAVING;
    agent->run->save_held = agent->run->save_index = 0;
    agent->run->save_first = agent->run->save_in_flight = 0;
    find_saved(agent->run);
}

rp_err rp_agent_on_save(rp_agent *agent, const rp_message *message) {
    (void)message;
    rp_agent_begin_save(agent);
    return RP_OK;
}

/* rp_agent_step_copies() reports the end of a copy. */
static rp_err end_save(rp_agent *agent) {
    rp_Frame frame = {.which_body = RP_KIND_TENSORS_END};
    agent->state = RP_AGENT_PAUSED;
    if (agent->run->copy) {
        agent->run->copy->is_whole = true;
        agent->run->copy = NULL;
        return RP_OK;
    }
    return rp_agent_answer(agent, &frame, NULL, 0);
}

rp_err rp_agent_continue_save(rp_agent *agent) {
    agent_run *run = agent->run;
    const size_t bytes = rp_agent_saved_in_flight(run);
    bool over = run->save_held == run->held_count && run->save_in_flight == bytes;
    rp_link_stats stats;
    rp_err err = RP_OK;
    rp_link_stats_of(agent->control, &stats);
    const uint64_t unacked = run->copy ? 0 : stats.unacked; /* a copy in memory needs no acks */
    for (uint64_t i = unacked; i < RP_AGENT_UNACKED_MAX && !over; i++) {
        RP_TRY(run->save_held < run->held_count ? send_tensor(agent)
                                                : send_in_flight(agent, bytes));
        over = run->save_held == run->held_count && run->save_in_flight == bytes;
    }
    if (over && unacked < RP_AGENT_UNACKED_MAX) {
        RP_TRY(end_save(agent));
    }
fail:
    return err;
}
