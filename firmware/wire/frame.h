/* Encodes and decodes frame 0 of a message, which alone decides what the parts must be.
 *
 * Every incoming byte has a limit that is known before it arrives: a frame has at most
 * RP_FRAME_BYTES_MAX bytes (512 for data) and at most 8 parts, each of the size that the frame
 * names, and shape x dtype = bytes. The kind of a message is the set member of the frame's
 * `body`. */
#ifndef RP_WIRE_FRAME_H
#define RP_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/shape.h"
#include "ringpipe.pb.h" /* generated: rp_Frame and its messages */
#include "wire/identity.h"
#include "wire/kinds.h"

enum {
    RP_WIRE_MIN = 2, /* the oldest version of the wire that this end speaks */
    RP_WIRE_MAX = 2, /* the newest version that it speaks */
    RP_FRAME_BYTES_MAX = 2048,
    RP_FRAME_DATA_BYTES_MAX = 512, /* for the data kinds */
    RP_PARTS_MAX = 8
};

/* Features of an end beyond its version, one bit each; a ring uses those that all its ends have. */
#define RP_WIRE_FEATURE_PLAN UINT64_C(1) /* ASSIGN has the plan as its third part: required */
#define RP_WIRE_FEATURE_NEIGHBOURS                                                                 \
    UINT64_C(2) /* boards link to each neighbour and send WEIGHT_GRADIENT: required */
#define RP_WIRE_FEATURE_BUILDING UINT64_C(4) /* the host accepts BUILDING; optional */
#define RP_WIRE_FEATURE_DIALS                                                                      \
    UINT64_C(8) /* a board reads `dials` in a plan: required of all if a board dials */
#define RP_WIRE_FEATURE_TRIALS                                                                     \
    UINT64_C(16) /* a board accepts a HELLO without a run, and TRIAL; optional */
#define RP_WIRE_FEATURE_CODECS                                                                     \
    UINT64_C(32) /* a board encodes with the plan's codecs: required of all if there are any */
#define RP_WIRE_FEATURE_WAITING UINT64_C(64) /* the host accepts WAITING; optional */
#define RP_WIRE_FEATURE_LEDGER                                                                     \
    UINT64_C(128) /* FINISHED has a ledger that continues START's; optional */
#define RP_WIRE_FEATURE_UINT8                                                                      \
    UINT64_C(256) /* a board normalises inputs that arrive as bytes; optional */
#define RP_WIRE_FEATURE_COPIES                                                                     \
    UINT64_C(512) /* a board accepts COPY and FETCH: required of all if copies are kept */
#define RP_WIRE_FEATURE_RECORDS                                                                    \
    UINT64_C(1024) /* a board records a microbatch and recomputes others: required if asked */
#define RP_WIRE_FEATURE_SIZES                                                                      \
    UINT64_C(2048) /* a board measures its layers at several sizes; optional */
#define RP_WIRE_FEATURE_WIRES UINT64_C(4096) /* a board measures a link that it tries; optional */
#define RP_WIRE_FEATURE_PUSH UINT64_C(8192)  /* a board accepts PUSH; optional */
#define RP_WIRE_FEATURE_BESIDES                                                                    \
    UINT64_C(16384) /* PROFILE.besides, and timing the control link by TRIAL_BYTES; optional */
#define RP_WIRE_FEATURE_SIZE_RECORDS                                                               \
    UINT64_C(32768) /* records with backwards of their own size: required if asked */
#define RP_WIRE_FEATURE_TIES                                                                       \
    UINT64_C(65536) /* a board reads `names` and sends TIED_GRADIENT: required of all if asked */
#define RP_WIRE_FEATURE_STORAGE                                                                    \
    UINT64_C(131072) /* a board stores activations in 16 bits: required of all if asked */
#define RP_WIRE_FEATURE_TIMES                                                                      \
    UINT64_C(262144) /* a board reads rp_Parcel.time: required of all if the data have buckets */
#define RP_WIRE_FEATURE_ANCHOR                                                                     \
    UINT64_C(524288) /* a board reads `anchor` in a job: required of all if asked */
#define RP_WIRE_FEATURES                                                                           \
    (RP_WIRE_FEATURE_PLAN | RP_WIRE_FEATURE_NEIGHBOURS | RP_WIRE_FEATURE_BUILDING |                \
     RP_WIRE_FEATURE_DIALS | RP_WIRE_FEATURE_TRIALS | RP_WIRE_FEATURE_CODECS |                     \
     RP_WIRE_FEATURE_WAITING | RP_WIRE_FEATURE_LEDGER | RP_WIRE_FEATURE_UINT8 |                    \
     RP_WIRE_FEATURE_RECORDS | RP_WIRE_FEATURE_COPIES | RP_WIRE_FEATURE_SIZES |                    \
     RP_WIRE_FEATURE_WIRES | RP_WIRE_FEATURE_PUSH | RP_WIRE_FEATURE_BESIDES |                      \
     RP_WIRE_FEATURE_SIZE_RECORDS | RP_WIRE_FEATURE_TIES | RP_WIRE_FEATURE_STORAGE |               \
     RP_WIRE_FEATURE_TIMES | RP_WIRE_FEATURE_ANCHOR)

/* What a board waits for, in WAITING. */
typedef enum {
    RP_WAITING_NOTHING,  /* it computes, or has no segment */
    RP_WAITING_INPUT,    /* input from `peer`: activations, gradients, parts of a gradient */
    RP_WAITING_ROOM,     /* room at `peer`, which has not consumed earlier messages */
    RP_WAITING_ACKS,     /* acks of `peer` after all ops are done */
    RP_WAITING_DEVICE,   /* an op on its own device */
    RP_WAITING_FEED,     /* inputs or labels from the host */
    RP_WAITING_DECISION, /* a step decision or prediction gains from the host */
    RP_WAITING_REPORTS,  /* the host's acks of this board's reports */
    RP_WAITING_KINDS
} rp_waiting_for;

/* Result of a TRIAL. */
typedef enum {
    RP_TRIAL_LISTENS = 1, /* the board listens at `port` */
    RP_TRIAL_REACHED,     /* both ends have heard each other */
    RP_TRIAL_REFUSED,     /* refused because of a key */
    RP_TRIAL_SILENT,      /* nothing was heard within RP_TRIAL_NS */
    RP_TRIAL_FAILED,      /* the trial could not be made; `text` says why */
    RP_TRIAL_MEASURED,    /* `seconds` has the result */
    RP_TRIAL_OUTCOMES
} rp_trial_outcome;
#define RP_TRIAL_NS (5 * RP_NS_PER_S)

/* What a PUSH asks for. */
typedef enum {
    RP_PUSH_STATE = 1,     /* only the present state */
    RP_PUSH_BUNDLE,        /* install a bundle: PUSH_PIECE messages follow */
    RP_PUSH_VALIDATE,      /* the software on trial answers, so mark it as good */
    RP_PUSH_REVERT,        /* call rp_ab_revert() and restart */
    RP_PUSH_REVERT_SYSTEM, /* revert to the system in the second slot and reboot */
    RP_PUSH_ACTIONS
} rp_push_action;
typedef enum {
    RP_PUSHED_STATE = 1, /* the present state; also the answer to VALIDATE and REVERT */
    RP_PUSHED_GOES_ON,   /* continue sending from `bytes` */
    RP_PUSHED_INSTALLED, /* installed on trial; the board restarts */
    RP_PUSHED_REFUSED,   /* refused; `text` says why */
    RP_PUSHED_WRITES,    /* a whole system is being written; then the board reboots */
    RP_PUSHED_OUTCOMES
} rp_push_outcome;
enum { RP_PUSH_PIECE_MAX = 1 << 17 }; /* bytes */

/* What an ASK wants, and the results that are neither CONDITION nor LINES. */
typedef enum {
    RP_ASK_CONDITION = 1,
    RP_ASK_LINES,
    RP_ASK_REBOOT,
    RP_ASK_HOLDER, /* which host and run the board serves */
    RP_ASK_WHATS
} rp_ask_what;
typedef enum {
    RP_ORDERED_DONE = 1,
    RP_ORDERED_REFUSED, /* not allowed on this board; `text` says why */
    RP_ORDERED_BUSY,    /* not possible now; `text` says why */
    RP_ORDERED_UNKNOWN, /* the board's software does not know the request */
    RP_ORDERED_OUTCOMES
} rp_ordered_outcome;

/* A board's readings of itself. Receivers skip numbers that they do not know. */
typedef enum {
    RP_READING_TEMPERATURE = 1, /* degrees Celsius, hottest sensor */
    RP_READING_CRITICAL,        /* degrees Celsius at which the system shuts down */
    RP_READING_THROTTLED,       /* bits of rp_throttled, now */
    RP_READING_WAS_THROTTLED,   /* bits of rp_throttled, since power-on */
    RP_READING_POWER,           /* W */
    RP_READING_CLOCK,           /* Hz, fastest core now */
    RP_READING_CLOCK_MAX,       /* Hz, highest possible */
    RP_READING_DEVICE_CLOCK,    /* Hz, GPU */
    RP_READING_MEMORY,          /* bytes of memory */
    RP_READING_MEMORY_FREE,
    RP_READING_DISK, /* bytes of the disk with the agent's files */
    RP_READING_DISK_FREE,
    RP_READING_LOAD,     /* load average of the last minute */
    RP_READING_UP,       /* s since power-on */
    RP_READING_AGENT_UP, /* s since the agent started */
    RP_READING_RESIDENT, /* bytes, resident memory of the agent */
    RP_READING_KERNELS,  /* kernels of a build in progress */
    RP_READING_KERNELS_READY,
    RP_READING_WARM_LEFT, /* s that a warming board has left */
    RP_READINGS
} rp_reading;
typedef enum {
    RP_THROTTLED_VOLTAGE = 1, /* supply voltage too low */
    RP_THROTTLED_CLOCK = 2,   /* clock limited */
    RP_THROTTLED_HEAT = 4,    /* too hot */
    RP_THROTTLED_CURRENT = 8  /* current too high */
} rp_throttled;

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef enum {
    RP_KIND_NONE = 0,
#define X(NAME, member, Message, from, class_, least, most, rule)                                  \
    RP_KIND_##NAME = rp_Frame_##member##_tag,
    RP_KIND_LIST(X)
#undef X
} rp_kind;

typedef enum { RP_FROM_HOST, RP_FROM_BOARD, RP_FROM_RING, RP_FROM_ANY } rp_kind_from;
typedef enum { RP_CLASS_DATA, RP_CLASS_CONTROL, RP_CLASS_LINK } rp_kind_class;
typedef enum {
    RP_PARTS_NONE,
    RP_PARTS_SAMPLES,
    RP_PARTS_TENSOR,
    RP_PARTS_TEXT,
    RP_PARTS_BYTES,
    RP_PARTS_F64,
    RP_PARTS_U64
} rp_kind_parts;

typedef struct {
    const char *name; /* of the body's member; NULL: unknown kind */
    rp_kind_from from;
    rp_kind_class of_class;
    uint32_t parts_min, parts_max;
    rp_kind_parts parts;
    const pb_msgdesc_t *body;
} rp_kind_facts;

/* Accepts any number; the result for an unknown kind has no name. */
const rp_kind_facts *rp_kind_facts_of(rp_kind kind);
const char *rp_kind_name(rp_kind kind); /* "step_done"; "unknown" for an unknown kind */

static inline rp_kind rp_frame_kind(const rp_Frame *frame) {
    return (rp_kind)frame->which_body;
}
/* Classes: data counts against the window; the link's own frames are not numbered. */
bool rp_frame_is_data(const rp_Frame *frame);
bool rp_frame_is_numbered(const rp_Frame *frame);

/* Converts a parcel to a frame of a data kind, and back. */
rp_Frame rp_frame_of_parcel(rp_kind kind, const rp_Parcel *parcel);
const rp_Parcel *rp_frame_parcel(const rp_Frame *frame); /* of a data kind only */

/* ---- parts ----------------------------------------------------------------------------------- */

typedef struct {
    const void *data;
    size_t bytes;
    rp_Dtype dtype;
    uint32_t block; /* elements that share a scale, for I8 */
    rp_shape shape; /* no dimensions for BYTES and TEXT */
} rp_part;

rp_part rp_part_of_bytes(const void *data, size_t bytes);
rp_part rp_part_of_text(const char *text);
rp_part rp_part_of_array(rp_Dtype dtype, const void *data, size_t count); /* one dimension */
rp_part rp_part_of_tensor(rp_Dtype dtype, const void *data, const rp_shape *shape);

/* Size of `count` elements with the scales of I8 blocks; 0 if `count` does not fit. */
uint64_t rp_part_bytes(rp_Dtype dtype, uint64_t count, uint32_t block);

/* ---- versions and runs ----------------------------------------------------------------------- */

typedef struct {
    uint32_t min, max;
} rp_wire_range;

/* Narrows `range` to the versions that the peer also speaks. Returns false and changes nothing if
 * they have no version in common. */
bool rp_wire_narrow(rp_wire_range *range, uint32_t peer_min, uint32_t peer_max);

static inline bool rp_frame_is_of_run(const rp_Frame *frame, rp_run_identity run) {
    return frame->run_id == run.id && frame->term == run.term;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Fills in part and payload_hash from the parts, and version if it is 0. Replaces whatever is not
 * printable UTF-8 in a text with '?', so that a fault can always be reported. After this
 * rp_frame_write() cannot fail, whatever values the fields of the link and the run get.
 * errors  FORMAT: unknown kind, parts against the kind's rule; LIMIT: a part's size */
rp_err rp_frame_seal(rp_Frame *frame, const rp_part *parts, uint32_t part_count) RP_MUST_CHECK;

/* rp_frame_seal() and rp_frame_write(). `out` has RP_FRAME_BYTES_MAX bytes. */
rp_err rp_frame_encode(rp_Frame *frame, const rp_part *parts, uint32_t part_count, uint8_t *out,
                       size_t *bytes) RP_MUST_CHECK;

/* Writes a sealed frame; computes no hash. */
rp_err rp_frame_write(const rp_Frame *frame, uint8_t *out, size_t *bytes) RP_MUST_CHECK;

/* HELLO and the link's own kinds are decoded in every version.
 * errors  FORMAT: version, unknown kind, size, text that is not printable, parts against the kind's
 *         rule, a shape whose product times its dtype is not the part's size, a part above
 *         `part_bytes_max` */
rp_err rp_frame_decode(const uint8_t *bytes, size_t count, size_t part_bytes_max,
                       rp_Frame *out) RP_MUST_CHECK;

/* Compares the received parts with the frame: number, sizes, hash. errors FORMAT */
rp_err rp_frame_check_parts(const rp_Frame *frame, const rp_part *parts,
                            uint32_t part_count) RP_MUST_CHECK;

/* Describes part `index` as the frame does, with the received bytes as its data. */
rp_part rp_frame_part(const rp_Frame *frame, uint32_t index, const void *data, size_t bytes);

#endif
