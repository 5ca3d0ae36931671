/* Events of a run: what happened, as a kind with named facts, and the words for each kind.
 *
 * A room reports an event with one call, which sets the facts of its kind:
 *
 *   rp_record_event(record, &(rp_run_event){.kind = RP_EVENT_HOP_HEARD, .step = step,
 *                                           .board = name, .peer = other});
 *
 * log.jsonl gets the kind and the facts, next to the sentence that people read. All sentences stand
 * in the table in words.c. To add an event, add a kind here and a row there; a fact with a new name
 * is one more line in RP_EVENT_FACTS. */
#ifndef RP_RECORD_WORDS_H
#define RP_RECORD_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef enum {
    RP_EVENT_NONE,
    /* faults, and the way back after one */
    RP_EVENT_FAULT,
    RP_EVENT_FAULT_STOP,
    RP_EVENT_RECOVERED,
    RP_EVENT_SPARE,
    RP_EVENT_FEWER,
    RP_EVENT_JOINED,
    /* why a board is lost */
    RP_EVENT_LOST_WRONG,
    RP_EVENT_LOST_PORT,
    RP_EVENT_LOST_REFUSES,
    RP_EVENT_LOST_BREAKS_OFF,
    RP_EVENT_LOST_UNANSWERED,
    RP_EVENT_LOST_ABSENT,
    RP_EVENT_LOST_SEVERAL,
    /* boards that do not answer, or are kept out */
    RP_EVENT_BOARD_SILENT,
    RP_EVENT_BOARD_REFUSED,
    RP_EVENT_STRANGER,
    RP_EVENT_TWINS,
    RP_EVENT_HOP_SILENT,
    RP_EVENT_HOP_HEARD,
    RP_EVENT_FEED_SILENT,
    RP_EVENT_FEED_HEARD,
    /* a step that takes long, and what a board waits for */
    RP_EVENT_STEP_LATE,
    RP_EVENT_STEP_CAME,
    RP_EVENT_WAITS_INPUT,
    RP_EVENT_WAITS_ROOM,
    RP_EVENT_WAITS_ACKS,
    RP_EVENT_WAITS_DEVICE,
    RP_EVENT_WAITS_FEED,
    RP_EVENT_WAITS_DECISION,
    RP_EVENT_WAITS_REPORTS,
    RP_EVENT_WAITS_UNKNOWN,
    RP_EVENT_WAITS_UNANSWERED,
    /* checkpoints and the disk */
    RP_EVENT_UNSAVED,
    RP_EVENT_UNSAVED_AGAIN,
    RP_EVENT_UNSAVED_TENSOR,
    RP_EVENT_SAVED,
    RP_EVENT_DAMAGED,
    RP_EVENT_UNWRITTEN,
    /* a run that is resumed */
    RP_EVENT_RESUMED,
    RP_EVENT_RESUMED_SAME,
    RP_EVENT_DATA_CHANGED,
    RP_EVENT_RATE_CHANGED,
    /* the state that boards hold after their controller has died, and why it is not used */
    RP_EVENT_ADOPTED,
    RP_EVENT_ADOPTED_NOT,
    RP_EVENT_ADOPTED_DAMAGED,
    RP_EVENT_HELD_ERROR,
    RP_EVENT_HELD_SETTINGS,
    RP_EVENT_HELD_REFUSED,
    RP_EVENT_HELD_UNKNOWN,
    RP_EVENT_HELD_PARTLY,
    RP_EVENT_HELD_RESTLESS,
    RP_EVENT_HELD_RUNNING,
    RP_EVENT_HELD_OTHER_PLAN,
    RP_EVENT_HELD_OTHER_STEP,
    RP_EVENT_HELD_OTHER_LEDGER,
    RP_EVENT_HELD_UNFLUSHED,
    RP_EVENT_HELD_STATISTICS,
    RP_EVENT_HELD_TOO_LATE,
    RP_EVENT_HELD_INCOMPLETE,
    /* copies of what boards hold */
    RP_EVENT_COPY_PACE,
    RP_EVENT_COPY_MISSING,
    RP_EVENT_COPY_NOT_FINITE,
    RP_EVENT_COPY_RESTORED,
    /* training */
    RP_EVENT_BEST_LOSS,
    RP_EVENT_BEST_ACCURACY,
    RP_EVENT_STOPPED,
    RP_EVENT_SKIPPED_STEP,
    RP_EVENT_SKIPPED_UPDATE,
    RP_EVENT_NOT_FINITE,
    RP_EVENT_TRUST,
    RP_EVENT_VERIFY_SAME,
    RP_EVENT_VERIFY_DIFFERS,
    /* choices */
    RP_EVENT_BOARDS,
    RP_EVENT_SCHEDULE,
    RP_EVENT_MICRO_UNMEASURED,
    RP_EVENT_MICRO_KEPT,
    RP_EVENT_MICRO_CHOSEN,
    RP_EVENT_SIZES,
    RP_EVENT_SIZES_SHARED,
    RP_EVENT_AHEAD,
    RP_EVENT_ADVANCE,
    RP_EVENT_ADVANCE_LESS,
    RP_EVENT_CODECS,
    RP_EVENT_CODECS_NEXT,
    RP_EVENT_CODEC_MILDER,
    RP_EVENT_PLAN_KEPT,
    RP_EVENT_PLAN_CUT,
    RP_EVENT_PLAN_SIZES,
    /* advice */
    RP_EVENT_HINT,
    RP_EVENT_HINT_DATA,
    RP_EVENT_HINT_MICRO,
    RP_EVENT_HINT_MOMENTUM,
    RP_EVENT_HINT_REPLICAS,
    RP_EVENT_HINT_STALENESS,
    RP_EVENT_HINT_STASH,
    RP_EVENT_HINT_TIES,
    /* lanes */
    RP_EVENT_LANES_RESUMED,
    RP_EVENT_LANES_UNSAVED,
    RP_EVENT_LANE_FAULT,
    RP_EVENT_LANE_BACK,
    RP_EVENT_LANE_ENDED,
    RP_EVENT_LANE_LOST,
    RP_EVENT_LANE_REFUSED,
    /* sites */
    RP_EVENT_SITES_MISSING,
    RP_EVENT_SITE_ENDED,
    RP_EVENT_SITE_WAITS,
    RP_EVENT_SITE_LATE,
    RP_EVENT_SITE_LOST,
    RP_EVENT_SITE_REFUSED,
    RP_EVENT_SITE_FRESH,
    RP_EVENT_KINDS
} rp_event_kind;

/* Facts with what they mean. The names are keys of log.jsonl. Boards have names, not indices,
 * because they change places. A text that is NULL or "", and a number that is NaN, is missing. */
#define RP_EVENT_FACTS(TEXT, COUNT, REAL)                                                          \
    COUNT(step, "steps done, including the one of the event; from 1")                              \
    TEXT(board, "the board that the event is about")                                               \
    TEXT(peer, "the second board")                                                                 \
    TEXT(judge, "the third board, which computes a microbatch again")                              \
    TEXT(boards, "names of boards")                                                                \
    TEXT(spare, "a board that was a spare, or becomes one")                                        \
    TEXT(error, "message of the error")                                                            \
    TEXT(why, "reason, in words")                                                                  \
    TEXT(fault_class, "transient, board, user, security or fatal")                                 \
    TEXT(state, "state of the controller when it met the fault")                                   \
    TEXT(tensor, "name of a tensor")                                                               \
    TEXT(layer, "name of a layer")                                                                 \
    TEXT(peer_layer, "name of the second layer")                                                   \
    TEXT(changes, "settings of the run file that differ from before")                              \
    TEXT(keys, "keys of data.json that differ from before")                                        \
    TEXT(address, "address of a program that dials, or of the board in the ring")                  \
    TEXT(twin_address, "address of the board that is kept out")                                    \
    TEXT(key, "public key of the program that dials")                                              \
    TEXT(fingerprint, "fingerprint of the key")                                                    \
    TEXT(awaited, "boards that have not dialled yet")                                              \
    TEXT(waits, "what each board waits for, in words")                                             \
    TEXT(schedule, "name of the schedule")                                                         \
    TEXT(curve, "curve of the learning rate that ends: cosine or poly")                            \
    TEXT(carries, "what a stage sends: activations or gradients")                                  \
    TEXT(codec, "name of the codec")                                                               \
    TEXT(next_codec, "name of the codec that is next")                                             \
    TEXT(codecs, "names for activations/gradients, from stage to stage")                           \
    TEXT(planner, "name of the planner")                                                           \
    TEXT(sizes, "samples of microbatches, forward/backward, by stage")                             \
    TEXT(ahead, "steps by which forwards run ahead, by stage")                                     \
    TEXT(split, "stages that are split, or none")                                                  \
    TEXT(limits, "what limits the plan, in words")                                                 \
    TEXT(momentum_key, "key of the optimiser: momentum or beta1")                                  \
    TEXT(advice, "settings to try")                                                                \
    TEXT(note, "same as text")                                                                     \
    TEXT(file, "where to read more")                                                               \
    TEXT(site, "name of the site")                                                                 \
    TEXT(sites, "names of sites")                                                                  \
    COUNT(from_step, "step at which the run was before it went back")                              \
    COUNT(board_step, "step of the board")                                                         \
    COUNT(peer_step, "step of the second board")                                                   \
    COUNT(first_step, "first of some steps")                                                       \
    COUNT(copy_step, "step of the copies")                                                         \
    COUNT(best_step, "step of the best evaluation")                                                \
    COUNT(checkpoint_step, "step of the newest checkpoint; 0: none yet")                           \
    COUNT(steps, "number of steps")                                                                \
    COUNT(steps_before, "number of steps, before")                                                 \
    COUNT(every, "steps from one copy to the next")                                                \
    COUNT(tries, "number of tries")                                                                \
    COUNT(wait_s, "a limit in seconds")                                                            \
    COUNT(board_count, "number of boards, now")                                                    \
    COUNT(boards_before, "number of boards, before")                                               \
    COUNT(spares, "number of boards that become spares")                                           \
    COUNT(stage, "index of the stage")                                                             \
    COUNT(stages, "number of stages that boards share; 0: they share none")                        \
    COUNT(verified, "number of stages that were computed again")                                   \
    COUNT(micro, "samples of a microbatch; for verify: which microbatch, or sample")               \
    COUNT(by_sample, "1: the microbatch that contains the sample micro")                           \
    COUNT(first_sample, "first sample of a microbatch")                                            \
    COUNT(last_sample, "last sample of a microbatch")                                              \
    COUNT(even, "samples of a microbatch that is the same on all stages")                          \
    COUNT(forward, "samples of a microbatch forward")                                              \
    COUNT(backward, "samples of a microbatch backward")                                            \
    COUNT(advance, "number of forwards that run ahead")                                            \
    COUNT(advance_before, "number of forwards that ran ahead, before")                             \
    COUNT(replicas, "number of replicas")                                                          \
    COUNT(staleness, "updates by which gradients are late, at most")                               \
    COUNT(staleness_wanted, "updates by which they would be late")                                 \
    COUNT(evaluations, "number of evaluations without a gain")                                     \
    COUNT(nan, "number of values that are not a number")                                           \
    COUNT(infinite, "number of infinite values")                                                   \
    COUNT(values, "number of all values")                                                          \
    COUNT(tensors, "number of tensors")                                                            \
    COUNT(fallen, "number of tensors that are not predicted any more")                             \
    COUNT(round, "round of the lanes or sites")                                                    \
    COUNT(lane, "index of the lane")                                                               \
    COUNT(least, "number of sites that a round needs")                                             \
    COUNT(exit_code, "exit code of the process")                                                   \
    REAL(seconds, "time that it took, or has lasted")                                              \
    REAL(usual_s, "seconds that a step usually takes")                                             \
    REAL(replan_s, "seconds until the boards were back")                                           \
    REAL(restore_s, "seconds until they were loaded")                                              \
    REAL(step_s, "seconds of a step, as it is chosen")                                             \
    REAL(step_before_s, "seconds of a step, as it was")                                            \
    REAL(even_s, "seconds of a step with microbatches of that size")                               \
    REAL(copy_s, "seconds that copies cost")                                                       \
    REAL(delay_s, "seconds that links take")                                                       \
    REAL(stash_s, "seconds that a stash takes on its wire")                                        \
    REAL(work_s, "seconds that the busiest board computes in a step")                              \
    REAL(busy, "share of time in which boards compute, 0 to 1")                                    \
    REAL(busy_before, "the same share, before")                                                    \
    REAL(factor, "measured time, divided by the predicted one")                                    \
    REAL(loss, "loss, mean over the samples")                                                      \
    REAL(accuracy, "accuracy, 0 to 1")                                                             \
    REAL(lr, "learning rate of the next step")                                                     \
    REAL(lr_before, "learning rate of the last step")                                              \
    REAL(gain, "mean gain of predictions")                                                         \
    REAL(l2_error, "relative L2 norm of what a codec loses")                                       \
    REAL(max_error, "links.max_error")                                                             \
    REAL(momentum, "value of momentum_key")                                                        \
    REAL(updates, "further updates in which a gradient acts")                                      \
    REAL(alpha, "elastic coefficient of the averages")

#define RP_FACT_OF_TEXT(name, about) const char *name;
#define RP_FACT_OF_COUNT(name, about) uint64_t name;
#define RP_FACT_OF_REAL(name, about) double name;

/* An event. Texts are borrowed. */
typedef struct {
    rp_event_kind kind;
    RP_EVENT_FACTS(RP_FACT_OF_TEXT, RP_FACT_OF_COUNT, RP_FACT_OF_REAL)
} rp_run_event;

/* ---- words ----------------------------------------------------------------------------------- */

enum {
    RP_EVENT_SHOWN = 1, /* to a person who watches; others are in the log only */
    RP_EVENT_STAYS = 2, /* in the log, when the steps around it are done again */
};

/* What is fixed for a kind. */
typedef struct {
    const char *kind;  /* "HOP_HEARD" */
    const char *event; /* its name in the log, which several kinds may share; NULL: not an event,
                          but a part of the words of others */
    unsigned flags;
    const char *facts; /* names, separated by spaces; each event has `step`, too */
    const char *words;
} rp_event_row;

extern const rp_event_row rp_event_rows[RP_EVENT_KINDS];

enum { RP_WORDS_BYTES = 1024, RP_WORDS_KIND = 40 };

/* The kind as log.jsonl has it: "hop_heard". */
const char *rp_words_kind(rp_event_kind kind, char name[static RP_WORDS_KIND]);
/* Name and meaning of a fact. False: there are fewer. */
bool rp_words_fact(uint32_t index, const char **name, const char **about);

/* Writes the sentence of an event, cut at `bytes`; bytes that are not UTF-8 and control characters
 * of its facts are escaped. The event has no facts that its kind lacks. Returns text. */
const char *rp_words_write(const rp_run_event *event, char *text, size_t bytes);
/* Words of a kind that has no facts. */
const char *rp_words_of(rp_event_kind kind);
/* Adds the kind and the facts of the event to its line in the log. */
void rp_words_put_facts(const rp_run_event *event, json_t *line);
/* Whether lines with this event stay in the log (RP_EVENT_STAYS). */
bool rp_words_stay(const char *event);
/* Copies the event with its texts. errors  MEMORY */
rp_err rp_words_copy(rp_arena *arena, const rp_run_event *event, rp_run_event *out) RP_MUST_CHECK;

#endif
