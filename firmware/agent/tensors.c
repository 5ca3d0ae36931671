/* What a stage holds, as tensors and bytes: from a file of the host, and back to one. */
#include "agent/agent_own.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_FLOATS = 65536, SAVE_UNACKED_MAX = 16 };

/* text: "flight", whole as in send_flight(); no part: there was nothing in flight. */
static rp_err on_flight(rp_agent *agent, const rp_message *message) {
    const uint64_t *whole = message->header.whole;
    rp_err err = RP_OK;
    if (message->part_count > 1 || message->header.whole_count < 3 || !agent->run.runner) {
        return rp_fail(RP_ERR_PEER, "microbatches in flight came at the wrong time");
    }
    if (whole[0] == 0) {
        RP_TRY(rp_runner_resume(agent->run.runner, whole[2], whole[1]));
    }
    if (message->part_count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_runner_flight_write(agent->run.runner, whole[0], message->part[0].bytes,
                                  message->part[0].data));
fail:
    return err;
}

/* text: name, whole[0]: first element; one part of floats. */
rp_err rp_agent_on_tensor(rp_agent *agent, const rp_message *message) {
    const bool flight = strcmp(message->header.text, RP_FLIGHT_NAME) == 0;
    if (!agent->run.stage || agent->run.active || (message->part_count != 1 && !flight) ||
        message->header.whole_count < 1) {
        return rp_fail(RP_ERR_PEER, "a tensor came at the wrong time");
    }
    if (flight) {
        return on_flight(agent, message);
    }
    return rp_stage_tensor_write(agent->run.stage, message->header.text, message->header.whole[0],
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

rp_err rp_agent_on_steer(rp_agent *agent, const rp_message *message) {
    if (!agent->run.stage || message->part_count != 1) {
        return rp_fail(RP_ERR_PEER, "trust in predictions came at the wrong time");
    }
    return rp_stage_trust(agent->run.stage, message->header.step, message->part[0].data,
                          message->part[0].bytes / sizeof(double));
}

static rp_err send_piece(rp_agent *agent, rp_Header *header, const float *piece, size_t bytes) {
    const rp_part part = {piece, bytes};
    const rp_shape shape = rp_shape_1((uint32_t)(bytes / sizeof(float)));
    header->kind = RP_KIND_TENSOR;
    rp_frame_add_shape(header, &shape);
    return rp_agent_answer(agent, header, &part, 1);
}

/* text: "flight", whole: first byte, all bytes, the step at which the pipes were filled. */
static rp_err send_flight(rp_agent *agent, size_t total, float piece[PIECE_FLOATS]) {
    agent_run *run = &agent->run;
    const size_t rest = total - run->save_flight;
    const size_t bytes = rest < PIECE_FLOATS * sizeof *piece ? rest : PIECE_FLOATS * sizeof *piece;
    rp_Header header = rp_Header_init_zero;
    rp_err err;
    (void)snprintf(header.text, sizeof header.text, "%s", RP_FLIGHT_NAME);
    header.whole_count = 3;
    header.whole[0] = run->save_flight;
    header.whole[1] = total;
    header.whole[2] = rp_runner_fill_step(run->runner);
    RP_TRY(rp_runner_flight_read(run->runner, run->save_flight, bytes, piece));
    RP_TRY(send_piece(agent, &header, piece, bytes));
    run->save_flight += bytes;
fail:
    return err;
}

/* text: name, whole: first element, all elements. */
static rp_err send_tensor(rp_agent *agent, float piece[PIECE_FLOATS]) {
    agent_run *run = &agent->run;
    rp_Header header = rp_Header_init_zero;
    rp_shape shape;
    rp_err err;
    RP_TRY(
        rp_stage_tensor_at(run->stage, run->save_index, header.text, sizeof header.text, &shape));
    const size_t total = rp_shape_count(&shape);
    const size_t rest = total - run->save_first;
    const size_t count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
    RP_TRY(rp_stage_tensor_read(run->stage, run->save_index, run->save_first, count, piece));
    header.whole_count = 2;
    header.whole[0] = run->save_first;
    header.whole[1] = total;
    RP_TRY(send_piece(agent, &header, piece, count * sizeof *piece));
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
                                       : send_flight(agent, flight, piece));
        over = run->save_index == total && run->save_flight == flight;
    }
    if (over && stats.unacked < SAVE_UNACKED_MAX) {
        rp_Header header = rp_Header_init_zero;
        header.kind = RP_KIND_TENSORS_END;
        RP_TRY(rp_agent_answer(agent, &header, NULL, 0));
        run->saving = false;
    }
fail:
    return err;
}
