/* All sentences about events, one row for each kind. sentence.c fills them in by these rules:
 *
 *   {fact}           its value; an integer or a text
 *   {fact:.1f}       a real number, as printf() writes it with %.1f
 *   {fact*100:.0f}   the same, multiplied: a share in percent, or seconds in milliseconds (1000)
 *   [fact?a|b]       `a` if the fact is there: not "", 0 or NaN; else `b`. "|b" may be left out.
 *
 * A sentence names the thing first and ends without a full stop. The log adds the step, and the
 * terminal shows it before the sentence. Names of events and facts are keys of log.jsonl, which
 * ringpipe-folder(5) promises: add some, but never rename one. */
#include "record/words.h"

enum { LOGGED = 0, SHOWN = RP_EVENT_SHOWN, STAYS = RP_EVENT_SHOWN | RP_EVENT_STAYS };

#define EVENT(id, name, level, has, sentence)                                                      \
    [RP_EVENT_##id] = {                                                                            \
        .kind = #id, .event = (name), .flags = (level), .facts = (has), .words = (sentence)},
#define PART(id, has, sentence) EVENT(id, NULL, LOGGED, has, sentence)

#define RESUMED                                                                                    \
    "[step?goes on from step {step}|starts again from the beginning, because there is no "         \
    "checkpoint][changes?, with {changes}]"
#define RETRIES                                                                                    \
    "{error}; the run goes on and tries again (for ring.wait, {wait_s} s, and at least {tries} "   \
    "times)"
#define DRIFT(decision)                                                                            \
    "[peer?the wire from board {board} to board {peer} takes|ops of board {board} take] "          \
    "{factor:.2f} times as long as predicted: " decision                                           \
    " (a step takes {step_before_s*1000:.4g} ms as it is, {step_s*1000:.4g} ms with the best "     \
    "plan)"
#define VERIFIED "[by_sample?the microbatch of sample {micro}|microbatch {micro}]"

/* clang-format off */
const rp_event_row rp_event_rows[RP_EVENT_KINDS] = {

/* ---- faults, and the way back after one ------------------------------------------------------ */

EVENT(FAULT, "fault", STAYS, "fault_class state board error from_step wait_s",
      "{fault_class}, in state {state}: {error}; the run goes back from step {from_step} to step "
      "{step} and waits up to {wait_s} s for its boards (ring.wait)")
EVENT(FAULT_STOP, "fault", RP_EVENT_STAYS, "fault_class state board error",
      "{fault_class}, in state {state}: {error}")
EVENT(RECOVERED, "recovered", STAYS, "seconds replan_s restore_s steps",
      "continued from step {step}, {seconds:.1f} s after the fault was noticed "
      "({replan_s:.1f} s to get the boards back, {restore_s:.1f} s to load them); {steps} steps "
      "are done again")
EVENT(SPARE, "spare", STAYS, "board why spare",
      "board {board} {why}: the spare board {spare} takes its place")
EVENT(FEWER, "fewer", STAYS, "boards why board_count spare split",
      "{boards} {why}: the model is cut again; boards in the ring: {board_count}[spare?; board "
      "{spare} is a spare now, because each stage has two boards][split?; stages that are split: "
      "{split}]")
EVENT(JOINED, "joined", STAYS, "boards board_count split",
      "{boards} can be reached again: the model is cut again; boards in the ring: {board_count}"
      "[split?; stages that are split: {split}]")

PART(LOST_WRONG, "", "computes wrong")
PART(LOST_PORT, "", "lacks a port that another process keeps")
PART(LOST_REFUSES, "", "refuses the handshake")
PART(LOST_BREAKS_OFF, "", "breaks off every handshake")
PART(LOST_UNANSWERED, "", "does not answer: it is stopped or too busy")
PART(LOST_ABSENT, "", "has not come")
PART(LOST_SEVERAL, "", "have not come")

/* ---- boards that do not answer, or are kept out ---------------------------------------------- */

EVENT(BOARD_SILENT, "silent", STAYS, "board error",
      "{error}; it counts as a board that is away (ring.wait)")
EVENT(BOARD_REFUSED, "refused", STAYS, "board error",
      "{error}; it counts as a board that is away (ring.wait)")
EVENT(STRANGER, "refused", STAYS, "address key fingerprint awaited",
      "a program at {address} dials with the key {key} (fingerprint {fingerprint}), which no board "
      "of the roster has[awaited?; awaited: {awaited}]; if it is a board of yours, put the line "
      "into the roster that `ringpipe keys show --roster NAME dials` prints there")
EVENT(TWINS, "twins", STAYS, "board address twin_address",
      "two boards have the key of board {board}: the one at {address} is in the ring, the one at "
      "{twin_address} is kept out; was an SD card or a folder of keys copied? Make a key of its "
      "own on one of them (`ringpipe keys new`), and a line in the roster")
EVENT(HOP_SILENT, "silent", STAYS, "board peer seconds",
      "board {board} gets no answer from board {peer} over their hop, for {seconds:.1f} s")
EVENT(HOP_HEARD, "silent", STAYS, "board peer",
      "board {board} gets answers from board {peer} again")
EVENT(FEED_SILENT, "silent", STAYS, "board", "nothing comes back from board {board} over its feed")
EVENT(FEED_HEARD, "silent", STAYS, "board", "board {board} answers over its feed again")

/* ---- a step that takes long, and what a board waits for -------------------------------------- */

EVENT(STEP_LATE, "waiting", STAYS, "seconds usual_s board waits",
      "no step for {seconds:.1f} s[usual_s? (usually {usual_s:.3g} s)]: {waits}")
EVENT(STEP_CAME, "waiting", STAYS, "seconds", "training goes on after {seconds:.1f} s")

#define SAMPLES "step {board_step}, samples {first_sample} to {last_sample}"
PART(WAITS_INPUT, "board peer board_step first_sample last_sample",
     "board {board} waits for what board {peer} sends (" SAMPLES ")")
PART(WAITS_ROOM, "board peer", "board {board} waits until board {peer} takes what it was sent")
PART(WAITS_ACKS, "board peer", "board {board} waits until board {peer} has got all of it")
PART(WAITS_DEVICE, "board board_step first_sample last_sample",
     "board {board} computes (" SAMPLES ")")
PART(WAITS_FEED, "board", "board {board} waits for inputs or labels of this host")
PART(WAITS_DECISION, "board", "board {board} waits for a decision of this host")
PART(WAITS_REPORTS, "board", "board {board} waits until this host takes its reports")
PART(WAITS_UNKNOWN, "board seconds",
     "board {board} does not say what it waits for, heard {seconds:.1f} s ago")
PART(WAITS_UNANSWERED, "board peer", "board {board} gets no answer from board {peer}")

/* ---- checkpoints and the disk ---------------------------------------------------------------- */

EVENT(UNSAVED, "unsaved", STAYS, "error wait_s tries", RETRIES)
EVENT(UNSAVED_AGAIN, "unsaved", RP_EVENT_STAYS, "error wait_s tries", RETRIES)
EVENT(UNSAVED_TENSOR, "unsaved", STAYS, "tensor checkpoint_step advice",
      "'{tensor}' is not finite, so no checkpoint is saved: --resume goes on from "
      "[checkpoint_step?step {checkpoint_step}|the start]; {advice}")
EVENT(SAVED, "saved", STAYS, "seconds tries checkpoint_step",
      "the run folder can be written again, after {seconds:.1f} s and {tries} failed tries; there "
      "is a checkpoint of step {checkpoint_step}")
EVENT(DAMAGED, "damaged", STAYS, "error", "{error}; the checkpoint of step {step} is used")
EVENT(UNWRITTEN, "unwritten", SHOWN, "error", "{error}; the run goes on without it")

/* ---- a run that is resumed ------------------------------------------------------------------- */

EVENT(RESUMED, "resumed", STAYS, "changes", RESUMED)
EVENT(RESUMED_SAME, "resumed", RP_EVENT_STAYS, "changes", RESUMED)
EVENT(DATA_CHANGED, "resumed", STAYS, "keys", "the data differ from those before: {keys}")
EVENT(RATE_CHANGED, "hint", SHOWN, "lr_before lr curve steps steps_before",
      "lr goes from {lr_before:.3g} to {lr:.3g}[curve?: the {curve} schedule now spans {steps} "
      "steps, before {steps_before}]")

/* ---- the state that boards hold after their controller has died ------------------------------ */

EVENT(ADOPTED, "adopted", STAYS, "checkpoint_step",
      "the boards have held step {step}, the newest checkpoint was of step {checkpoint_step}: "
      "nothing is computed again")
EVENT(ADOPTED_NOT, "adopted", STAYS, "why checkpoint_step",
      "what the boards hold is not used: {why}; the run goes on from the checkpoint of step "
      "{checkpoint_step}")
EVENT(ADOPTED_DAMAGED, "adopted", STAYS, "why checkpoint_step",
      "what the boards hold is not used: {why}; the checkpoint of step {checkpoint_step} is "
      "damaged")

PART(HELD_ERROR, "error", "{error}")
PART(HELD_SETTINGS, "changes", "the settings are different now: {changes}")
PART(HELD_REFUSED, "board", "board {board} refuses the handshake")
PART(HELD_UNKNOWN, "board", "board {board} does not say what it holds")
PART(HELD_PARTLY, "", "not every board holds its part of it any more")
PART(HELD_RESTLESS, "board", "board {board} does not come to rest")
PART(HELD_RUNNING, "board", "board {board} does not stop")
PART(HELD_OTHER_PLAN, "board", "board {board} has stages of another plan than plan.json")
PART(HELD_OTHER_STEP, "board board_step peer peer_step",
     "board {board} has done {board_step} steps, board {peer} {peer_step}")
PART(HELD_OTHER_LEDGER, "board first_step board_step",
     "board {board}: its ledger of steps {first_step} to {board_step} differs from the plan")
PART(HELD_UNFLUSHED, "board schedule",
     "board {board} is in the middle of a segment, and schedule {schedule} does not flush")
PART(HELD_STATISTICS, "board board_step",
     "on board {board} step {board_step} has begun, which has changed the model's running "
     "statistics")
PART(HELD_TOO_LATE, "board_step", "they have done {board_step} steps, the run ends earlier")
PART(HELD_INCOMPLETE, "",
     "gains of predictions and statistics of an average were on the controller only")

/* ---- copies of what boards hold -------------------------------------------------------------- */

EVENT(COPY_PACE, "copies", SHOWN, "every step_s copy_s",
      "boards copy what they hold every {every} steps from here on: a step takes {step_s:.3g} s, "
      "and copies cost {copy_s:.3g} s at most")
EVENT(COPY_MISSING, "copies", SHOWN, "copy_step board",
      "there is no copy of what board {board} held after step {copy_step}: the run goes back to "
      "its newest checkpoint")
EVENT(COPY_NOT_FINITE, "copies", SHOWN, "copy_step tensor",
      "the copies of step {copy_step} cannot be used, because '{tensor}' is not finite: the run "
      "goes back to its newest checkpoint")
EVENT(COPY_RESTORED, "copies", SHOWN, "copy_step",
      "what the boards held after step {copy_step} was restored from copies")

/* ---- training -------------------------------------------------------------------------------- */

EVENT(BEST_LOSS, "best", SHOWN, "loss", "best loss so far: {loss:.4f}")
EVENT(BEST_ACCURACY, "best", SHOWN, "accuracy", "best accuracy so far: {accuracy*100:.2f} %")
EVENT(STOPPED, "stopped", SHOWN, "evaluations best_step loss accuracy",
      "no gain in {evaluations} evaluations: the run ends here; the best one was after step "
      "{best_step}[loss?, loss {loss:.4f}][accuracy?, accuracy {accuracy*100:.2f} %]")
EVENT(SKIPPED_STEP, "skipped", SHOWN, "advice",
      "a gradient is not finite: the step is skipped[advice?; {advice}]")
EVENT(SKIPPED_UPDATE, "skipped", SHOWN, "stage advice",
      "a gradient is not finite on stage {stage}: it leaves out this update[advice?; {advice}]")
EVENT(NOT_FINITE, "not_finite", LOGGED, "tensor nan infinite values tensors",
      "'{tensor}' has {nan} NaN and {infinite} infinite values of {values}; {tensors} tensors in "
      "all have such values, which the histograms leave out")
EVENT(TRUST, "trust", LOGGED, "stage gain fallen tensors",
      "stage {stage} has a mean prediction gain of {gain*100:.0f} %[fallen?, {fallen} of {tensors} "
      "tensors fall back to current weights]")
EVENT(VERIFY_SAME, "verify", LOGGED, "micro by_sample verified board_count",
      VERIFIED ": {verified} of {board_count} boards' stages were computed again, with the same "
      "bits")
EVENT(VERIFY_DIFFERS, "verify", SHOWN, "micro by_sample stage board peer judge",
      "boards {board} and {peer} differ in " VERIFIED " of stage {stage}: board {judge} computes "
      "it also")

/* ---- choices --------------------------------------------------------------------------------- */

EVENT(BOARDS, "boards", SHOWN,
      "boards board_count boards_before step_s step_before_s stages spares limits",
      "{board_count} of {boards_before} boards, {step_s*1000:.4g} ms a step by prediction instead "
      "of {step_before_s*1000:.4g} ms: {boards}[stages?; {stages} stages, some of them shared]"
      "[spares?; the remaining ones are spares]; then {limits}")
EVENT(SCHEDULE, "schedule", SHOWN, "why", "{why}")
EVENT(MICRO_UNMEASURED, "microbatch", SHOWN, "micro",
      "microbatches of {micro} samples: nothing was measured that says more")
EVENT(MICRO_KEPT, "microbatch", SHOWN, "micro",
      "microbatches of {micro} samples: no other size saves 1 % of a step by prediction")
EVENT(MICRO_CHOSEN, "microbatch", SHOWN, "micro",
      "microbatches of {micro} samples: a step is shortest with them by prediction")
EVENT(SIZES, "sizes", SHOWN, "planner sizes step_s even even_s",
      "sizes by {planner} (samples forward/backward): {sizes}; by what was measured a step takes "
      "{step_s*1000:.4g} ms, with microbatches of {even} on all stages, the best even size, "
      "{even_s*1000:.4g} ms")
EVENT(SIZES_SHARED, "sizes", SHOWN, "forward backward step_s even even_s",
      "microbatches of {forward} samples forward and {backward} backward on all stages, because "
      "boards share some: {step_s*1000:.4g} ms a step by prediction, with {even} "
      "(train.microbatch) {even_s*1000:.4g} ms")
EVENT(AHEAD, "ahead", SHOWN, "ahead step_s",
      "by what was measured forwards run {ahead} steps ahead, the fewest with which a step takes "
      "no longer than {step_s*1000:.4g} ms")
EVENT(ADVANCE, "advance", SHOWN,
      "delay_s advance busy step_s advance_before busy_before replicas alpha",
      "links take {delay_s*1000:.1f} ms: advance {advance} keeps the boards {busy*100:.0f} % busy, "
      "{step_s*1000:.3g} ms a step[busy_before?, {advance_before} {busy_before*100:.0f} %]"
      "[replicas?; {replicas} replicas, alpha {alpha:.3g}]")
EVENT(ADVANCE_LESS, "advance", SHOWN, "advance error", "not advance {advance}: {error}")
EVENT(CODECS, "codecs", SHOWN, "codecs", "from stage to stage (activations/gradients): {codecs}")
EVENT(CODECS_NEXT, "codecs", SHOWN, "codecs",
      "wires were full; next, from stage to stage (activations/gradients): {codecs}")
EVENT(CODEC_MILDER, "codecs", SHOWN, "stage carries codec l2_error max_error next_codec",
      "{carries} of stage {stage} lose {l2_error*100:.2g} % in {codec}, and links.max_error is "
      "{max_error*100:.2g} %: {next_codec} is next")
EVENT(PLAN_KEPT, "plan", SHOWN, "board peer factor step_before_s step_s",
      DRIFT("the plan stays, another saves too little"))
EVENT(PLAN_CUT, "plan", SHOWN, "board peer factor step_before_s step_s",
      DRIFT("the layers are distributed again"))
EVENT(PLAN_SIZES, "plan", SHOWN, "board peer factor step_before_s step_s",
      DRIFT("the sizes are chosen again"))

/* ---- advice ---------------------------------------------------------------------------------- */

EVENT(HINT, "hint", SHOWN, "note", "{note}")
EVENT(HINT_DATA, "data", SHOWN, "note", "{note}")
EVENT(HINT_MICRO, "hint", SHOWN, "busy_before micro busy",
      "one microbatch a step keeps the boards {busy_before*100:.0f} % busy at best; "
      "train.microbatch: {micro}, {busy*100:.0f} %")
EVENT(HINT_MOMENTUM, "hint", SHOWN, "staleness momentum_key momentum updates advice",
      "gradients are up to {staleness} updates old, and {momentum_key} {momentum:g} lets each act "
      "for {updates:.3g} more updates: this costs accuracy; try {advice} of the optimizer, and "
      "another lr")
EVENT(HINT_REPLICAS, "hint", SHOWN, "advance replicas",
      "advance {advance} means {replicas} replicas: each takes one step of {replicas}, which costs "
      "accuracy; schedule.replicas or schedule.advance.max_staleness bounds them")
EVENT(HINT_STALENESS, "hint", SHOWN, "staleness staleness_wanted",
      "links hold the boards back, and a staleness of {staleness} is the limit; "
      "schedule.advance.max_staleness: {staleness_wanted} would fill them, at the price of "
      "accuracy")
EVENT(HINT_STASH, "hint", SHOWN, "stage stash_s board peer work_s",
      "what a step of stage {stage} leaves for its backward is {stash_s*1000:.4g} ms on the wire "
      "from board {board} to board {peer}, and no board computes longer than {work_s*1000:.4g} "
      "ms: a schedule with both directions on one board does not send it, as pipedream")
EVENT(HINT_TIES, "hint", SHOWN, "layer peer_layer tensor stage",
      "layers '{layer}' and '{peer_layer}' share '{tensor}' and are on different boards: without a "
      "flush both have the staleness of stage {stage}, which costs accuracy; try a schedule that "
      "flushes, or a cut with both on one board")

/* ---- lanes ----------------------------------------------------------------------------------- */

EVENT(LANES_RESUMED, "resumed", STAYS, "round", "goes on after round {round}")
EVENT(LANES_UNSAVED, "unsaved", STAYS, "error wait_s",
      "{error}; the lanes wait and try again for {wait_s} s")
EVENT(LANE_FAULT, "away", SHOWN, "lane", "lane {lane} recovers from a fault")
EVENT(LANE_BACK, "back", SHOWN, "lane", "lane {lane} continues")
EVENT(LANE_ENDED, "away", SHOWN, "lane exit_code file",
      "lane {lane}: its controller has ended (exit {exit_code}), and is started again; see {file}")
EVENT(LANE_LOST, "lost", SHOWN, "lane tries file",
      "lane {lane}: has ended {tries} times without a round and is given up; see {file}")
EVENT(LANE_REFUSED, "refused", STAYS, "lane error",
      "lane {lane}: its checkpoint cannot be averaged: {error}")

/* ---- sites ----------------------------------------------------------------------------------- */

EVENT(SITES_MISSING, "missing", STAYS, "round least sites",
      "round {round} needs {least} sites and waits; missing: {sites}")
EVENT(SITE_ENDED, "away", SHOWN, "site round exit_code file",
      "site {site}: its process of round {round} has ended (exit {exit_code}), and starts again; "
      "see {file}")
EVENT(SITE_WAITS, "unreached", SHOWN, "site round boards",
      "site {site}: its ring waits for {boards} in round {round}")
EVENT(SITE_LATE, "late", STAYS, "site round wait_s",
      "site {site}: too late for round {round}, which closed after {wait_s} s")
EVENT(SITE_LOST, "lost", SHOWN, "site round tries file",
      "site {site}: has failed {tries} times in round {round} and is left out of it; see {file}")
EVENT(SITE_REFUSED, "refused", STAYS, "site error",
      "site {site}: its weights cannot be averaged: {error}")
EVENT(SITE_FRESH, "fresh", STAYS, "site round file",
      "site {site}: {file} has no state of its last round, so round {round} has begun without it")
};
/* clang-format on */
