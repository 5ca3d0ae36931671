/* Encode and decode frame 0 of a message; decide from it alone what the parts must be.
 *
 * Every byte that comes in has a limit that was decided before it came: a frame of at most
 * RP_FRAME_BYTES_MAX bytes (512 for data), at most 8 parts, each of the size that the frame names,
 * and shape x dtype = bytes. The kind of a message is the member of the frame's `body`. */
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
    RP_WIRE_MAX = 2, /* the newest */
    RP_FRAME_BYTES_MAX = 2048,
    RP_FRAME_DATA_BYTES_MAX = 512, /* of the data kinds */
    RP_PARTS_MAX = 8
};

/* What an end can do beyond its version, bit by bit; a ring uses what all its ends have. */
#define RP_WIRE_FEATURE_PLAN                                                                       \
    UINT64_C(1) /* ASSIGN has the plan as its third part: every end needs it */
#define RP_WIRE_FEATURE_NEIGHBOURS                                                                 \
    UINT64_C(2) /* boards have a link to each neighbour, and send WEIGHT_GRADIENT: all need it */
#define RP_WIRE_FEATURE_BUILDING UINT64_C(4) /* the host takes BUILDING; nobody needs it */
#define RP_WIRE_FEATURE_DIALS                                                                      \
    UINT64_C(8) /* a board reads `dials` in a plan: all need it where a board dials */
#define RP_WIRE_FEATURE_TRIALS                                                                     \
    UINT64_C(16) /* a board takes a HELLO of no run, and TRIAL; nobody needs it */
#define RP_WIRE_FEATURE_CODECS                                                                     \
    UINT64_C(32) /* a board encodes what the plan gives a codec to: all need it where it does */
#define RP_WIRE_FEATURE_WAITING UINT64_C(64) /* the host takes WAITING; nobody needs it */
#define RP_WIRE_FEATURE_LEDGER                                                                     \
    UINT64_C(128) /* FINISHED has a ledger that goes on from START's; nobody needs it */
#define RP_WIRE_FEATURE_UINT8                                                                      \
    UINT64_C(256) /* a board normalises inputs that come as bytes; nobody needs it */
#define RP_WIRE_FEATURE_COPIES                                                                     \
    UINT64_C(512) /* a board takes COPY and FETCH: all need it where copies are kept */
#define RP_WIRE_FEATURE_RECORDS                                                                    \
    UINT64_C(1024) /* a board records a microbatch, and computes those of others again: all need   \
                      it where a run asks for it */
#define RP_WIRE_FEATURE_SIZES                                                                      \
    UINT64_C(2048) /* a board measures its layers at several sizes; nobody needs it */
#define RP_WIRE_FEATURE_WIRES                                                                      \
    UINT64_C(4096) /* a board measures a link that it tries; nobody needs it */
#define RP_WIRE_FEATURE_PUSH UINT64_C(8192) /* a board takes PUSH; nobody needs it */
#define RP_WIRE_FEATURE_BESIDES                                                                    \
    UINT64_C(16384) /* a board measures what PROFILE.besides asks for, and its control link, over  \
                       which it takes TRIAL_BYTES; nobody needs it */
#define RP_WIRE_FEATURE_SIZE_RECORDS                                                               \
    UINT64_C(32768) /* records also where a backward has a size of its own: all need it where a    \
                       run with such a schedule asks for records */
#define RP_WIRE_FEATURES                                                                           \
    (RP_WIRE_FEATURE_PLAN | RP_WIRE_FEATURE_NEIGHBOURS | RP_WIRE_FEATURE_BUILDING |                \
     RP_WIRE_FEATURE_DIALS | RP_WIRE_FEATURE_TRIALS | RP_WIRE_FEATURE_CODECS |                     \
     RP_WIRE_FEATURE_WAITING | RP_WIRE_FEATURE_LEDGER | RP_WIRE_FEATURE_UINT8 |                    \
     RP_WIRE_FEATURE_RECORDS | RP_WIRE_FEATURE_COPIES | RP_WIRE_FEATURE_SIZES |                    \
     RP_WIRE_FEATURE_WIRES | RP_WIRE_FEATURE_PUSH | RP_WIRE_FEATURE_BESIDES |                      \
     RP_WIRE_FEATURE_SIZE_RECORDS)

/* What a board waits for: WAITING. */
typedef enum {
    RP_WAITING_NOTHING,  /* it works, or has no segment */
    RP_WAITING_INPUT,    /* what `peer` sends: activations, gradients, parts of a gradient */
    RP_WAITING_ROOM,     /* `peer` has not taken what was sent to it before */
    RP_WAITING_ACKS,     /* all ops are done, and `peer` has not acked what was sent */
    RP_WAITING_DEVICE,   /* an op that its device works at */
    RP_WAITING_FEED,     /* inputs or labels of the host */
    RP_WAITING_DECISION, /* the host's: a step decision, or prediction gains */
    RP_WAITING_REPORTS,  /* the host has not acked what this board has reported */
    RP_WAITING_KINDS
} rp_waiting_for;

/* What came of a TRIAL. */
typedef enum {
    RP_TRIAL_LISTENS = 1, /* at `port` */
    RP_TRIAL_REACHED,     /* both ends have heard each other */
    RP_TRIAL_REFUSED,     /* by keys */
    RP_TRIAL_SILENT,      /* nothing came within RP_TRIAL_NS */
    RP_TRIAL_FAILED,      /* it could not be tried: `text` */
    RP_TRIAL_MEASURED,    /* `seconds` */
    RP_TRIAL_OUTCOMES
} rp_trial_outcome;
#define RP_TRIAL_NS (5 * RP_NS_PER_S)

/* What a PUSH asks for, and what came of it. */
typedef enum {
    RP_PUSH_STATE = 1,     /* nothing: what is there */
    RP_PUSH_BUNDLE,        /* PUSH_PIECE follow */
    RP_PUSH_VALIDATE,      /* what is on trial and answers is good */
    RP_PUSH_REVERT,        /* rp_ab_revert(), and the board starts again */
    RP_PUSH_REVERT_SYSTEM, /* to the whole system in the other slot, and the board reboots */
    RP_PUSH_ACTIONS
} rp_push_action;
typedef enum {
    RP_PUSHED_STATE = 1, /* what is there, also behind VALIDATE and REVERT */
    RP_PUSHED_GOES_ON,   /* send from `bytes` on */
    RP_PUSHED_INSTALLED, /* on trial; the board starts again */
    RP_PUSHED_REFUSED,   /* `text` */
    RP_PUSHED_WRITES,    /* a whole system: it is written, and then the board reboots */
    RP_PUSHED_OUTCOMES
} rp_push_outcome;
enum { RP_PUSH_PIECE_MAX = 1 << 17 }; /* bytes */

/* What an ASK wants, and what came of it where that is no CONDITION and no LINES. */
typedef enum {
    RP_ASK_CONDITION = 1,
    RP_ASK_LINES,
    RP_ASK_REBOOT,
    RP_ASK_HOLDER, /* which host and run have the board */
    RP_ASK_WHATS
} rp_ask_what;
typedef enum {
    RP_ORDERED_DONE = 1,
    RP_ORDERED_REFUSED, /* the board lets nobody: `text` */
    RP_ORDERED_BUSY,    /* not now: `text` */
    RP_ORDERED_UNKNOWN, /* this board's software does not know what is asked */
    RP_ORDERED_OUTCOMES
} rp_ordered_outcome;

/* What a board measures of itself. A number that the receiver does not know is passed over. */
typedef enum {
    RP_READING_TEMPERATURE = 1, /* degrees Celsius, of the hottest place */
    RP_READING_CRITICAL,        /* .. at which the system switches off */
    RP_READING_THROTTLED,       /* bits of rp_throttled: now */
    RP_READING_WAS_THROTTLED,   /* .. since it was switched on */
    RP_READING_POWER,           /* W */
    RP_READING_CLOCK,           /* Hz, of the fastest core now */
    RP_READING_CLOCK_MAX,       /* .. that it may have */
    RP_READING_DEVICE_CLOCK,    /* Hz, of a GPU */
    RP_READING_MEMORY,          /* bytes */
    RP_READING_MEMORY_FREE,
    RP_READING_DISK, /* bytes, where the agent keeps its own */
    RP_READING_DISK_FREE,
    RP_READING_LOAD,     /* of the last minute */
    RP_READING_UP,       /* s, since the board was switched on */
    RP_READING_AGENT_UP, /* s, since the agent began */
    RP_READING_RESIDENT, /* bytes, of the agent's process */
    RP_READING_KERNELS,  /* of a build that is under way */
    RP_READING_KERNELS_READY,
    RP_READING_WARM_LEFT, /* s, that a board which warms has left */
    RP_READINGS
} rp_reading;
typedef enum {
    RP_THROTTLED_VOLTAGE = 1, /* the supply gives too little */
    RP_THROTTLED_CLOCK = 2,   /* the clock is held down */
    RP_THROTTLED_HEAT = 4,    /* too hot */
    RP_THROTTLED_CURRENT = 8  /* too much current is drawn */
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
    const char *name; /* of the body's member; NULL: there is no such kind */
    rp_kind_from from;
    rp_kind_class of_class;
    uint32_t parts_min, parts_max;
    rp_kind_parts parts;
    const pb_msgdesc_t *body;
} rp_kind_facts;

/* Of any number; one without a name for what is no kind. */
const rp_kind_facts *rp_kind_facts_of(rp_kind kind);
const char *rp_kind_name(rp_kind kind); /* "step_done"; "unknown" for what is no kind */

static inline rp_kind rp_frame_kind(const rp_Frame *frame) {
    return (rp_kind)frame->which_body;
}
/* What the link does with a frame: data counts against the window; frames of the link itself are
 * not numbered. */
bool rp_frame_is_data(const rp_Frame *frame);
bool rp_frame_is_numbered(const rp_Frame *frame);

/* A frame of a data kind, and its parcel again. */
rp_Frame rp_frame_of_parcel(rp_kind kind, const rp_Parcel *parcel);
const rp_Parcel *rp_frame_parcel(const rp_Frame *frame); /* of a data kind only */

/* ---- parts ----------------------------------------------------------------------------------- */

typedef struct {
    const void *data;
    size_t bytes;
    rp_Dtype dtype;
    uint32_t block; /* I8: elements that share a scale */
    rp_shape shape; /* no dimensions: BYTES and TEXT */
} rp_part;

rp_part rp_part_of_bytes(const void *data, size_t bytes);
rp_part rp_part_of_text(const char *text);
rp_part rp_part_of_array(rp_Dtype dtype, const void *data, size_t count); /* one dimension */
rp_part rp_part_of_tensor(rp_Dtype dtype, const void *data, const rp_shape *shape);

/* Bytes of `count` elements, the scales of an I8's blocks with them; 0: not of this dtype. */
uint64_t rp_part_bytes(rp_Dtype dtype, uint64_t count, uint32_t block);

/* ---- versions and runs ----------------------------------------------------------------------- */

typedef struct {
    uint32_t min, max;
} rp_wire_range;

/* Narrows `range` to what the peer speaks, too. False, and unchanged: the ranges do not meet. */
bool rp_wire_narrow(rp_wire_range *range, uint32_t peer_min, uint32_t peer_max);

static inline bool rp_frame_is_of_run(const rp_Frame *frame, rp_run_identity run) {
    return frame->run_id == run.id && frame->term == run.term;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Fills part and payload_hash from the parts, version when it is 0; what is no printable UTF-8 in a
 * text becomes '?', so that a fault can always be told. rp_frame_write() then can not fail, however
 * often the fields of the link or the run change.
 * errors  FORMAT: unknown kind, parts against the kind's rule; LIMIT: a part's size */
rp_err rp_frame_seal(rp_Frame *frame, const rp_part *parts, uint32_t part_count) RP_MUST_CHECK;

/* Both at once. out has RP_FRAME_BYTES_MAX bytes. */
rp_err rp_frame_encode(rp_Frame *frame, const rp_part *parts, uint32_t part_count, uint8_t *out,
                       size_t *bytes) RP_MUST_CHECK;

/* A sealed frame as bytes; no hashing. */
rp_err rp_frame_write(const rp_Frame *frame, uint8_t *out, size_t *bytes) RP_MUST_CHECK;

/* errors FORMAT: version, unknown kind, size, text that is not printable, parts against the kind's
 * rule, a shape whose product times its dtype is not the part's size, a part above
 * `part_bytes_max`. HELLO and the link's own kinds are read in every version. */
rp_err rp_frame_decode(const uint8_t *bytes, size_t count, size_t part_bytes_max,
                       rp_Frame *out) RP_MUST_CHECK;

/* The parts that came against the frame: number, sizes, hash. errors FORMAT */
rp_err rp_frame_check_parts(const rp_Frame *frame, const rp_part *parts,
                            uint32_t part_count) RP_MUST_CHECK;

/* Part `index` as the frame describes it, with the bytes that came for it. */
rp_part rp_frame_part(const rp_Frame *frame, uint32_t index, const void *data, size_t bytes);

#endif
