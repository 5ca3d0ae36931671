/* Boards that have had their time to come and have not, and those that have come back. */
#include "control/absent.h"

#include <stdio.h>

#include "record/record.h"
#include "ring/away.h"

static bool is_lost(const rp_absent_ring *of, uint32_t board) {
    return rp_lost_is(&of->lost, of->ring, board);
}

void rp_absent_forget_wrong(const rp_absent_ring *of) {
    RP_ASSERT(of->lost.wrong != RP_FAULT_NO_BOARD && of->recovery->spares_taken > 0);
    rp_arrangement_drop_spare(of->setup);
    of->recovery->spares_taken--;
}

/* ---- spares ---------------------------------------------------------------------------------- */

static rp_err say_spare(const rp_absent_ring *of, const char *lost, const char *why,
                        const char *spare) {
    char text[240];
    (void)snprintf(text, sizeof text, "board %s %s: the spare board %s takes its place", lost, why,
                   spare);
    return rp_record_event(of->record, "spare", of->step, text);
}

rp_err rp_absent_take_spares(const rp_absent_ring *of) {
    rp_ring *ring = of->ring;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count && rp_recovery_spares(of->recovery, of->run) > 0; k++) {
        const char *lost = ring->board[k].name;
        const char *why = rp_lost_why(&of->lost, ring, k);
        if (!is_lost(of, k)) {
            continue;
        }
        RP_ASSERT(rp_arrangement_take_spare(of->setup, k));
        of->recovery->spares_taken++;
        rp_ring_take_entry(ring, k);
        rp_ring_expect_hello(ring, k, false); /* it is to have its time */
        RP_TRY(say_spare(of, lost, why, ring->board[k].name));
    }
fail:
    return err;
}

/* ---- fewer boards ---------------------------------------------------------------------------- */

uint32_t rp_absent_left(const rp_runfile *run, uint32_t absent, uint32_t spares) {
    return run->boards - (absent > spares ? absent - spares : 0);
}

/* NULL: the schedule can be divided among the boards that are left. An interleaved one takes
 * microbatches in groups of one a board, and one that splits all stages has two boards for each. */
static const char *why_not_divided(const rp_arrangement *setup, uint32_t left) {
    static const char AHEAD[] = "schedule.ahead has a number for each stage";
    const rp_runfile *run = rp_arrangement_run(setup);
    const rp_method *method = &run->method;
    const uint32_t micros = (run->batch - 1) / run->micro + 1;
    if (rp_split_is_listed(setup)) {
        return rp_split_may_be_on(setup, left) ? NULL : AHEAD;
    }
    if (method->kind->splits) {
        return left < 2 || left - left % 2 < run->safety.at_least
                   ? "each stage has two boards, and too few are left (ring.at_least)"
               : method->ahead_count > 1 ? AHEAD
                                         : NULL;
    }
    if (method->chunks > 1 && (left == 0 || micros % left > 0)) {
        return "the boards left do not divide the microbatches of a step (schedule.chunks)";
    }
    return left == 0 || rp_method_replicas_fit(method, left * method->chunks)
               ? NULL
               : "schedule.weights needs more stages, or fewer schedule.replicas";
}

/* What a person has said of places in the ring has no meaning in a smaller one. */
const char *rp_absent_why_stay(const rp_arrangement *setup, uint32_t left) {
    const rp_runfile *run = rp_arrangement_run(setup);
    return run->local            ? "its agents are on this machine"
           : !run->cut_auto      ? "the cut is given"
           : run->hops.count > 0 ? "ring.link has hops"
           : run->sizes.by_stage ? "schedule.forward or backward has a number for each stage"
           : !run->codec_auto && !rp_codecs_are_alike(run->codec, run->stages)
               ? "links.codec is not the same for all links"
               : why_not_divided(setup, left);
}

rp_err rp_absent_say_left(const rp_absent_ring *of, const rp_absent_left_boards *left) {
    const uint32_t count = of->ring->count;
    const char *odd = left->odd;
    char text[500];
    char split[120] = "";
    if (rp_split_is_listed(of->setup)) {
        rp_split_put_stages(of->setup, split, sizeof split);
    }
    (void)snprintf(text, sizeof text,
                   "%s %.160s %s: the model is cut anew over the %u board%s left%s%.60s%s%s",
                   left->count == 1 ? "board" : "boards", left->names,
                   left->count == 1 ? left->why : "have not come", count, count == 1 ? "" : "s",
                   odd ? "; board " : "", odd ? odd : "",
                   odd ? " is a spare now, for each stage has two boards" : "", split);
    return rp_record_event(of->record, "fewer", of->step, text);
}

/* The stages of the boards that there are now; of those that can reach each other where which of
 * them are split depends on what was measured. */
rp_err rp_absent_count_stages(rp_arrangement *setup, rp_measure *measure) {
    const rp_runfile *run = rp_arrangement_run(setup);
    if (rp_measure_has_profile(measure) && rp_split_is_listed(setup)) {
        rp_measure_place(measure);
        rp_split_count_stages(setup, true);
        if (rp_runfile_check_cut(run) == RP_OK) {
            return RP_OK;
        }
    }
    rp_split_count_stages(setup, false);
    return rp_runfile_check_cut(run);
}

/* From the last one, so that the places of the others hold until they are looked at. */
static void leave_lost(const rp_absent_ring *of, rp_absent_left_boards *left) {
    size_t used = 0;
    for (uint32_t k = of->ring->count; k-- > 0;) {
        if (!is_lost(of, k)) {
            continue;
        }
        const int more = snprintf(left->names + used, sizeof left->names - used, "%s%s",
                                  left->count++ ? ", " : "", of->ring->board[k].name);
        left->why = rp_lost_why(&of->lost, of->ring, k);
        used += more > 0 && used + (size_t)more < sizeof left->names ? (size_t)more : 0;
        rp_arrangement_leave_board(of->setup, k);
        rp_ring_leave(of->ring, k);
    }
}

/* Where each stage has two boards, one may be too many: the last one that is there is a spare then.
 * NULL: none is. */
static const char *leave_odd(const rp_absent_ring *of) {
    uint32_t left = 0;
    uint32_t last = 0;
    for (uint32_t k = 0; k < of->ring->count; k++) {
        if (!is_lost(of, k)) {
            left++;
            last = k;
        }
    }
    if (!of->run->method.kind->splits || rp_split_is_listed(of->setup) || left % 2 == 0) {
        return NULL;
    }
    const char *name = of->run->roster[last].name;
    rp_arrangement_put_aside(of->setup, last);
    rp_ring_leave(of->ring, last);
    return name;
}

rp_err rp_absent_leave(const rp_absent_ring *of, rp_absent_left_boards *left) {
    rp_err err;
    *left = (rp_absent_left_boards){.why = ""};
    RP_TRY(rp_absent_take_spares(of));
    left->odd = leave_odd(of);
    leave_lost(of, left);
    of->recovery->spares_taken += left->count; /* they have had their time */
    rp_away_note_left(of->ring, left->count);
fail:
    return err;
}

/* ---- more boards again ----------------------------------------------------------------------- */

rp_err rp_absent_say_joined(const rp_absent_ring *of, const char *names) {
    char text[440];
    char split[120] = "";
    if (rp_split_is_listed(of->setup)) {
        rp_split_put_stages(of->setup, split, sizeof split);
    }
    (void)snprintf(text, sizeof text,
                   "%.200s can be reached again: the model is cut anew over %u boards%s", names,
                   of->ring->count, split);
    return rp_record_event(of->record, "joined", of->step, text);
}
