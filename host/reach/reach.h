/* Which boards of a roster are there, and who of them reaches whom. It waits for a few seconds for
 * boards that are not there; no run is disturbed. */
#ifndef RP_REACH_REACH_H
#define RP_REACH_REACH_H

#include "greet/greet.h"

enum { RP_REACH_BOARDS_MAX = 64 };
#define RP_REACH_NS (8 * RP_NS_PER_S)

typedef struct {
    const char *name;
    const char *endpoint; /* "" when it dials */
    bool dials;
    rp_greet_state state;
    char software[32], device[128]; /* as it said; "" = nothing */
    int64_t round_trip_ns;          /* 0 = not known */
    const char *why;                /* SILENT, of a fleet: in words, or "" */
} rp_reach_board;

typedef enum {
    RP_REACH_WORKS,
    RP_REACH_FAILS,      /* `why` */
    RP_REACH_IMPOSSIBLE, /* the other one can not be dialled */
    RP_REACH_UNTRIED     /* one of them is not there, or not idle */
} rp_reach_way;

typedef struct {
    uint32_t from, to; /* boards */
    bool chosen;       /* a run takes this one */
    rp_reach_way way;
    char why[160];
} rp_reach_pair;

typedef struct {
    const rp_roster_entry *roster; /* borrowed, as long as the result */
    uint32_t count;
    const char *listen; /* where boards that dial find this host, NULL: none does */
    const rp_keypair *keys;
    const rp_clock *clock;
    bool (*stopped)(void *context); /* asked now and then; NULL: never */
    void *context;
} rp_reach_options;

typedef struct {
    uint32_t board_count, pair_count;
    rp_reach_board *board;
    rp_reach_pair *pair; /* of neighbours in a row: 0 -> 1, 1 -> 0, 1 -> 2, .. */
    uint64_t strangers;  /* handshakes of keys that the roster does not have */
    bool complete;       /* every board is there, and every direction that a run takes works */
} rp_reach_result;

/* errors  those of rp_link_open(), MEMORY */
rp_err rp_reach_check_ring(rp_arena *arena, const rp_reach_options *options,
                           rp_reach_result *out) RP_MUST_CHECK;

/* ---- a fleet (fleet.c) ----------------------------------------------------------------------- */

/* Which boards of a roster are there, whatever their number: what costs time is waited for
 * together. No links between boards are tried. */
enum { RP_FLEET_AT_ONCE = 256 }; /* boards that are greeted together, but for those that dial */

typedef struct {
    rp_reach_board *board; /* in the order of the roster */
    uint64_t strangers;
    uint32_t waits; /* ends of a time that were waited for, one after the other */
} rp_fleet;

/* Addresses that take no connection within wait_ns are out at once, all of them together; the
 * others are greeted, RP_FLEET_AT_ONCE together and for wait_ns at most. So it takes at most
 * wait_ns (1 + the number of such boards / RP_FLEET_AT_ONCE, rounded up); less room for files makes
 * fewer together.
 * errors  those of rp_link_open(), MEMORY; INTERRUPTED */
rp_err rp_fleet_greet(rp_arena *arena, const rp_reach_options *options, int64_t wait_ns,
                      rp_fleet *out) RP_MUST_CHECK;

#endif
