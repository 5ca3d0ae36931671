/* Copies of what the stages hold (copies.h): made between two segments, sent to the neighbour that
 * keeps them while the run continues, and sent to the host when a board is lost. */
#include "agent/agent_own.h"

#include <inttypes.h>

/* Bytes of a copy in flight to its keeper: as many as the wire moves in ON_WAY_S, if its rate is
 * known, so that no parcel waits longer for them. */
enum { ON_WAY_LEAST = 8192, ON_WAY_MOST = 16 * RP_COPY_PIECE_MAX, FETCH_UNACKED_MAX = 16 };
static const double ON_WAY_S = 0.008;

/* ---- making ---------------------------------------------------------------------------------- */

static size_t tensor_room(const rp_shape *shape) {
    const size_t count = rp_shape_count(shape);
    const size_t pieces = (count + RP_AGENT_PIECE_FLOATS - 1) / RP_AGENT_PIECE_FLOATS;
    return count * sizeof(float) + pieces * rp_copy_room(0);
}

size_t rp_agent_copy_bytes(const agent_run *run) {
    const size_t piece = RP_AGENT_PIECE_FLOATS * sizeof(float);
    const size_t in_flight = run->runner ? rp_runner_in_flight_bytes(run->runner) : 0;
    size_t bytes = in_flight + (in_flight / piece + 1) * rp_copy_room(0);
    for (uint32_t h = 0; h < run->held_count; h++) {
        for (uint32_t i = 0; i < rp_stage_tensor_count(run->held[h].stage, true); i++) {
            char name[sizeof((rp_Tensor *)0)->name];
            rp_shape shape;
            if (rp_stage_tensor_at(run->held[h].stage, i, name, sizeof name, &shape) == RP_OK) {
                bytes += tensor_room(&shape);
            }
        }
    }
    return bytes;
}

rp_err rp_agent_on_copy(rp_agent *agent, const rp_message *message) {
    const rp_Copy *order = &message->frame.body.copy;
    agent_run *run = agent->run;
    rp_err err;
    agent->fetched = NULL;
    run->copy_term = run->identity;
    rp_copies_drop_others(&agent->copies, run->copy_term, order->keep);
    RP_TRY(rp_copies_begin(&agent->copies, run->copy_term, order->step, run->node,
                           rp_agent_copy_bytes(run), &run->copy));
    run->copy_step = order->step;
    run->copy_bytes_max = order->bytes_max;
    run->copy_sent = run->copy_got = 0;
    run->copy_begun = false;
    rp_agent_begin_save(agent);
fail:
    return err;
}

/* ---- between neighbours ---------------------------------------------------------------------- */

static uint64_t on_way_max(const rp_link *link) {
    rp_link_stats stats;
    rp_link_stats_of(link, &stats);
    const double fits = stats.rate > 0 ? stats.rate * ON_WAY_S : 2 * RP_COPY_PIECE_MAX;
    return fits < ON_WAY_LEAST  ? ON_WAY_LEAST
           : fits < ON_WAY_MOST ? (uint64_t)fits
                                : (uint64_t)ON_WAY_MOST;
}

static rp_link *link_to(const agent_run *run, uint32_t node) {
    uint32_t i = 0;
    while (i < run->neighbour_count && run->neighbour[i].node != node) {
        i++;
    }
    return i < run->neighbour_count ? run->neighbour[i].link : NULL;
}

/* A stage without tensors also has a copy: the keeper acknowledges it.
 * errors  AGAIN: nothing more can be sent now */
static rp_err send_piece(agent_run *run, const rp_copy *own, rp_link *link, uint64_t on_way) {
    const uint64_t room = run->copy_got + on_way - run->copy_sent;
    const uint64_t rest = own->got - run->copy_sent;
    uint64_t bytes = on_way / 2 < RP_COPY_PIECE_MAX ? on_way / 2 : RP_COPY_PIECE_MAX;
    bytes = bytes < rest ? bytes : rest;
    if ((bytes == 0 && run->copy_begun) || bytes > room) {
        return RP_ERR_AGAIN;
    }
    const rp_part part = rp_part_of_bytes(own->bytes + run->copy_sent, bytes);
    rp_Frame frame = {
        .which_body = RP_KIND_COPY_PIECE,
        .body.copy_piece = {.step = own->step, .first = run->copy_sent, .total = own->got}};
    const rp_err err = rp_link_send(link, &frame, &part, bytes > 0, true, NULL, NULL);
    run->copy_sent += err == RP_OK ? bytes : 0;
    run->copy_begun |= err == RP_OK;
    return err;
}

static rp_err send_pieces(rp_agent *agent) {
    agent_run *run = agent->run;
    const rp_copy *own = rp_copies_find(&agent->copies, run->copy_term, run->copy_step, run->node);
    rp_link *link = own ? link_to(run, rp_plan_keeper(run->plan, run->node)) : NULL;
    const uint64_t on_way = link ? on_way_max(link) : 0;
    rp_err err = link && own->is_whole ? RP_OK : RP_ERR_AGAIN;
    while (err == RP_OK) {
        err = send_piece(run, own, link, on_way);
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

static uint32_t node_at(const agent_run *run, const rp_link *link) {
    uint32_t i = 0;
    while (i + 1 < run->neighbour_count && run->neighbour[i].link != link) {
        i++;
    }
    return run->neighbour[i].node;
}

/* The host orders a copy from every board before it lets any of them continue. */
static rp_err find_place(rp_agent *agent, const rp_CopyPiece *piece, uint32_t node, rp_copy **out) {
    const agent_run *run = agent->run;
    *out = rp_copies_find(&agent->copies, run->copy_term, piece->step, node);
    if (piece->step == 0 || piece->step != run->copy_step || piece->total > run->copy_bytes_max ||
        rp_plan_keeper(run->plan, node) != run->node || (*out && (*out)->room != piece->total)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s sent %" PRIu64 " bytes as its copy of step %" PRIu64
                       ", which this board does not keep",
                       rp_plan_node_name(run->plan, node), piece->total, piece->step);
    }
    return *out ? RP_OK
                : rp_copies_begin(&agent->copies, run->copy_term, piece->step, node, piece->total,
                                  out);
}

static rp_err take_piece(rp_agent *agent, rp_link *link, const rp_message *message) {
    const rp_CopyPiece *piece = &message->frame.body.copy_piece;
    const rp_part none = {0};
    const rp_part *part = message->part_count > 0 ? &message->part[0] : &none;
    rp_copy *copy;
    rp_err err;
    RP_TRY(find_place(agent, piece, node_at(agent->run, link), &copy));
    rp_Frame frame = {.which_body = RP_KIND_COPY_GOT,
                      .body.copy_got = {.step = copy->step, .bytes = copy->got + part->bytes}};
    RP_TRY(rp_link_send(link, &frame, NULL, 0, true, NULL, NULL)); /* AGAIN: nothing was taken */
    RP_TRY(rp_copy_add_bytes(copy, piece->first, part->data, part->bytes));
fail:
    return err;
}

rp_err rp_agent_take_copying(void *context, rp_link *link, const rp_message *message) {
    rp_agent *agent = context;
    agent_run *run = agent->run;
    const rp_CopyGot *got = &message->frame.body.copy_got;
    const rp_kind kind = rp_frame_kind(&message->frame);
    if (kind == RP_KIND_COPY_PIECE) {
        return take_piece(agent, link, message);
    }
    if (kind != RP_KIND_COPY_GOT) {
        return rp_fail(RP_ERR_PEER, "received %s over a data link; expected only data and copies",
                       rp_kind_name(kind));
    }
    if (got->step < run->copy_step) {
        return RP_OK; /* the host learned before this board that the last copies are complete */
    }
    if (got->step != run->copy_step || got->bytes > run->copy_sent || got->bytes < run->copy_got) {
        return rp_fail(RP_ERR_PEER,
                       "board %s acknowledged %" PRIu64 " bytes of the copy of step %" PRIu64
                       ", but %" PRIu64 " were sent",
                       rp_plan_node_name(run->plan, node_at(run, link)), got->bytes, got->step,
                       run->copy_sent);
    }
    run->copy_got = got->bytes;
    return RP_OK;
}

/* ---- to the host ----------------------------------------------------------------------------- */

static rp_err tell_copy(rp_agent *agent, rp_copy *copy) {
    rp_Frame frame = {
        .which_body = RP_KIND_COPIED,
        .body.copied = {.term = copy->run.term, .step = copy->step, .node = copy->node}};
    copy->is_told = true;
    return rp_agent_answer(agent, &frame, NULL, 0);
}

static bool has_room(const rp_agent *agent, uint64_t most) {
    rp_link_stats stats;
    rp_link_stats_of(agent->control, &stats);
    return stats.unacked < most;
}

rp_err rp_agent_step_copies(rp_agent *agent) {
    rp_err err;
    RP_TRY(send_pieces(agent));
    for (uint32_t i = 0; i < RP_COPIES_MAX; i++) {
        rp_copy *copy = &agent->copies.copy[i];
        if (copy->is_whole && !copy->is_told && has_room(agent, RP_LINK_CONTROL_MAX / 2)) {
            RP_TRY(tell_copy(agent, copy));
        }
    }
fail:
    return err;
}

rp_err rp_agent_tell_copies(rp_agent *agent, uint64_t run_id) {
    rp_err err = RP_OK;
    if (run_id == 0) {
        return RP_OK; /* a host without a run changes nothing */
    }
    agent->fetched = NULL; /* an earlier request is repeated if needed */
    for (uint32_t i = 0; i < RP_COPIES_MAX; i++) {
        rp_copy *copy = &agent->copies.copy[i];
        if (copy->run.id == run_id && copy->is_whole) {
            RP_TRY(tell_copy(agent, copy));
        }
    }
fail:
    return err;
}

rp_err rp_agent_on_fetch(rp_agent *agent, const rp_message *message) {
    const rp_Fetch *wanted = &message->frame.body.fetch;
    const rp_run_identity made = {message->frame.run_id, wanted->term};
    const rp_copy *copy = rp_copies_find(&agent->copies, made, wanted->step, wanted->node);
    if (!copy || !copy->is_whole) {
        return rp_fail(RP_ERR_FAULT,
                       "this board has no complete copy of step %" PRIu64 " of node %u",
                       wanted->step, wanted->node);
    }
    agent->fetched = copy;
    agent->fetched_at = 0;
    agent->fetcher = (rp_run_identity){message->frame.run_id, message->frame.term};
    return RP_OK;
}

static rp_err send_fetched(rp_agent *agent, rp_Frame *frame, const rp_part *part) {
    frame->run_id = agent->fetcher.id;
    frame->term = agent->fetcher.term;
    return rp_link_send(agent->control, frame, part, part != NULL, true, NULL, NULL);
}

rp_err rp_agent_continue_fetch(rp_agent *agent) {
    rp_err err = RP_OK;
    while (agent->fetched && has_room(agent, FETCH_UNACKED_MAX)) {
        const rp_copy *copy = agent->fetched;
        const bool over = agent->fetched_at == copy->got;
        rp_Frame frame = {.which_body = RP_KIND_TENSORS_END};
        rp_part part;
        if (over) {
            agent->fetched = NULL;
        } else {
            RP_TRY(rp_copy_next(copy, &agent->fetched_at, &frame, &part));
        }
        RP_TRY(send_fetched(agent, &frame, over ? NULL : &part));
    }
fail:
    return err;
}
