/* A board of the ring: its links, what it has said, and what the rooms of the host keep about it.
 * The ring alone writes here, except the groups `machine`, `measure`, `train` and `keep`, which
 * belong to the rooms of these names. rp_ring_reset() and rp_ring_take_entry() clear flags in all
 * groups. */
#ifndef RP_RING_BOARD_H
#define RP_RING_BOARD_H

#include <float.h>

#include "checkpoint/position.h"
#include "greet/cause.h"
#include "link/watch.h"
#include "plan/plan.h"
#include "planning/profile.h"

/* Where a number of a board may be missing. */
#define RP_NO_BOARD UINT32_MAX

/* Messages that may wait for a board when its link is full. At most this many are due between two
 * of its answers: one HELLO or CONNECT, one START, EVALUATE, SAVE or RECORD, one STOP, the
 * decision on one step (the board does not continue without it), and the gains that may still take
 * effect (RP_GAIN_HISTORY). Longer streams (tensors, texts) are not queued: their state offers
 * them again. */
enum { RP_RING_PENDING_MAX = 12 };

typedef struct {
    rp_Frame frame;
    rp_part part;
    uint32_t part_count; /* 0 or 1 */
    uint8_t *bytes;      /* copy of the part's data, owned; NULL: none was needed yet */
    size_t room;         /* allocated bytes, at most ring->pending_bytes */
} rp_pending_message;

typedef struct {
    rp_pending_message message[RP_RING_PENDING_MAX];
    uint32_t first, count; /* ring buffer in `message` */
    int64_t since_ns;      /* time at which the first one became the first; valid if count > 0 */
} rp_board_queue;

typedef struct {
    char endpoint[128]; /* where the board listens; where it dials: ring->run->listen */
    char public_text[RP_KEY_TEXT];
    bool dials; /* the board dials this host, where its links are bound */
} rp_board_address;

/* The board's HELLO. */
typedef struct {
    char kind[sizeof(((rp_Hello *)0)->kind)]; /* of device, driver and tuning; "": not known */
    rp_gemm_choice gemm;
    uint64_t memory_bytes; /* memory of its device; 0: not known */
    rp_device_memory device_memory;
} rp_board_hardware;

typedef struct {
    rp_silent_why why;
    bool hung;        /* not heard for RP_RING_SILENT_NS, or reported by rp_ring_note_hung() */
    bool has_ended;   /* nothing listened at its address, and it was not heard since */
    bool is_reported; /* rp_ring_report_refusals() has reported it since it last greeted */
} rp_board_silence;

/* Boards and keys that dial this host and are kept out (kept_out.h). */
typedef struct {
    uint32_t twins;        /* rp_link_health.twins at the last look */
    int64_t twins_said_ns; /* time of the last report; 0: never */
    uint64_t strangers;    /* rp_stranger.count at the last look */
} rp_board_kept_out;

/* What building has cost a board, as its last BUILDING says. */
typedef struct {
    uint32_t kernels, ready, built;
    int64_t build_ns, read_ns;
    uint32_t layers, layers_timed;
} rp_board_building;

typedef struct {
    bool has_built;           /* it has been ready for some assignment of this run */
    int64_t prepare_ns;       /* of its last READY */
    rp_board_building now;    /* the profile or the stages that it builds now */
    rp_board_building before; /* the sum of all earlier ones */
} rp_board_build;

/* The board's READY: memory in bytes, and versions of the weights. */
typedef struct {
    uint64_t device_bytes, weight_bytes, slots, resident_bytes;
    uint64_t copy_bytes;        /* of its copy for a neighbour, without microbatches in flight */
    uint64_t parcel_bytes;      /* that its links may hold */
    uint64_t stash_bytes;       /* offloaded stashes, in the same memory as copies */
    uint64_t limit_bytes;       /* that it may take of that memory; 0: not known */
    bool own_memory;            /* the device has its own memory, apart from those three */
    uint32_t weight_copies;     /* versions of the weights in its memory */
    uint32_t weight_copies_max; /* the largest number of any assignment */
    uint32_t probe_copies;      /* versions during a probe */
} rp_board_usage;

typedef struct {
    uint32_t feed;
    uint32_t hop[RP_PLAN_NEIGHBOURS_MAX]; /* for each neighbour that dials it, in order */
} rp_board_ports;

/* What boards report at the end of a segment. */
typedef struct {
    uint32_t peer;  /* board at the other end */
    uint64_t bytes; /* sent */
    double busy_s;
    double rate;             /* recent rate in bytes a second; 0: not known */
    double delay_s[2];       /* to the ack: median, and 95 % of the messages */
    uint64_t resent, resets; /* all of these by the sender */
} rp_board_link;
typedef struct {
    int64_t busy_ns;
    uint64_t microbatches;
    uint32_t in_flight_max, staleness_max;
    uint64_t device_bytes_max, flash_bytes;
    uint32_t link_count;
    rp_board_link link[RP_PLAN_NEIGHBOURS_MAX];
    rp_board_link feed[2], control[2]; /* to the host, and back */
} rp_board_facts;

/* ---- groups of other rooms ------------------------------------------------------------------- */

/* host/control: the state at hand. */
typedef struct {
    bool asked;      /* it has got what the state asks of it */
    bool cause_said; /* why it does not come is in the log */
} rp_board_machine;

/* host/measure */
typedef struct {
    bool profiled;
} rp_board_measure;

/* host/train: the segment under way, or the last one. */
typedef struct {
    bool finished;
    rp_Waiting waiting; /* its last WAITING of this segment */
    int64_t waiting_ns; /* time of that message */
    bool feed_silence_said;
    rp_run_ledger ledger;
    uint64_t applied[RP_REPLICAS_MAX]; /* updates done: by replica, or by stage of the board */
    uint64_t in_flight_bytes;          /* microbatches in flight at the last pause */
    uint64_t skipped_step; /* the last step that it left out; of board 0, or the host for all */
    uint32_t skipped_row;  /* steps in a row up to that one */
} rp_board_train;

/* host/keep */
typedef struct {
    bool saved, copied;
    uint32_t sends; /* node whose state comes from it: its own, or one that it has a copy of */
    uint64_t microbatches_kept;      /* of facts.microbatches: those in the newest checkpoint */
    uint64_t microbatches_copied[2]; /* and in the copies, by rp_control_copies.set */
} rp_board_keep;

typedef struct {
    const char *name;
    const char *device; /* its device_text; NULL: not greeted yet, or lost since */
    char device_text[sizeof(((rp_Hello *)0)->device)];
    rp_board_address address;
    rp_link *control, *feed;
    rp_link_watch feed_watch; /* while feeds are watched */
    bool feed_is_silent;      /* at the last look */
    bool hello, ready;        /* it has answered the greeting; its assignment */
    int64_t clock_offset_ns;  /* host time = board time + offset */
    rp_board_queue queue;
    rp_board_silence silence;
    rp_board_kept_out kept_out;
    rp_board_hardware hardware;
    rp_board_build build;
    rp_board_usage memory;
    rp_board_ports ports;
    rp_board_facts facts;        /* the sum of all assignments */
    rp_board_facts facts_before; /* of those before this one */
    rp_board_machine machine;
    rp_board_measure measure;
    rp_board_train train;
    rp_board_keep keep;
} rp_board_state;

/* Times that a board may report: finite, and not negative. */
static inline bool rp_board_are_times(const double *seconds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(seconds[i] >= 0 && seconds[i] <= DBL_MAX)) {
            return false;
        }
    }
    return true;
}

/* What a board's clock may show: within 73 years of its zero, so that its difference to the host's
 * clock fits, and also a time that is moved by that difference. */
static inline bool rp_board_is_clock_time(int64_t ns) {
    return ns >= -(INT64_C(1) << 61) && ns <= INT64_C(1) << 61;
}

_Static_assert(RP_CHUNKS_MAX <= RP_REPLICAS_MAX, "applied[] has a place for each stage of a board");

#endif
