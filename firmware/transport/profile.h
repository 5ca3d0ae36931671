/* What a slow or bad line does to packets: `ring.link` of a run file. */
#ifndef RP_TRANSPORT_PROFILE_H
#define RP_TRANSPORT_PROFILE_H

#include "base/config.h"

/* From `every_s` on, and again every `every_s` seconds, for `for_s` seconds; zeros = never. */
typedef struct {
    double every_s, for_s;
} rp_link_period;

/* Zeros: a perfect line. It applies to what one end sends. */
typedef struct {
    double rate_mbit; /* 0 = unlimited */
    double delay_ms, jitter_ms;
    double loss; /* probability per packet, as those below */
    double duplicate;
    double reorder;           /* held back, so that later ones overtake it */
    double corrupt;           /* one bit is flipped */
    rp_link_period outage;    /* the line stops: what is on it waits */
    rp_link_period clog;      /* packets wait, and come all at once when it ends */
    rp_link_period partition; /* packets are lost */
    bool partition_one_way;   /* only what the connecting end sends is lost */
    bool half_duplex;         /* the two directions share the rate */
    bool cut;     /* everything is lost until another profile is set; not in run files */
    bool hold;    /* everything waits until another profile is set; not in run files */
    bool control; /* between host and boards too, not between boards only */
} rp_link_profile;

/* True when packets may come late, changed or not at all. */
bool rp_link_profile_has_line(const rp_link_profile *profile);

/* Keys: rate_mbit, delay_ms, jitter_ms, loss, duplicate, reorder, corrupt, outage ("every 60s for
 * 5s"), clog, partition, partition_one_way, half_duplex, control.
 * errors USAGE with the line of the file */
rp_err rp_link_profile_parse(rp_link_profile *profile, rp_node *node) RP_MUST_CHECK;

/* The keys and values as YAML lines, each after `indent`; what parse reads back equal. */
rp_err rp_link_profile_text(const rp_link_profile *profile, rp_arena *arena, const char *indent,
                            char **out) RP_MUST_CHECK;

#endif
