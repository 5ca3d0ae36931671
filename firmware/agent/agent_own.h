/* Private to agent.c and the files named below. */
#ifndef RP_AGENT_AGENT_OWN_H
#define RP_AGENT_AGENT_OWN_H

#include "agent/agent.h"
#include "agent/connect.h"
#include "agent/copies.h"
#include "agent/energy.h"
#include "agent/measure.h"
#include "agent/runner.h"
#include "agent/sensors.h"
#include "device/builder.h"
#include "link/watch.h"
#include "link/wire_rate.h"
#include "transport/hops.h"
#include "update/system.h"

/* Floats in a piece of a saved tensor; most pieces awaiting their ack; bytes in a piece of a copy
 * for a neighbour. */
enum { RP_AGENT_PIECE_FLOATS = 65536, RP_AGENT_UNACKED_MAX = 16, RP_COPY_PIECE_MAX = 1 << 15 };

/* A stage that this node holds. */
typedef struct {
    rp_job job;
    rp_stage *stage;
} agent_held;

/* A board that this one shares edges with. */
typedef struct {
    uint32_t node;       /* of the plan */
    rp_link *link;       /* NULL: not connected yet */
    rp_link_watch watch; /* used in state running */
    bool is_known;       /* its connection has been logged */
    bool is_silent;      /* last result of the watch */
} agent_neighbour;

/* A record of another board's stage to be recomputed here, on the builder's thread, once all of its
 * bytes have arrived. */
typedef struct {
    rp_arena arena; /* memory of all members */
    char *bytes;    /* NULL: no record */
    size_t count, got;
    rp_job job;
    rp_stage *stage;
    rp_record_digests digests;
} agent_recompute;

/* One run, from ASSIGN to BYE, allocated in its own arena. While it is built, it belongs entirely
 * to the builder's job. */
typedef struct {
    rp_run_identity identity;
    uint32_t wire; /* version of the wire used by its ring */
    const rp_executor_kind *executor;
    rp_site site; /* where the executor runs */
    rp_arena arena;
    rp_agent_reading reading; /* the texts of the assignment */
    const rp_plan *plan;      /* NULL: a profile */
    uint32_t node;            /* of the plan: this board */
    uint32_t held_count;
    agent_held held[RP_RUNNER_STAGES_MAX]; /* in the order of their stages */
    double *layer_seconds;                 /* results of a profile; NULL: an assignment is built */
    double flash_rate[2];                  /* results of a profile: write, read; 0: not known */
    bool builds_only;                      /* a profile that only builds and measures nothing */
    rp_measure_order order;                /* sizes to measure in a profile */
    int64_t build_start_ns;
    uint32_t warm_s; /* not 0: warming before a run, with this time limit */
    bool built_here; /* without a builder: built but not yet reported */
    bool has_started, lines_began, counts_energy;
    bool is_stopped;   /* stopped by a host within a segment */
    int64_t meet_ns;   /* time within which each neighbour must first be heard */
    int64_t orphan_ns; /* time that it is kept without a host */

    bool dials; /* the agent dials: see options.dial */
    rp_links *links;
    rp_link *feed; /* NULL: the host sends nothing here */
    uint32_t neighbour_count;
    agent_neighbour neighbour[RP_PLAN_NEIGHBOURS_MAX];
    rp_runner *runner;
    int64_t waiting_told_ns; /* time of the last report */
    bool has_told_waiting;   /* the end of the wait is not reported yet */
    bool silence_changed;    /* a neighbour's silence changed and is not reported yet */
    rp_link_profile line;    /* Line profile of every wire, and the layers for some: */
    rp_link_hops hops;

    float *piece;                      /* [RP_AGENT_PIECE_FLOATS] */
    uint32_t save_held, save_index;    /* next tensor */
    size_t save_first, save_in_flight; /* its next element; next byte of the in-flight state */
    size_t record_bytes, record_first; /* of the record being sent; 0: none */
    rp_record_digests record_digests;
    agent_recompute recompute;

    /* copy in progress, which a save writes to; NULL: a save goes to the host */
    rp_copy *copy;
    /* step of the last copy that all boards make or have made; 0: none yet */
    uint64_t copy_step;
    /* the term in which it was made; a host that takes over changes the run's own */
    rp_run_identity copy_term;
    uint64_t copy_bytes_max;      /* largest copy of a neighbour */
    uint64_t copy_sent, copy_got; /* bytes of our copy sent to its keeper, and acknowledged by it */
    bool copy_begun;              /* at least one piece of it was sent, possibly empty */
} agent_run;

/* An incoming bundle. */
typedef struct {
    FILE *file; /* NULL: none */
    uint64_t id, bytes, got;
    bool starts_again; /* restart as soon as the answer has arrived */
    int64_t since_ns;  /* time of the answer */
} agent_push;

/* The system slots, as last read. */
typedef struct {
    int64_t read_ns;
    bool known; /* the following members have been read */
    bool good;  /* the running system needs no wish any more */
    int64_t wished_ns;
    rp_system now;
} agent_system;

struct rp_agent {
    rp_agent_options options;
    rp_agent_state state;
    rp_device *device; /* NULL: the executor needs none */
    const rp_executor_kind *executor;
    char kind[24];       /* rp_measure_kind(); "" without a device */
    rp_gemm_choice gemm; /* copied, because the device belongs to the builder while it builds */
    rp_device_builder *builder;
    const rp_clock *clock;
    rp_links *links;
    rp_link *control;
    char host[128]; /* host of options.listen or options.dial */
    uint32_t port;
    bool over;
    uint32_t wire; /* version of the wire agreed with the host */
    rp_terms terms;
    agent_push push;
    agent_system system;
    bool has_met_host;
    int64_t born_ns;
    int64_t orphaned_ns;    /* in state orphan: time of its start */
    uint64_t host_features; /* from its last HELLO */
    /* time of the last BUILDING; 0 = no build */
    int64_t building_told_ns;
    char host_software[sizeof((rp_Hello *)0)->software]; /* from its last HELLO */
    char host_origin[sizeof((rp_Hello *)0)->origin];     /* from its last HELLO of a run */
    agent_run *run;                                      /* one of `runs`, or NULL in state hello */
    /* the ended one of `runs` while the builder still works on it or its device hangs; else NULL */
    agent_run *abandoned;
    agent_run runs[2];
    rp_run_identity refused; /* last logged identity of an older term */
    rp_run_identity ended;   /* the previous run, whose last messages may still arrive */
    rp_link *trial;          /* NULL: no trial */
    bool trial_dials;
    int64_t trial_since_ns;
    bool trial_reached;
    rp_Trial trial_asked; /* the last TRIAL; its sizes are measured once the link is up */
    rp_wire_rate rate;
    rp_wire_rate home;      /* rate of the control link */
    rp_message *held;       /* an assignment that waits for the builder */
    rp_copies copies;       /* copies outlive the run that made them */
    const rp_copy *fetched; /* copy being sent to the host; NULL: none */
    size_t fetched_at;
    rp_run_identity fetcher;
    struct { /* last answers to questions */
        rp_sensors sensors;
        rp_Condition condition; /* the part of it that does not change from round to round */
        int64_t read_ns;        /* 0 = never */
    } asked;
    rp_energy energy;  /* if options.reports_energy */
    rp_Trace sensors;  /* last readings, for the trace */
    int64_t reboot_ns; /* time of the reboot order; 0 = none */
    bool hung;         /* the device hung when a run ended */
};

/* Prefix of the kernel's files. */
static inline const char *rp_agent_system_root(const rp_agent *agent) {
    return agent->options.system_root ? agent->options.system_root : "";
}

/* endpoint.c: splits "tcp://HOST:PORT". errors USAGE */
rp_err rp_agent_split_endpoint(const char *endpoint, char *host, size_t host_bytes,
                               uint32_t *port) RP_MUST_CHECK;
/* The address to bind, `plus` ports above the control link's, or to dial the host. */
void rp_agent_bind_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes);
void rp_agent_dial_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes);

/* run.c: sends a message of the run to the host. */
rp_err rp_agent_answer(rp_agent *agent, rp_Frame *frame, const rp_part *parts,
                       uint32_t count) RP_MUST_CHECK;
bool rp_agent_builds(const rp_agent *agent); /* the builder's thread is working */
/* Returns to hello. A build in progress is abandoned: the builder stops and its result is dropped.
 * `why`: for the log, borrowed. */
void rp_agent_end_run(rp_agent *agent, const char *why);
void rp_agent_free_run(agent_run *run);
void rp_agent_end_recompute(agent_run *run); /* ends the run's record and its stage */

/* the run is built and its host is connected */
bool rp_agent_has_complete_run(const rp_agent *agent);

/* takeover.c: whether a new host can take over the present run. */
bool rp_agent_may_hold(const rp_agent *agent, rp_run_identity run);
void rp_agent_hold(rp_agent *agent, uint32_t term, bool stop);
/* Sends HELD. errors of the control link */
rp_err rp_agent_tell_held(rp_agent *agent, bool stopped) RP_MUST_CHECK;
/* bytes of the in-flight state that a SAVE sends */
size_t rp_agent_saved_in_flight(const agent_run *run);
/* Number of updates by replica, stage after stage. */
rp_part rp_agent_applied(const agent_run *run,
                         uint64_t applied[RP_RUNNER_STAGES_MAX * RP_REPLICAS_MAX]);

/* push.c: software for this board. During a run the board refuses. */
rp_err rp_agent_on_push(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_push_piece(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* Restarts once the answer has arrived or the host is gone. */
void rp_agent_step_push(rp_agent *agent);
void rp_agent_end_push(rp_agent *agent);

/* system.c: the system slots, which `ringpipe-system` writes. Rereads them when they are older than
 * a second; NULL: this board has none. */
const rp_system *rp_agent_system(rp_agent *agent);
/* Checks a received bundle; moves one of a whole system to where `ringpipe-system` takes it and
 * sets *is_system.
 * errors  REFUSED: it fits neither the running software nor this board; those of rp_bundle_read();
 *         IO */
rp_err rp_agent_hand_over_system(rp_agent *agent, const char *path, bool *is_system) RP_MUST_CHECK;
/* `wish`: "validate" or "revert". errors USAGE: the board has no system slots; IO */
rp_err rp_agent_wish_system(rp_agent *agent, const char *wish) RP_MUST_CHECK;
bool rp_agent_system_writes(const rp_agent *agent);
/* Describes both system slots for hosts. Returns false if the board has none. */
bool rp_agent_note_system(rp_agent *agent, rp_SystemSlot slot[2], uint32_t *own);
/* Reboots when another system is due and the board has no run. */
void rp_agent_step_system(rp_agent *agent);

/* questions.c: answers an ASK of any allowed host on the control link. `context`: the agent. */
bool rp_agent_answer_question(void *context, const rp_Ask *ask, rp_Frame *out);
/* ends the agent once the answer has had time to leave */
void rp_agent_step_reboot(rp_agent *agent);
/* assign.c: resident memory of this process; 0 if /proc does not tell. */
uint64_t rp_agent_resident_bytes(void);

/* shutdown.c: the agent ends soon and greets no more hosts. */
bool rp_agent_leaves(const rp_agent *agent);
/* errors  DEVICE: it hangs, and its run has ended */
rp_err rp_agent_check_device(const rp_agent *agent) RP_MUST_CHECK;

/* fault.c: reports the last error, `code`, to the host; _report also ends the run. */
void rp_agent_tell_fault(rp_agent *agent, rp_err code);
void rp_agent_report_fault(rp_agent *agent, rp_err code);

/* journal.c: logs the present state, if the options ask for it. */
void rp_agent_note_host(const rp_agent *agent);
void rp_agent_note_ready(const rp_agent *agent, uint64_t device_bytes);
void rp_agent_note_start(rp_agent *agent, uint64_t step); /* the first segment of a run */
void rp_agent_note_neighbours(rp_agent *agent);           /* neighbours that are heard now */
void rp_agent_note_end(const rp_agent *agent, bool builds, const char *why);

/* build.c: passes the run to the builder, and takes it back when it is done: *is_built.
 * errors  of _finish_build: those of the build; the run must then end */
rp_err rp_agent_start_build(rp_agent *agent) RP_MUST_CHECK;
rp_err rp_agent_finish_build(rp_agent *agent, bool *is_built) RP_MUST_CHECK;

/* build.c: time that a warming board has left. */
int64_t rp_agent_warm_left_ns(const rp_agent *agent);
/* Ends warming when its time is over. */
void rp_agent_watch_warming(rp_agent *agent);

/* progress.c: reports the build's progress to a host that wants it; `last`: the build is done, and
 * the next one is counted from 0. Sends nothing while the control link is full. */
void rp_agent_tell_building(rp_agent *agent, bool last);

/* waiting_report.c: within a segment, reports waiting and silent hops to the host.
 * errors  of the control link */
rp_err rp_agent_tell_waiting(rp_agent *agent) RP_MUST_CHECK;

/* trial.c: tries a link while there is no run. errors of the control link */
rp_err rp_agent_on_trial(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_step_trial(rp_agent *agent) RP_MUST_CHECK;
void rp_agent_end_trial(rp_agent *agent);

/* messages.c: handles every message of the host that has arrived, according to the state.
 * errors  of the control link */
rp_err rp_agent_take_messages(rp_agent *agent) RP_MUST_CHECK;

/* assign.c: messages that create a run. */
rp_err rp_agent_on_assign(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_profile(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_connect(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* Reports to the host that the build is complete. */
rp_err rp_agent_report_ready(rp_agent *agent) RP_MUST_CHECK;
rp_err rp_agent_report_profile(rp_agent *agent) RP_MUST_CHECK;

/* wiring.c: opens the links of the stages here, and their edges. */
rp_err rp_agent_open_links(rp_agent *agent) RP_MUST_CHECK;
void rp_agent_tell_ports(const agent_run *run, rp_Ready *ready); /* ports where others connect */
/* Dials a neighbour. errors PEER: this board does not dial it, or it already has a link */
rp_err rp_agent_dial(rp_agent *agent, const rp_Connect *to) RP_MUST_CHECK;
bool rp_agent_is_connected(const agent_run *run); /* there is a link to every neighbour */
rp_err rp_agent_open_runner(rp_agent *agent) RP_MUST_CHECK;
/* Steps the links to neighbours; a silent one is a fault that names the hop. */
rp_err rp_agent_step_links(rp_agent *agent) RP_MUST_CHECK;
void rp_agent_begin_watching(rp_agent *agent);
/* wiring.c: starts the time of emulated lines, unless it continues from an earlier assignment. */
void rp_agent_begin_lines(agent_run *run);
void rp_agent_report_links(const rp_agent *agent, rp_Finished *report);

/* record.c: sends the record of a microbatch of a stage here to the host, or recomputes one that
 * the host sends. */
rp_err rp_agent_on_record(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_continue_record(rp_agent *agent) RP_MUST_CHECK; /* as rp_agent_continue_save() */
rp_err
rp_agent_report_recomputed(rp_agent *agent) RP_MUST_CHECK; /* the record has been recomputed */

/* segment.c: messages between START and FINISHED. */
rp_err rp_agent_on_start(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_evaluate(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_stop(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_step_decision(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* Runs one round of a segment: data links, runner, end of the segment. */
rp_err rp_agent_run_round(rp_agent *agent) RP_MUST_CHECK;

/* tensors.c: messages that bring or request what the stage holds. */
rp_err rp_agent_on_tensor(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_tensors_end(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_in_flight(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_prediction_gain(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_save(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
void rp_agent_begin_save(rp_agent *agent); /* to the host, or into run->copy */
/* Sends a few pieces a round, so that heartbeats pass between them. */
rp_err rp_agent_continue_save(rp_agent *agent) RP_MUST_CHECK;

/* copying.c: copies of what the stages hold. */
rp_err rp_agent_on_copy(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_fetch(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
size_t rp_agent_copy_bytes(const agent_run *run); /* most bytes that one copy needs now */
/* During a run: sends pieces to the keeper while there is room; reports complete copies. */
rp_err rp_agent_step_copies(rp_agent *agent) RP_MUST_CHECK;
/* Handles a neighbour's message about a copy. `context`: the agent.
 * errors  PEER: the message is not about one of its copies */
rp_err rp_agent_take_copying(void *context, rp_link *link, const rp_message *message) RP_MUST_CHECK;
/* Reports all complete copies to a host that greets for this run; stops sending an earlier one. */
rp_err rp_agent_tell_copies(rp_agent *agent, uint64_t run_id) RP_MUST_CHECK;
/* Sends a few messages of the requested copy a round. errors FORMAT: it is damaged */
rp_err rp_agent_continue_fetch(rp_agent *agent) RP_MUST_CHECK;

#endif
