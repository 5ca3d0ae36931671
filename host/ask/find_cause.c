#include "ask/find_cause.h"

#include <stdio.h>

/* Older software without ASK HOLDER reports in CONDITION whether it has a run. */
static rp_err ask_condition(rp_asker *asker, int64_t wait_ns, rp_Ordered *out) {
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    rp_Frame answer;
    rp_greet_state came;
    rp_err err;
    *out = (rp_Ordered){0};
    RP_TRY(rp_asker_try(asker, &ask, wait_ns, &answer, NULL, &came));
    if (came == RP_GREET_THERE && rp_frame_kind(&answer) == RP_KIND_CONDITION) {
        out->run = answer.body.condition.run;
        out->state = answer.body.condition.state;
    }
fail:
    return err;
}

static rp_err ask_holder(rp_asker *asker, const rp_ask_options *options, int64_t wait_ns,
                         rp_cause *out) {
    const rp_Ask ask = {.what = RP_ASK_HOLDER};
    rp_Ordered holder = {0};
    rp_Frame answer;
    rp_greet_state came;
    rp_err err;
    RP_TRY(rp_asker_try(asker, &ask, wait_ns, &answer, NULL, &came));
    if (came != RP_GREET_THERE) {
        rp_cause_of_silence(options->board, options->listen, came, out);
        return RP_OK;
    }
    const bool knows =
        rp_frame_kind(&answer) == RP_KIND_ORDERED && answer.body.ordered.outcome == RP_ORDERED_DONE;
    if (knows) {
        holder = answer.body.ordered;
    } else {
        RP_TRY(ask_condition(asker, wait_ns, &holder));
    }
    rp_cause_of_holder(&holder, out);
fail:
    return err;
}

void rp_ask_find_cause(const rp_ask_options *options, int64_t wait_ns, rp_cause *out) {
    rp_asker *asker = NULL;
    rp_arena arena;
    rp_err err = RP_OK;
    if (options->board->dials) {
        rp_cause_of_silence(options->board, options->listen, RP_GREET_NOT_DIALLED, out);
        return;
    }
    if (rp_cause_of_address(options->board, out)) {
        return;
    }
    rp_arena_init(&arena, "cause", 0);
    RP_TRY(rp_asker_open(&arena, options, &asker));
    RP_TRY(ask_holder(asker, options, wait_ns, out));
fail:
    if (err != RP_OK) {
        *out = (rp_cause){.err = err};
        (void)snprintf(out->text, sizeof out->text, "cannot be asked: %.800s", rp_err_message());
    }
    rp_asker_close(&asker);
    rp_arena_finish(&arena);
}
