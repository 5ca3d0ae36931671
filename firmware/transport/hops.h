/* Which profile each wire has: one of all, and layers over it that match some wires. A wire goes
 * from one end to another; its way back is another wire. */
#ifndef RP_TRANSPORT_HOPS_H
#define RP_TRANSPORT_HOPS_H

#include "transport/profile.h"

enum { RP_LINK_LAYERS_MAX = 512 };

/* Ends that are no board. */
#define RP_LINK_HOST UINT32_MAX
#define RP_LINK_ANY (UINT32_MAX - 1) /* of a layer: every end */

/* What is different from `from` to `to`: the keys of `set`. */
typedef struct {
    uint32_t from, to; /* places of boards in the ring, RP_LINK_HOST or RP_LINK_ANY */
    uint32_t set;
    rp_link_profile profile;
} rp_link_layer;

/* Zeros: none. Later layers lie over former ones. */
typedef struct {
    uint32_t count, room;
    rp_link_layer *layer; /* in an arena */
    double since_s;       /* how long ago the time of all lines began; 0: it begins with them */
} rp_link_hops;

/* How people name the boards, and what stands behind names and paths. */
typedef struct {
    uint32_t boards;         /* 0: `host` and `any` alone */
    const char *const *name; /* [boards]; NULL: by their places alone */
    rp_link_reader reader;
    /* Of a profile's name: what it says of all wires, and of some. NULL: there are none.
     * errors as it finds them */
    rp_err (*profile)(void *context, rp_arena *arena, const rp_node *name, rp_link_profile *all,
                      rp_link_hops *hops);
} rp_link_ends;

/* A whole `link`: the keys of a profile, `profile`, and `hops`, a list of layers:
 * `between: [a, b]` (both ways), or `from` and `to`, either of which may be missing: any; with the
 * keys of a profile and `profile`. An end is a place in the ring from 0, a board's name, `host` or
 * `any`. Or the name of a profile alone. errors USAGE with file and line, LIMIT, MEMORY, those of
 * the reader */
rp_err rp_link_hops_parse(rp_node *link, const rp_link_ends *ends, rp_link_profile *all,
                          rp_link_hops *hops) RP_MUST_CHECK;
/* As lines that begin with `indent`; what a plain reader reads back equal, but for since_s. */
rp_err rp_link_hops_text(rp_arena *arena, const rp_link_profile *all, const rp_link_hops *hops,
                         const char *indent, char **out) RP_MUST_CHECK;

/* Of the wire from one end to another. */
rp_link_profile rp_link_profile_of(const rp_link_profile *all, const rp_link_hops *hops,
                                   uint32_t from, uint32_t to);

#endif
