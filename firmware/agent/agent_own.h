/* Inside of an agent; only for agent.c and the files named below. */
#ifndef RP_AGENT_AGENT_OWN_H
#define RP_AGENT_AGENT_OWN_H

#include "agent/agent.h"
#include "agent/connect.h"
#include "agent/copies.h"
#include "agent/measure.h"
#include "agent/runner.h"
#include "agent/sensors.h"
#include "device/builder.h"
#include "link/watch.h"
#include "link/wire_rate.h"
#include "transport/hops.h"
#include "update/system.h"

/* Of a tensor that is saved; pieces that wait for their ack; of a copy that goes to a neighbour. */
enum { RP_AGENT_PIECE_FLOATS = 65536, RP_AGENT_UNACKED_MAX = 16, RP_COPY_PIECE_MAX = 1 << 15 };

/* A stage that this node holds. */
typedef struct {
    rp_job job;
    rp_stage *stage;
} agent_held;

/* A board that this one has edges with. */
typedef struct {
    uint32_t node;       /* of the plan */
    rp_link *link;       /* NULL: not connected yet */
    rp_link_watch watch; /* in state running */
    bool is_known;       /* the journal has said that it is there */
    bool is_silent;      /* as the watch saw it last */
} agent_neighbour;

/* A record of another board's stage, to be computed again here; on the builder's thread once all of
 * its bytes have come. */
typedef struct {
    rp_arena arena; /* of all below */
    char *bytes;    /* NULL: there is none */
    size_t count, got;
    rp_job job;
    rp_stage *stage;
    rp_record_digests digests;
} agent_again;

/* One run, from ASSIGN to BYE; everything lies in its own arena. While it is being built, all of it
 * belongs to the builder's job. */
typedef struct {
    rp_run_identity identity;
    uint32_t wire; /* version of the wire that its ring speaks */
    const rp_executor_kind *executor;
    rp_site site; /* what the executor runs on */
    rp_arena arena;
    rp_agent_reading reading; /* what was assigned */
    const rp_plan *plan;      /* NULL: of a profile */
    uint32_t node;            /* of the plan: this one */
    uint32_t held_count;
    agent_held held[RP_RUNNER_STAGES_MAX]; /* in the order of their stages */
    double *layer_seconds;                 /* of a profile; NULL: an assignment is built */
    double flash_rate[2];                  /* of a profile: written, read; 0: not known */
    bool builds_only;                      /* of a profile: nothing is measured */
    rp_measure_order order;                /* of a profile: at which sizes */
    int64_t build_start_ns;
    uint32_t warm_s; /* not 0: ahead of a run, and its time */
    bool built_here; /* without a builder: done, not reported yet */
    bool has_started, lines_began;
    bool is_stopped;   /* by a host, in the middle of a segment */
    int64_t meet_ns;   /* time within which each neighbour has to be heard for the first time */
    int64_t orphan_ns; /* it is kept so long without a host */

    bool dials; /* as options.dial says */
    rp_links *links;
    rp_link *feed; /* NULL: the host sends nothing here */
    uint32_t neighbour_count;
    agent_neighbour neighbour[RP_PLAN_NEIGHBOURS_MAX];
    rp_runner *runner;
    int64_t waiting_told_ns; /* last */
    bool has_told_waiting;   /* and not yet that it is over */
    bool silence_changed;    /* of a neighbour, and not told yet */
    rp_link_profile line;    /* of every wire, and what is different on some: */
    rp_link_hops hops;

    float *piece;                      /* [RP_AGENT_PIECE_FLOATS] */
    uint32_t save_held, save_index;    /* next tensor */
    size_t save_first, save_in_flight; /* its next element, next byte of what is in flight */
    size_t record_bytes, record_first; /* of the stage's record that is sent; 0: none is */
    rp_record_digests record_digests;
    agent_again again;

    rp_copy *copy;             /* that is made: what a save sends goes there; NULL: to the host */
    uint64_t copy_step;        /* that all boards make or have made last; 0: none yet */
    rp_run_identity copy_term; /* in which; a host that takes over changes the run's own */
    uint64_t copy_bytes_max;   /* of a neighbour's */
    uint64_t copy_sent, copy_got; /* of the own one, to and by its keeper */
    bool copy_begun;              /* a piece of it was sent, be it empty */
} agent_run;

/* A bundle that comes. */
typedef struct {
    FILE *file; /* NULL: none does */
    uint64_t id, bytes, got;
    bool starts_again; /* once what was answered has arrived */
    int64_t since_ns;  /* it was answered */
} agent_push;

/* The slots of the whole system, as they were told last. */
typedef struct {
    int64_t read_ns;
    bool known; /* what follows was read */
    bool good;  /* what runs needs no wish any more */
    int64_t wished_ns;
    rp_system now;
} agent_system;

struct rp_agent {
    rp_agent_options options;
    rp_agent_state state;
    rp_device *device; /* NULL: the executor needs none */
    const rp_executor_kind *executor;
    char kind[24];       /* rp_measure_kind(); "" without a device */
    rp_gemm_choice gemm; /* kept here: the device is the builder's while it builds */
    rp_device_builder *builder;
    const rp_clock *clock;
    rp_links *links;
    rp_link *control;
    char host[128]; /* of options.listen, or of options.dial */
    uint32_t port;
    bool over;
    uint32_t wire; /* version of the wire that the host and this board have */
    rp_terms terms;
    agent_push push;
    agent_system system;
    bool has_met_host;
    int64_t born_ns;
    int64_t orphaned_ns;                                 /* in state orphan: since when */
    uint64_t host_features;                              /* as its last HELLO said */
    int64_t building_told_ns;                            /* last BUILDING; 0 = of no build */
    char host_software[sizeof((rp_Hello *)0)->software]; /* as its last HELLO said */
    char host_origin[sizeof((rp_Hello *)0)->origin];     /* as its last HELLO of a run said */
    agent_run *run;       /* one of `runs`; zeros when the state is hello */
    agent_run *abandoned; /* the ended one of `runs` while the builder still works on it or its
                             device hangs; else NULL */
    agent_run runs[2];
    rp_run_identity refused; /* of an older term: the last one that was logged */
    rp_run_identity ended;   /* the run before: its last messages may still come */
    rp_link *trial;          /* NULL: none is tried */
    bool trial_dials;
    int64_t trial_since_ns;
    bool trial_reached;
    rp_Trial trial_asked; /* last: its sizes are measured once the link is there */
    rp_wire_rate rate;
    rp_wire_rate home;      /* of the control link */
    rp_message *held;       /* an assignment that waits for the builder */
    rp_copies copies;       /* which outlive the run that they were made in */
    const rp_copy *fetched; /* that is being handed out; NULL: none */
    size_t fetched_at;
    rp_run_identity fetcher;
    struct { /* what was read last for those who ask */
        rp_sensors sensors;
        rp_Condition condition; /* of it what does not change from round to round */
        int64_t read_ns;        /* 0 = never */
    } asked;
    int64_t reboot_ns; /* since when it is to reboot; 0 = it is not */
    bool hung;         /* the device hung when a run ended */
};

/* endpoint.c: "tcp://HOST:PORT" in its two halves. errors USAGE */
rp_err rp_agent_split_endpoint(const char *endpoint, char *host, size_t host_bytes,
                               uint32_t *port) RP_MUST_CHECK;
/* Where a socket binds, `plus` ports behind the control link's, or where it dials the host. */
void rp_agent_bind_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes);
void rp_agent_dial_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes);

/* run.c: to the host, as a message of the run. */
rp_err rp_agent_answer(rp_agent *agent, rp_Frame *frame, const rp_part *parts,
                       uint32_t count) RP_MUST_CHECK;
bool rp_agent_builds(const rp_agent *agent); /* the builder's thread is at work */
/* Back to hello. A build under way is abandoned: the builder ends it and it is dropped. `why`: for
 * the journal, borrowed. */
void rp_agent_end_run(rp_agent *agent, const char *why);
void rp_agent_free_run(agent_run *run);
void rp_agent_end_again(agent_run *run); /* of the run: a record, and its stage */

bool rp_agent_has_complete_run(const rp_agent *agent); /* of a host that is there */

/* hold.c: a new host takes the run over: is there one that it can? */
bool rp_agent_may_hold(const rp_agent *agent, rp_run_identity run);
void rp_agent_hold(rp_agent *agent, uint32_t term, bool stop);
/* HELD. errors: of the control link */
rp_err rp_agent_tell_held(rp_agent *agent, bool stopped) RP_MUST_CHECK;
size_t rp_agent_saved_in_flight(const agent_run *run); /* bytes that a SAVE sends */
/* Updates done by replica, stage after stage. */
rp_part rp_agent_applied(const agent_run *run,
                         uint64_t applied[RP_RUNNER_STAGES_MAX * RP_REPLICAS_MAX]);

/* push.c: software for this board. A run is not disturbed: its board says so. */
rp_err rp_agent_on_push(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_push_piece(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* Over, once the answer has arrived, or nobody takes it. */
void rp_agent_step_push(rp_agent *agent);
void rp_agent_end_push(rp_agent *agent);

/* system.c: the slots of the whole system, which `ringpipe-system` writes.
 * What is told of them, read anew when it is older than a second; NULL: this board has none. */
const rp_system *rp_agent_system(rp_agent *agent);
/* Looks at a bundle that has come; one of a whole system it puts where that is taken, and
 * *is_system says so. errors  REFUSED: it fits neither what runs nor this board; those of
 * rp_bundle_read(); IO */
rp_err rp_agent_hand_over_system(rp_agent *agent, const char *path, bool *is_system) RP_MUST_CHECK;
/* "validate" or "revert". errors  USAGE: the board has no slots of a system; IO */
rp_err rp_agent_wish_system(rp_agent *agent, const char *wish) RP_MUST_CHECK;
bool rp_agent_system_writes(const rp_agent *agent);
/* For hosts: both slots; false: the board has none. */
bool rp_agent_note_system(rp_agent *agent, rp_SystemSlot slot[2], uint32_t *own);
/* Another system is due, and the board has no run: it reboots. */
void rp_agent_step_system(rp_agent *agent);

/* ask.c: of the control link: ASK of any host that is let in. `context`: the agent. */
bool rp_agent_answer_question(void *context, const rp_Ask *ask, rp_Frame *out);
void rp_agent_step_reboot(rp_agent *agent); /* over, once the answer has had time to leave */
/* assign.c: what this process holds of the board's memory; 0 when /proc does not say. */
uint64_t rp_agent_resident_bytes(void);

/* leaving.c: the agent ends soon, and greets no host any more. */
bool rp_agent_leaves(const rp_agent *agent);
/* errors  DEVICE: it hangs, and its run has ended */
rp_err rp_agent_check_device(const rp_agent *agent) RP_MUST_CHECK;

/* fault.c: the last error, which is `code`, is told to the host; with _report the run ends here. */
void rp_agent_tell_fault(rp_agent *agent, rp_err code);
void rp_agent_report_fault(rp_agent *agent, rp_err code);

/* journal.c: lines about the state as it is, where the options ask for them. */
void rp_agent_note_host(const rp_agent *agent);
void rp_agent_note_ready(const rp_agent *agent, uint64_t device_bytes);
void rp_agent_note_start(rp_agent *agent, uint64_t step); /* the first one of a run */
void rp_agent_note_neighbours(rp_agent *agent);           /* those that are heard now */
void rp_agent_note_end(const rp_agent *agent, bool builds, const char *why);

/* build.c: gives the run to the builder, and takes it back when it is done: *is_built.
 * errors of _finish_build: those of what was built; the run has to end then */
rp_err rp_agent_start_build(rp_agent *agent) RP_MUST_CHECK;
rp_err rp_agent_finish_build(rp_agent *agent, bool *is_built) RP_MUST_CHECK;

/* build.c: of a board that warms, what of its time is left. */
int64_t rp_agent_warm_left_ns(const rp_agent *agent);
/* .. ends that when it is over. */
void rp_agent_watch_warming(rp_agent *agent);

/* progress.c: tells a host that wants to know how far the build is; `last`: it is done, and the
 * next one is counted anew. Nothing is told that the control link has no room for. */
void rp_agent_tell_building(rp_agent *agent, bool last);

/* waiting.c: in a segment, what the host hears of waiting and of silent hops. errors: of the
 * control link */
rp_err rp_agent_tell_waiting(rp_agent *agent) RP_MUST_CHECK;

/* trial.c: a link that is tried in no run. errors: of the control link */
rp_err rp_agent_on_trial(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_step_trial(rp_agent *agent) RP_MUST_CHECK;
void rp_agent_end_trial(rp_agent *agent);

/* messages.c: every message of the host that has come, as the state takes it. errors: of the
 * control link */
rp_err rp_agent_take_messages(rp_agent *agent) RP_MUST_CHECK;

/* assign.c: messages that make a run. */
rp_err rp_agent_on_assign(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_profile(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_connect(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* What was built is there: the host hears of it. */
rp_err rp_agent_report_ready(rp_agent *agent) RP_MUST_CHECK;
rp_err rp_agent_report_profile(rp_agent *agent) RP_MUST_CHECK;

/* wiring.c: links of the stages here, and their edges. */
rp_err rp_agent_open_links(rp_agent *agent) RP_MUST_CHECK;
void rp_agent_tell_ports(const agent_run *run, rp_Ready *ready); /* where others connect */
/* Dials a neighbour. errors PEER: not one that this board dials, or it has a link already */
rp_err rp_agent_dial(rp_agent *agent, const rp_Connect *to) RP_MUST_CHECK;
bool rp_agent_is_connected(const agent_run *run); /* there is a link to every neighbour */
rp_err rp_agent_open_runner(rp_agent *agent) RP_MUST_CHECK;
/* What the neighbours' links do: messages move, silence is a fault that names the hop. */
rp_err rp_agent_step_links(rp_agent *agent) RP_MUST_CHECK;
void rp_agent_begin_watching(rp_agent *agent);
/* wiring.c: the time of emulated lines begins, unless it goes on from an assignment before. */
void rp_agent_begin_lines(agent_run *run);
void rp_agent_report_links(const rp_agent *agent, rp_Finished *report);

/* record.c: the record of a microbatch: a stage's here to the host, or one of the host's, computed
 * again. */
rp_err rp_agent_on_record(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_continue_record(rp_agent *agent) RP_MUST_CHECK; /* as rp_agent_continue_save() */
rp_err rp_agent_report_again(rp_agent *agent) RP_MUST_CHECK;    /* it has been computed */

/* segment.c: messages between START and FINISHED. */
rp_err rp_agent_on_start(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_evaluate(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_stop(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_step_decision(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* One round of what runs: the data links, the runner, the end of a segment. */
rp_err rp_agent_run_round(rp_agent *agent) RP_MUST_CHECK;

/* tensors.c: messages that bring what the stage holds, or ask for it. */
rp_err rp_agent_on_tensor(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_tensors_end(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_in_flight(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_prediction_gain(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_save(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
void rp_agent_begin_save(rp_agent *agent); /* to the host, or into run->copy */
/* A few pieces a round, so that heartbeats pass between them. */
rp_err rp_agent_continue_save(rp_agent *agent) RP_MUST_CHECK;

/* copying.c: copies of what the stages hold. */
rp_err rp_agent_on_copy(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_fetch(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
size_t rp_agent_copy_bytes(const agent_run *run); /* that one needs now, at most */
/* In a run: pieces go to the keeper as far as there is room, and the host hears of whole copies. */
rp_err rp_agent_step_copies(rp_agent *agent) RP_MUST_CHECK;
/* What a neighbour says of a copy. `context`: the agent. errors PEER: it is none of theirs */
rp_err rp_agent_take_copying(void *context, rp_link *link, const rp_message *message) RP_MUST_CHECK;
/* All that are whole, to a host that greets for this run; what was handed out stops. */
rp_err rp_agent_tell_copies(rp_agent *agent, uint64_t run_id) RP_MUST_CHECK;
/* A few messages of the copy that is asked for a round. errors FORMAT: it is damaged */
rp_err rp_agent_continue_fetch(rp_agent *agent) RP_MUST_CHECK;

#endif
