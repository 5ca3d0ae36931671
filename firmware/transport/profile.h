/* The effects of a slow or bad line on packets: `ring.link` of a run file. */
#ifndef RP_TRANSPORT_PROFILE_H
#define RP_TRANSPORT_PROFILE_H

#include "base/config.h"
#include "transport/trace.h"

enum { RP_LINK_OUTAGES_MAX = 16, RP_LINK_SHARED_BYTES = 32 };

/* Recurs every `every_s` seconds, first at `every_s`, for `for_s` seconds; zeros = never. */
typedef struct {
    double every_s, for_s;
} rp_link_period;

/* Occurs once, `at_s` seconds after the line's start. */
typedef struct {
    double at_s, for_s;
} rp_link_outage;

/* All zeros: a perfect line. A profile applies to what one end sends. */
typedef struct {
    double rate_mbit; /* 0 = unlimited */
    double delay_ms, jitter_ms;
    double loss;           /* probability per packet */
    rp_link_period outage; /* the line stops; packets on it wait */
    uint32_t outages;      /* single outages, sorted and not overlapping */
    rp_link_outage away[RP_LINK_OUTAGES_MAX];
    char shared[RP_LINK_SHARED_BYTES]; /* wires with the same name share the rate; "": not shared */
    uint64_t medium; /* key of its medium for rp_media_find(); 0: not shared; not in run files */
    /* overrides rate_mbit, delay_ms and loss with its own values; borrowed; NULL: no trace */
    const rp_link_trace *trace;
    /* probabilities per packet: sent twice; held back, so that later ones overtake it; one bit is
     * flipped. Not in run files */
    double duplicate, reorder, corrupt;
    bool cut;           /* everything is lost until another profile is set; not in run files */
    bool hold;          /* everything waits until another profile is set; not in run files */
    bool control;       /* also applies between host and boards, not only between boards */
    double since_s;     /* age of the line when the profile is set; not in run files */
    uint32_t mtu_bytes; /* larger packets are lost; 0: no limit; not in run files */
} rp_link_profile;

/* The set of all keys of a run file. */
#define RP_LINK_ALL_KEYS UINT32_C(0x7fffffff)

/* True if packets may be delayed, changed or lost. */
bool rp_link_profile_has_line(const rp_link_profile *profile);
/* The longest time for which nothing may arrive, apart from `cut` and `hold`. */
double rp_link_profile_held_s(const rp_link_profile *profile);

/* Mean rate over the whole time; 0: unlimited. */
double rp_link_profile_rate_mbit(const rp_link_profile *profile);
double rp_link_profile_delay_ms(const rp_link_profile *profile);

/* How a named trace of a file is read. */
typedef struct {
    rp_arena *arena;
    void *context;
    /* Reads the trace that the scalar `node` names. errors any */
    rp_err (*trace)(void *context, rp_arena *arena, const rp_node *node, const rp_link_trace **out);
} rp_link_reader;

/* A reader whose `trace` is the text of a trace, as rp_link_profile_text() writes it. */
rp_link_reader rp_link_reader_plain(rp_arena *arena);

/* Keys: rate_mbit, delay_ms, jitter_ms, loss, outage ("every 60s for 5s", "at 10s for 3s", or a
 * list of such), control, trace (or `none`), shared (or `none`). Absent keys keep their values.
 * *set receives a bit for each key that is present; may be NULL.
 * errors  USAGE with the line of the file; those of the reader */
rp_err rp_link_profile_parse(rp_link_profile *profile, rp_node *node, const rp_link_reader *reader,
                             uint32_t *set) RP_MUST_CHECK;
/* Copies the keys in `set` from `over`. */
void rp_link_profile_lay_over(rp_link_profile *profile, const rp_link_profile *over, uint32_t set);

/* Writes keys and values as YAML lines, each after `indent`, which parse reads back equal. `set`:
 * the keys to write, as from parse; 0: those that differ from a perfect line. */
rp_err rp_link_profile_text(const rp_link_profile *profile, uint32_t set, rp_arena *arena,
                            const char *indent, char **out) RP_MUST_CHECK;

#endif
