#include "setup/membership.h"

#include <stdio.h>

#include "record/record.h"
#include "ring/rejoin.h"
#include "run/spares.h"
#include "setup/setup_own.h"

/* The spare no longer counts as tried, so another lost board may be handled in this recovery. */
void rp_membership_forget_wrong(rp_arrangement *a, uint32_t *tried) {
    RP_ASSERT(*tried > 0);
    rp_arrangement_drop_spare(a);
    (*tried)--;
}

/* ---- spares ---------------------------------------------------------------------------------- */

static bool has_spare(const rp_runfile *run, uint32_t tried) {
    return rp_spares_untried(run->roster, run->boards, run->spares, tried) > 0;
}

rp_err rp_membership_take_spares(rp_arrangement *a, const rp_lost_boards *lost, uint32_t *tried) {
    rp_ring *ring = a->ring;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count && has_spare(&a->run, *tried); k++) {
        const char *name = ring->board[k].name;
        const rp_event_kind why = rp_lost_why(lost, ring, k);
        if (!rp_lost_is(lost, ring, k)) {
            continue;
        }
        RP_ASSERT(rp_arrangement_take_spare(a, k));
        (*tried)++;
        rp_ring_take_entry(ring, k);
        rp_ring_expect_hello(ring, k, false); /* the spare gets its full greeting time */
        RP_TRY(rp_record_event(rp_folder_record(a->folder),
                               &(rp_run_event){.kind = RP_EVENT_SPARE,
                                               .step = a->position->step,
                                               .board = name,
                                               .why = rp_words_of(why),
                                               .spare = ring->board[k].name}));
    }
fail:
    return err;
}

/* ---- fewer boards ---------------------------------------------------------------------------- */

uint32_t rp_membership_count_left(const rp_runfile *run, uint32_t absent, uint32_t spares) {
    return run->boards - (absent > spares ? absent - spares : 0);
}

/* NULL: the schedule fits `left` boards. An interleaved schedule needs microbatches in multiples of
 * the boards, and one that splits all stages needs two boards for each stage. */
static const char *why_not_divided(const rp_arrangement *a, uint32_t left) {
    static const char AHEAD[] = "schedule.ahead has a number for each stage";
    const rp_runfile *run = &a->run;
    const rp_method *method = &run->method;
    const uint32_t micros = (run->batch - 1) / run->micro + 1;
    if (rp_split_is_listed(a)) {
        return rp_split_may_be_on(a, left) ? NULL : AHEAD;
    }
    const bool in_pairs = rp_method_boards(method, 1) > 1;
    if (in_pairs && rp_split_boards_of(a, left) < run->safety.at_least) {
        return "each stage has two boards, and too few are left (ring.at_least)";
    }
    if (method->ahead_count > 1) {
        return AHEAD;
    }
    if (method->chunks > 1 && (left == 0 || micros % left > 0)) {
        return "the boards left do not divide the microbatches of a step (schedule.chunks)";
    }
    return left == 0 || rp_method_replicas_fit(method, left * method->chunks)
               ? NULL
               : "schedule.weights needs more stages, or fewer schedule.replicas";
}

/* Keys that refer to places in the ring have no meaning in a smaller ring. */
const char *rp_membership_why_fixed(const rp_arrangement *a, uint32_t left) {
    const rp_runfile *run = &a->run;
    return run->local            ? "its agents are on this machine"
           : !run->cut_auto      ? "the cut is given"
           : run->hops.count > 0 ? "ring.link has hops"
           : run->sizes.by_stage ? "schedule.forward or backward has a number for each stage"
           : !run->codec_auto && !rp_codecs_are_alike(run->codec, run->stages)
               ? "links.codec is not the same for all links"
               : why_not_divided(a, left);
}

rp_err rp_membership_log_left(const rp_arrangement *a, const rp_membership_left *left) {
    char split[120];
    return rp_record_event(
        rp_folder_record(a->folder),
        &(rp_run_event){.kind = RP_EVENT_FEWER,
                        .step = a->position->step,
                        .boards = left->names,
                        .why = rp_words_of(left->count == 1 ? left->why : RP_EVENT_LOST_SEVERAL),
                        .board_count = a->ring->count,
                        .spare = left->odd,
                        .split = rp_split_list_stages(a, split, sizeof split)});
}

/* Sets the stages for the current boards. Which of them are split may depend on measurements. */
rp_err rp_membership_count_stages(rp_arrangement *a) {
    const rp_runfile *run = &a->run;
    if (rp_measure_has_profile(a->measure) && rp_split_is_listed(a)) {
        rp_measure_place(a->measure);
        rp_split_count_stages(a, true);
        if (rp_runfile_check_cut(run) == RP_OK) {
            return RP_OK;
        }
    }
    rp_split_count_stages(a, false);
    return rp_runfile_check_cut(run);
}

/* Backwards, so that the places of boards not yet visited stay valid. */
static void remove_lost(rp_arrangement *a, const rp_lost_boards *lost, rp_membership_left *left) {
    rp_ring *ring = a->ring;
    size_t used = 0;
    for (uint32_t k = ring->count; k-- > 0;) {
        if (!rp_lost_is(lost, ring, k)) {
            continue;
        }
        const int more = snprintf(left->names + used, sizeof left->names - used, "%s%s",
                                  left->count++ ? ", " : "", ring->board[k].name);
        left->why = rp_lost_why(lost, ring, k);
        used += more > 0 && used + (size_t)more < sizeof left->names ? (size_t)more : 0;
        rp_arrangement_remove_board(a, k);
        rp_ring_leave(ring, k);
    }
}

/* If each stage takes two boards, one board may be too many: the last one that answers becomes a
 * spare. Returns its name or NULL. */
static const char *remove_odd(rp_arrangement *a, const rp_lost_boards *lost) {
    uint32_t left = 0;
    uint32_t last = 0;
    for (uint32_t k = 0; k < a->ring->count; k++) {
        if (!rp_lost_is(lost, a->ring, k)) {
            left++;
            last = k;
        }
    }
    if (rp_split_boards_of(a, left) == left) {
        return NULL;
    }
    const char *name = a->run.roster[last].name;
    rp_arrangement_demote_board(a, last);
    rp_ring_leave(a->ring, last);
    return name;
}

rp_err rp_membership_remove_lost(rp_arrangement *a, const rp_lost_boards *lost, uint32_t *tried,
                                 rp_membership_left *left) {
    rp_err err;
    *left = (rp_membership_left){.why = RP_EVENT_LOST_ABSENT};
    RP_TRY(rp_membership_take_spares(a, lost, tried));
    left->odd = remove_odd(a, lost);
    remove_lost(a, lost, left);
    *tried += left->count; /* they had their greeting time */
    rp_rejoin_note_left(a->ring, left->count);
fail:
    return err;
}

/* ---- more boards again ----------------------------------------------------------------------- */

/* False: the board does not fit, for example because its neighbours could not reach it. */
static bool join_board(rp_arrangement *a, uint32_t spare) {
    const uint32_t at = rp_arrangement_return_board(a, spare);
    rp_split_count_stages(a, false);
    if (rp_runfile_check_cut(&a->run) != RP_OK) {
        rp_arrangement_remove_board(a, at);
        rp_split_count_stages(a, false);
        return false;
    }
    rp_rejoin_take(a->ring, at);
    return true;
}

/* From the last spare, because boards that do not fit become the last spares. */
bool rp_membership_join(rp_arrangement *a, char names[static RP_MEMBERSHIP_NAMES_BYTES]) {
    const rp_runfile *run = &a->run;
    rp_ring *ring = a->ring;
    size_t used = 0;
    names[0] = '\0';
    if (rp_arrangement_is_fixed(a) || !rp_rejoin_is_wanted(ring)) {
        return false;
    }
    const uint32_t most = rp_split_boards_of(a, ring->count + rp_rejoin_count_ready(ring));
    for (uint32_t i = run->spares; i-- > 0 && ring->count < most;) {
        const char *name = run->roster[run->boards + i].name;
        if (rp_rejoin_has_answered(ring, name) && join_board(a, run->boards + i)) {
            const int more = snprintf(names + used, RP_MEMBERSHIP_NAMES_BYTES - used, "%s%s",
                                      used ? ", " : "", name);
            used += more > 0 && used + (size_t)more < RP_MEMBERSHIP_NAMES_BYTES ? (size_t)more : 0;
        }
    }
    if (rp_split_boards_of(a, ring->count) < ring->count) { /* one did not fit */
        rp_arrangement_remove_board(a, ring->count - 1);
        rp_ring_leave(ring, ring->count - 1);
        rp_split_count_stages(a, false);
    }
    if (used > 0) {
        rp_rejoin_close(ring);
    }
    return used > 0;
}

rp_err rp_membership_log_joined(const rp_arrangement *a, const char *names) {
    char split[120];
    return rp_record_event(rp_folder_record(a->folder),
                           &(rp_run_event){.kind = RP_EVENT_JOINED,
                                           .step = a->position->step,
                                           .boards = names,
                                           .board_count = a->ring->count,
                                           .split = rp_split_list_stages(a, split, sizeof split)});
}
