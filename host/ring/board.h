/* A board of the ring: its links, its reports, and what the rooms of the host store about it. Only
 * the ring writes here, except the groups `machine`, `measure`, `train` and `keep`, which belong to
 * the rooms of these names. rp_ring_reset() and rp_ring_take_entry() clear flags in all groups. */
#ifndef RP_RING_BOARD_H
#define RP_RING_BOARD_H

#include <float.h>

#include "checkpoint/position.h"
#include "greet/cause.h"
#include "link/watch.h"
#include "plan/plan.h"
#include "planning/profile.h"

/* Stands for no board. */
#define RP_NO_BOARD UINT32_MAX

/* Capacity of a board's queue, used when its link is full. Between two of its answers at most this
 * many messages are due: one HELLO or CONNECT, one START, EVALUATE, SAVE or RECORD, one STOP, the
 * decision on one step (the board does not continue without it), and the gains that may still take
 * effect (RP_GAIN_HISTORY). Longer streams (tensors, texts) are not queued: their state offers them
 * again. */
enum { RP_RING_PENDING_MAX = 12 };

typedef struct {
    rp_Frame frame;
    rp_part part;
    uint32_t part_count; /* 0 or 1 */
    uint8_t *bytes;      /* copy of the part's data, owned; NULL: not allocated yet */
    size_t room;         /* allocated bytes, at most ring->pending_bytes */
} rp_pending_message;

typedef struct {
    rp_pending_message message[RP_RING_PENDING_MAX];
    uint32_t first, count; /* ring buffer in `message` */
    int64_t since_ns;      /* time at which the first one became the first; valid if count > 0 */
} rp_board_queue;

typedef struct {
    char endpoint[128]; /* where the board listens; ring->run->listen if it dials */
    char public_text[RP_KEY_TEXT];
    bool dials; /* the board dials this host, where its links are bound */
} rp_board_address;

/* Hardware, from the board's HELLO. */
typedef struct {
    char kind[sizeof(((rp_Hello *)0)->kind)]; /* kind of device, driver and tuning; "": unknown */
    rp_gemm_choice gemm;
    uint64_t memory_bytes; /* memory of its device; 0: unknown */
    rp_device_memory device_memory;
    /* Boot id of the machine, which boards on one machine share; "": it reports no energy. */
    char machine[sizeof(((rp_Hello *)0)->machine)];
} rp_board_hardware;

typedef struct {
    rp_silent_why why;
    bool hung;        /* not heard for RP_RING_SILENT_NS, or reported by rp_ring_note_hung() */
    bool has_ended;   /* nothing listened at its address, and it was not heard since */
    bool is_reported; /* rp_ring_report_refusals() has reported it since it last greeted */
} rp_board_silence;

/* Boards and keys that dial this host and are kept out (kept_out.h). */
typedef struct {
    uint32_t twins;        /* rp_link_health.twins at the last check */
    int64_t twins_said_ns; /* time of the last report; 0: never */
    uint64_t strangers;    /* rp_stranger.count at the last check */
} rp_board_kept_out;

/* Costs of building, from the board's last BUILDING. */
typedef struct {
    uint32_t kernels, ready, built;
    int64_t build_ns, read_ns;
    uint32_t layers, layers_timed;
} rp_board_building;

typedef struct {
    bool has_built;           /* it was ready for some assignment of this run */
    int64_t prepare_ns;       /* from its last READY */
    rp_board_building now;    /* of the profile or the stages that it builds now */
    rp_board_building before; /* sum of all earlier ones */
} rp_board_build;

/* The board's READY: memory in bytes, and numbers of weight versions. */
typedef struct {
    uint64_t device_bytes, weight_bytes, slots, resident_bytes;
    uint64_t copy_bytes;        /* its copy for a neighbour, without in-flight microbatches */
    uint64_t parcel_bytes;      /* parcels that its links may hold */
    uint64_t stash_bytes;       /* offloaded stashes, in the same memory as copies */
    uint64_t limit_bytes;       /* limit of that memory for this board; 0: unknown */
    bool own_memory;            /* the device has its own memory, apart from the three above */
    uint32_t weight_copies;     /* weight versions in its memory */
    uint32_t weight_copies_max; /* largest number in any assignment */
    uint32_t probe_copies;      /* weight versions during a probe */
} rp_board_usage;

typedef struct {
    uint32_t feed;
    uint32_t hop[RP_PLAN_NEIGHBOURS_MAX]; /* for each neighbour that dials it, in order */
} rp_board_ports;

/* What boards report at the end of a segment. */
typedef struct {
    uint32_t peer;  /* board at the far end */
    uint64_t bytes; /* bytes sent */
    double busy_s;
    double rate;             /* recent rate, bytes per second; 0: unknown */
    double delay_s[2];       /* time to the ack: median and 95th percentile */
    uint64_t resent, resets; /* counted by the sender */
} rp_board_link;
typedef struct {
    int64_t busy_ns;
    uint64_t microbatches;
    uint32_t in_flight_max, staleness_max;
    uint64_t device_bytes_max, flash_bytes;
    double energy_j; /* drawn, as of its newest trace; 0: unknown */
    uint32_t link_count;
    rp_board_link link[RP_PLAN_NEIGHBOURS_MAX];
    rp_board_link feed[2], control[2]; /* to the host, and from it */
} rp_board_facts;

/* What a board's sensors say while it has a run; 0: unknown. */
typedef struct {
    double heat_c, power_w;
    int64_t told_ns;
} rp_board_sensors;

/* ---- groups of other rooms ------------------------------------------------------------------- */

/* host/control, for the current state. */
typedef struct {
    bool asked;      /* it got the request of this state */
    bool cause_said; /* the log has why it does not come */
} rp_board_machine;

/* host/measure */
typedef struct {
    bool profiled;
} rp_board_measure;

/* host/train: the current segment, or the last one. */
typedef struct {
    bool finished;
    rp_Waiting waiting; /* its last WAITING of this segment */
    int64_t waiting_ns; /* time of that message */
    bool feed_silence_said;
    rp_run_ledger ledger;
    uint64_t applied[RP_REPLICAS_MAX]; /* number of updates, by replica, or by stage of the board */
    uint64_t in_flight_bytes;          /* size of in-flight microbatches at the last pause */
    uint64_t skipped_step; /* last skipped step; board 0's if the host decides for all */
    uint32_t skipped_row;  /* number of steps skipped in a row up to that one */
} rp_board_train;

/* host/keep */
typedef struct {
    bool saved, copied;
    uint32_t sends; /* node whose state it sends: its own, or one that it has a copy of */
    uint64_t microbatches_kept;      /* value of facts.microbatches in the newest checkpoint */
    uint64_t microbatches_copied[2]; /* and in the copies, by rp_control_copies.set */
} rp_board_keep;

typedef struct {
    const char *name;
    const char *device; /* its device_text; NULL: not greeted, or lost since */
    char device_text[sizeof(((rp_Hello *)0)->device)];
    rp_board_address address;
    rp_link *control, *feed;
    rp_link_watch feed_watch; /* of its feed link, while feeds are watched */
    bool feed_is_silent;      /* at the last check */
    bool hello, ready;        /* answered the current greeting; is ready for the assignment */
    int64_t clock_offset_ns;  /* host time = board time + offset */
    rp_board_queue queue;
    rp_board_silence silence;
    rp_board_kept_out kept_out;
    rp_board_hardware hardware;
    rp_board_build build;
    rp_board_usage memory;
    rp_board_ports ports;
    rp_board_facts facts;        /* sum over all assignments */
    rp_board_facts facts_before; /* sum over earlier assignments */
    rp_board_sensors sensors;
    rp_board_machine machine;
    rp_board_measure measure;
    rp_board_train train;
    rp_board_keep keep;
} rp_board_state;

/* Checks times reported by a board: finite and not negative. */
static inline bool rp_board_are_times(const double *seconds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(seconds[i] >= 0 && seconds[i] <= DBL_MAX)) {
            return false;
        }
    }
    return true;
}

/* Checks a time on a board's clock: within 73 years of its zero, so that differences to the host's
 * clock, and times shifted by them, do not overflow. */
static inline bool rp_board_is_clock_time(int64_t ns) {
    return ns >= -(INT64_C(1) << 61) && ns <= INT64_C(1) << 61;
}

_Static_assert(RP_CHUNKS_MAX <= RP_REPLICAS_MAX, "applied[] has a place for each stage of a board");

#endif
