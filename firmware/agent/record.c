/* Records of a microbatch: sends the inputs of a stage here to the host, and recomputes records of
 * other boards' stages. */
#include "agent/agent_own.h"

#include <string.h>

/* ---- to the host ----------------------------------------------------------------------------- */

static rp_err send_piece(rp_agent *agent) {
    agent_run *run = agent->run;
    const size_t most = RP_AGENT_PIECE_FLOATS * sizeof *run->piece;
    const size_t rest = run->record_bytes - run->record_first;
    const size_t bytes = rest < most ? rest : most;
    const rp_record_digests *digests = &run->record_digests;
    rp_Frame frame = {.which_body = RP_KIND_RECORD,
                      .body.record = {.stage = run->held[run->save_held].job.stage,
                                      .first = run->record_first,
                                      .total = run->record_bytes,
                                      .forward = digests->forward,
                                      .backward = digests->backward,
                                      .gradient = digests->gradient}};
    const rp_part part = rp_part_of_bytes(run->piece, bytes);
    rp_stage_record_read(run->held[run->save_held].stage, run->record_first, bytes, run->piece);
    run->record_first += bytes;
    return rp_agent_answer(agent, &frame, &part, bytes > 0);
}

static rp_err begin_sending(rp_agent *agent, uint32_t stage) {
    agent_run *run = agent->run;
    uint32_t h = 0;
    rp_err err;
    while (h < run->held_count && run->held[h].job.stage != stage) {
        h++;
    }
    if (h == run->held_count) {
        return rp_fail(RP_ERR_PEER,
                       "the host asks for a record of stage %u, which this board does not hold",
                       stage);
    }
    run->save_held = h;
    run->record_first = 0;
    RP_TRY(rp_stage_record_end(run->held[h].stage, &run->record_bytes, &run->record_digests));
    if (run->record_bytes == 0) {
        return send_piece(agent);
    }
    agent->state = RP_AGENT_SAVING;
fail:
    return err;
}

rp_err rp_agent_continue_record(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_link_stats stats;
    rp_err err = RP_OK;
    rp_link_stats_of(agent->control, &stats);
    for (uint64_t i = stats.unacked;
         i < RP_AGENT_UNACKED_MAX && run->record_first < run->record_bytes; i++) {
        RP_TRY(send_piece(agent));
    }
    if (run->record_first == run->record_bytes) {
        run->record_bytes = 0;
        agent->state = RP_AGENT_PAUSED;
    }
fail:
    return err;
}

/* ---- recomputing ----------------------------------------------------------------------------- */

/* On the first piece: allocates memory for the record, if one can be that large. */
static rp_err begin_recompute(agent_run *run, const rp_Record *piece) {
    agent_recompute *recompute = &run->recompute;
    size_t most;
    rp_err err;
    rp_agent_end_recompute(run);
    if (piece->stage >= run->plan->stage_count) {
        return rp_fail(RP_ERR_PEER, "a record of stage %u, but the plan has %u stages",
                       piece->stage, run->plan->stage_count);
    }
    recompute->job = run->held[0].job;
    recompute->job.stage = piece->stage;
    rp_plan_codecs_of(run->plan, piece->stage, recompute->job.codec);
    recompute->job = rp_stage_record_job(&recompute->job);
    RP_TRY(rp_stage_record_bytes_max(&recompute->job, &most));
    if (piece->total > most) {
        return rp_fail(RP_ERR_PEER, "a record of stage %u has %llu bytes, expected at most %zu",
                       piece->stage, (unsigned long long)piece->total, most);
    }
    rp_arena_init(&recompute->arena, "record", 0);
    RP_TRY(RP_ARENA_NEW(&recompute->arena, (size_t)piece->total, &recompute->bytes));
    recompute->count = (size_t)piece->total;
fail:
    return err;
}

static rp_err take_piece(agent_run *run, const rp_Record *piece, const rp_part *part) {
    agent_recompute *recompute = &run->recompute;
    rp_err err = RP_OK;
    if (piece->first == 0) {
        RP_TRY(begin_recompute(run, piece));
    }
    if (!recompute->bytes || piece->stage != recompute->job.stage ||
        piece->first != recompute->got || part->bytes > recompute->count - recompute->got) {
        return rp_fail(RP_ERR_PEER, "a record of stage %u: a piece is out of order or too long",
                       piece->stage);
    }
    memcpy(recompute->bytes + recompute->got, part->data, part->bytes);
    recompute->got += part->bytes;
fail:
    return err;
}

rp_err rp_agent_on_record(rp_agent *agent, const rp_message *message) {
    const rp_Record *piece = &message->frame.body.record;
    agent_run *run = agent->run;
    rp_err err;
    if (message->part_count == 0) {
        return begin_sending(agent, piece->stage);
    }
    RP_TRY(take_piece(run, piece, &message->part[0]));
    if (run->recompute.got == run->recompute.count) {
        RP_TRY(rp_agent_start_build(agent));
    }
fail:
    return err;
}

rp_err rp_agent_report_recomputed(rp_agent *agent) {
    agent_run *run = agent->run;
    const rp_record_digests *digests = &run->recompute.digests;
    rp_Frame frame = {.which_body = RP_KIND_RECOMPUTED,
                      .body.recomputed = {.stage = run->recompute.job.stage,
                                          .forward = digests->forward,
                                          .backward = digests->backward,
                                          .gradient = digests->gradient}};
    rp_agent_end_recompute(run);
    agent->state = RP_AGENT_PAUSED;
    return rp_agent_answer(agent, &frame, NULL, 0);
}
