/* What a slow or bad line does to packets: `ring.link` of a run file. */
#ifndef RP_TRANSPORT_PROFILE_H
#define RP_TRANSPORT_PROFILE_H

#include "base/config.h"
#include "transport/trace.h"

enum { RP_LINK_OUTAGES_MAX = 16, RP_LINK_SHARED_BYTES = 32 };

/* From `every_s` on, and again every `every_s` seconds, for `for_s` seconds; zeros = never. */
typedef struct {
    double every_s, for_s;
} rp_link_period;

/* Once, `at_s` seconds after the line's beginning. */
typedef struct {
    double at_s, for_s;
} rp_link_outage;

/* Zeros: a perfect line. It applies to what one end sends. */
typedef struct {
    double rate_mbit; /* 0 = unlimited */
    double delay_ms, jitter_ms;
    double loss; /* probability per packet, as those below */
    double duplicate;
    double reorder;        /* held back, so that later ones overtake it */
    double corrupt;        /* one bit is flipped */
    rp_link_period outage; /* the line stops: what is on it waits */
    uint32_t outages;      /* as many more, each once, ascending and apart */
    rp_link_outage away[RP_LINK_OUTAGES_MAX];
    rp_link_period clog;               /* packets wait, and come all at once when it ends */
    rp_link_period partition;          /* packets are lost */
    bool partition_one_way;            /* only what the connecting end sends is lost */
    bool half_duplex;                  /* the two directions share the rate */
    char shared[RP_LINK_SHARED_BYTES]; /* wires of one name share the rate; "": none */
    uint64_t medium; /* what it takes turns on: rp_media_find(); 0: of its own; not in run files */
    const rp_link_trace *trace; /* NULL: none. What it has counts in place of rate_mbit, delay_ms,
                                   loss; borrowed */
    bool cut;           /* everything is lost until another profile is set; not in run files */
    bool hold;          /* everything waits until another profile is set; not in run files */
    bool control;       /* between host and boards too, not between boards only */
    double since_s;     /* how long ago the line's time began when it is set; not in run files */
    uint32_t mtu_bytes; /* a packet of more is lost; 0: none; not in run files */
} rp_link_profile;

/* Every key of a run file, as a set. */
#define RP_LINK_ALL_KEYS UINT32_C(0x7fffffff)

/* True when packets may come late, changed or not at all. */
bool rp_link_profile_has_line(const rp_link_profile *profile);
/* The longest time for which nothing may come over it, but for a cut and a hold. */
double rp_link_profile_held_s(const rp_link_profile *profile);

/* Over its whole time; 0: unlimited. */
double rp_link_profile_rate_mbit(const rp_link_profile *profile);
double rp_link_profile_delay_ms(const rp_link_profile *profile);

/* What stands behind a key in a file. */
typedef struct {
    rp_arena *arena;
    void *context;
    /* A trace by the scalar `node`. errors as it finds them */
    rp_err (*trace)(void *context, rp_arena *arena, const rp_node *node, const rp_link_trace **out);
} rp_link_reader;

/* Whose `trace` is the text of a trace: what rp_link_profile_text() writes. */
rp_link_reader rp_link_reader_plain(rp_arena *arena);

/* Keys: rate_mbit, delay_ms, jitter_ms, loss, duplicate, reorder, corrupt, outage ("every 60s for
 * 5s", "at 10s for 3s", or a list of such), clog, partition, partition_one_way, half_duplex,
 * control, trace (or `none`), shared (or `none`). What is not there stays as it is. *set: a bit for
 * each key that is there; may be NULL. errors USAGE with the line of the file; those of the reader
 */
rp_err rp_link_profile_parse(rp_link_profile *profile, rp_node *node, const rp_link_reader *reader,
                             uint32_t *set) RP_MUST_CHECK;
/* Of `over` the keys of `set`. */
void rp_link_profile_lay_over(rp_link_profile *profile, const rp_link_profile *over, uint32_t set);

/* The keys and values as YAML lines, each after `indent`; what parse reads back equal. `set`: of
 * these keys, as parse says it; 0: of those that differ from a perfect line. */
rp_err rp_link_profile_text(const rp_link_profile *profile, uint32_t set, rp_arena *arena,
                            const char *indent, char **out) RP_MUST_CHECK;

#endif
