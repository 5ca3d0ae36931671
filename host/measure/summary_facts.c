/* Facts for the summary about boards and wires, as the boards reported them for the plan in
 * force. */
#include <math.h>

#include "measure/losses.h"
#include "measure/measure_own.h"

static const char *role_of(const rp_plan_hold *hold) {
    return hold->role == RP_ROLE_BOTH ? NULL : rp_role_name(hold->role);
}

static rp_err tell_stages(const rp_measure *m, const rp_plan *plan, rp_arena *arena,
                          rp_record_end *end) {
    const rp_model *model = m->needs.run->model;
    const rp_ring *ring = m->needs.ring;
    rp_summary_stage *stage;
    uint64_t *micro_done;
    double(*share)[2];
    rp_cut cut;
    rp_err err;
    RP_TRY(rp_plan_cut(arena, plan, model, &cut));
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &stage));
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &micro_done));
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &share));
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        const rp_plan_node *node = &plan->node[k];
        const rp_plan_hold *hold = &plan->hold[node->hold_first];
        const uint32_t counted = rp_ring_energy_board(ring, k);
        const char **layers;
        uint32_t *stages;
        uint32_t count = 0;
        RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &layers));
        RP_TRY(RP_ARENA_NEW(arena, node->hold_count, &stages));
        for (uint32_t h = 0; h < node->hold_count; h++) {
            const uint32_t own = hold[h].stage;
            stages[h] = own;
            for (uint32_t i = cut.first[own]; i < cut.first[own + 1]; i++) {
                layers[count++] = model->layer[i].name;
            }
        }
        stage[k] = (rp_summary_stage){
            .board = board->device ? board->device : board->name,
            .layers = layers,
            .layer_count = count,
            .stages = stages,
            .stage_count = node->hold_count,
            .role = role_of(hold),
            .busy_s = (double)board->facts.busy_ns * 1e-9,
            .weight_bytes = board->memory.weight_bytes,
            .device_bytes_max = board->facts.device_bytes_max,
            .flash_bytes = board->facts.flash_bytes,
            .energy_j = counted == k ? board->facts.energy_j : 0,
            .energy_with = counted == k ? 0 : counted + 1,
            .weight_versions_max = board->memory.weight_copies_max,
            .probe_copies = board->memory.probe_copies,
            .in_flight_max = board->facts.in_flight_max,
            .gap_max = board->facts.staleness_max,
        };
        micro_done[k] = board->facts.microbatches / node->hold_count;
        for (uint32_t i = 0; i < 2; i++) { /* equal for all that it holds */
            share[k][i] = hold->share[i];
        }
    }
    end->stage = stage;
    end->micro_done = micro_done;
    end->share = (const double(*)[2])share;
    end->stage_count = ring->count;
fail:
    return err;
}

/* Names of the codecs of inputs, activations and gradients from one end to another, each once.
 * NULL: none. */
static rp_err list_codecs_between(const rp_plan *plan, uint32_t from, uint32_t to, rp_arena *arena,
                                  const char **out) {
    bool has[RP_CODECS] = {false};
    char *text = NULL;
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool encodes = edge->carries == RP_CARRIES_ACTIVATION ||
                             edge->carries == RP_CARRIES_GRADIENT ||
                             edge->carries == RP_CARRIES_INPUT;
        has[edge->codec] |= encodes && edge->from == from && edge->to == to;
    }
    for (uint32_t codec = 0; codec < RP_CODECS; codec++) {
        if (has[codec]) {
            RP_TRY(rp_arena_printf(arena, &text, "%s%s%s", text ? text : "", text ? " " : "",
                                   rp_codec_name((rp_codec)codec)));
        }
    }
    *out = text;
fail:
    return err;
}

/* Traffic of each board to its neighbours, first to the following ones. */
static rp_err tell_links(const rp_ring *ring, const rp_plan *plan, rp_arena *arena,
                         rp_record_end *end) {
    size_t count = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        count += ring->board[k].facts.link_count;
    }
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &end->link));
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_facts *facts = &ring->board[k].facts;
        for (uint32_t i = facts->link_count; i-- > 0;) {
            const rp_board_link *at = &facts->link[i];
            rp_summary_link *to = &end->link[end->link_count++];
            *to = (rp_summary_link){
                .from = k, .to = at->peer, .bytes = at->bytes, .busy_s = at->busy_s};
            RP_TRY(list_codecs_between(plan, k, at->peer, arena, &to->codec));
        }
    }
fail:
    return err;
}

static rp_summary_wire wire_row(const char *kind, uint32_t from, uint32_t to,
                                const rp_board_link *use) {
    return (rp_summary_wire){.kind = kind,
                             .from = from,
                             .to = to,
                             .bytes = use->bytes,
                             .rate_mbit = use->rate > 0 ? 8e-6 * use->rate : (double)NAN,
                             .busy_s = use->rate > 0 ? use->busy_s : (double)NAN,
                             .delay_ms = {1e3 * use->delay_s[0], 1e3 * use->delay_s[1]},
                             .resent = use->resent,
                             .resets = use->resets,
                             .l2_error = (double)NAN};
}

/* All wires: between boards as above, then between the host and each board, from the host first. */
static rp_err tell_wires(const rp_measure *m, const rp_plan *plan, rp_arena *arena,
                         rp_record_end *end) {
    const rp_ring *ring = m->needs.ring;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, end->link_count + 4 * (size_t)ring->count, &end->wire));
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_facts *facts = &ring->board[k].facts;
        for (uint32_t i = facts->link_count; i-- > 0;) {
            rp_summary_wire *to = &end->wire[end->wire_count++];
            *to = wire_row("hop", k, facts->link[i].peer, &facts->link[i]);
            to->l2_error = rp_losses_of_wire(m, plan, k, to->to);
            RP_TRY(list_codecs_between(plan, k, to->to, arena, &to->codec));
        }
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_facts *facts = &ring->board[k].facts;
        if (facts->feed[1].bytes > 0) {
            rp_summary_wire *to = &end->wire[end->wire_count++];
            *to = wire_row("feed", RP_PLAN_HOST, k, &facts->feed[1]);
            RP_TRY(list_codecs_between(plan, RP_PLAN_HOST, k, arena, &to->codec));
            end->wire[end->wire_count++] = wire_row("feed", k, RP_PLAN_HOST, &facts->feed[0]);
        }
        end->wire[end->wire_count++] = wire_row("control", RP_PLAN_HOST, k, &facts->control[1]);
        end->wire[end->wire_count++] = wire_row("control", k, RP_PLAN_HOST, &facts->control[0]);
    }
fail:
    return err;
}

rp_err rp_measure_tell(const rp_measure *m, const rp_plan *plan, rp_arena *arena,
                       rp_record_end *end) {
    const rp_ring *ring = m->needs.ring;
    rp_err err = RP_OK;
    /* Boards that joined later have no part in the plan yet. */
    if (ring->board && plan && plan->node_count == ring->count) {
        RP_TRY(tell_stages(m, plan, arena, end));
        RP_TRY(tell_links(ring, plan, arena, end));
        RP_TRY(tell_wires(m, plan, arena, end));
    }
fail:
    return err;
}
