/* Departure of parcels: at once or after those before them if one link is used; on a medium that
 * several links share, in the order in which they are ready, then by edge index. */
#include "sched/replay_own.h"

rp_err rp_replay_depart(rp_replay *r, const rp_replay_turn *turn) {
    rp_replay_route *way = &r->route[turn->edge];
    rp_replay_route *link = &r->route[way->link];
    rp_sched_edge_facts *facts = &r->facts->edge[turn->edge];
    const double begin = turn->ready > link->free ? turn->ready : link->free;
    const rp_piece parcel = {
        .step = turn->step, .samples = turn->samples, .time = begin + turn->busy + turn->delay};
    link->free = begin + turn->busy;
    facts->parcels++;
    facts->busy += turn->busy;
    const rp_err err = rp_ledger_append(&r->pool, &way->parcels, &parcel);
    const uint32_t waiting = way->parcels.count + way->queued;
    facts->waiting_max = waiting > facts->waiting_max ? waiting : facts->waiting_max;
    if (err == RP_OK && r->visit->transfer) {
        const rp_sched_transfer_slot slot = {.edge = turn->edge,
                                             .step = turn->step,
                                             .samples = turn->samples,
                                             .start = begin,
                                             .end = parcel.time};
        r->visit->transfer(r->visit->context, &slot);
    }
    return err;
}

static bool comes_before(const rp_replay_turn *a, const rp_replay_turn *b) {
    return a->ready < b->ready || (a->ready == b->ready && a->edge < b->edge);
}

rp_err rp_replay_queue(rp_replay *r, const rp_replay_turn *turn) {
    rp_replay_turn **at = &r->turn;
    rp_replay_turn *own = r->spare;
    rp_err err = RP_OK;
    if (own) {
        r->spare = own->next;
    } else {
        RP_TRY(RP_ARENA_NEW(&r->arena, 1, &own));
    }
    while (*at && !comes_before(turn, *at)) {
        at = &(*at)->next;
    }
    *own = *turn;
    own->next = *at;
    *at = own;
    r->route[turn->edge].queued++;
fail:
    return err;
}

rp_err rp_replay_take_turn(rp_replay *r, uint32_t *node) {
    rp_replay_turn *turn = r->turn;
    r->turn = turn->next;
    r->route[turn->edge].queued--;
    *node = r->net->edge[turn->edge].to;
    const rp_err err = rp_replay_depart(r, turn);
    turn->next = r->spare;
    r->spare = turn;
    return err;
}
