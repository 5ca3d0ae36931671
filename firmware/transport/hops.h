/* The line profile of each wire: one profile for all, and layers over it for some wires. A wire is
 * one direction between two ends; the opposite direction is another wire. */
#ifndef RP_TRANSPORT_HOPS_H
#define RP_TRANSPORT_HOPS_H

#include "transport/profile.h"

enum { RP_LINK_LAYERS_MAX = 512 };

/* Ends that are not boards. */
#define RP_LINK_HOST UINT32_MAX
#define RP_LINK_ANY (UINT32_MAX - 1) /* in a layer: every end */

/* A layer: the keys in `set` override the profile of wires from `from` to `to`. */
typedef struct {
    uint32_t from, to; /* positions of boards in the ring, RP_LINK_HOST or RP_LINK_ANY */
    uint32_t set;
    rp_link_profile profile;
} rp_link_layer;

/* All zeros: no layers. Later layers override earlier ones. */
typedef struct {
    uint32_t count, room;
    rp_link_layer *layer; /* in an arena */
    /* age of all lines in seconds; 0: their time starts when they are created */
    double since_s;
} rp_link_hops;

/* How run files name the boards, and how named profiles and files are read. */
typedef struct {
    uint32_t boards;         /* 0: only `host` and `any` are known */
    const char *const *name; /* [boards]; NULL: boards are named only by position */
    rp_link_reader reader;
    /* Looks up a named profile: its values for all wires, and its layers. NULL: there are no named
     * profiles. errors any */
    rp_err (*profile)(void *context, rp_arena *arena, const rp_node *name, rp_link_profile *all,
                      rp_link_hops *hops);
} rp_link_ends;

/* Parses `link`: either the name of a profile, or a map with the keys of a profile, `profile`, and
 * `hops`, a list of layers. A layer has `between: [a, b]` (both directions), or `from` and `to`,
 * which default to any, with the keys of a profile and `profile`. An end is a position in the ring
 * from 0, a board's name, `host` or `any`.
 * errors  USAGE with file and line, LIMIT, MEMORY, those of the reader */
rp_err rp_link_hops_parse(rp_node *link, const rp_link_ends *ends, rp_link_profile *all,
                          rp_link_hops *hops) RP_MUST_CHECK;
/* Writes lines beginning with `indent`; rp_link_reader_plain() restores all but since_s. */
rp_err rp_link_hops_text(rp_arena *arena, const rp_link_profile *all, const rp_link_hops *hops,
                         const char *indent, char **out) RP_MUST_CHECK;

/* The profile of the wire from one end to another. */
rp_link_profile rp_link_profile_of(const rp_link_profile *all, const rp_link_hops *hops,
                                   uint32_t from, uint32_t to);

#endif
