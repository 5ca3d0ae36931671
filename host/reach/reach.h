/* Finds out which boards of a roster are there, and which of them can reach each other. Waits a few
 * seconds for missing boards; disturbs no run. */
#ifndef RP_REACH_REACH_H
#define RP_REACH_REACH_H

#include "greet/greet.h"

enum { RP_REACH_BOARDS_MAX = 64 };
#define RP_REACH_NS (8 * RP_NS_PER_S)

typedef struct {
    const char *name;
    const char *endpoint; /* "" if it dials */
    bool dials;
    rp_greet_state state;
    char software[32], device[128]; /* as reported; "": unknown */
    int64_t round_trip_ns;          /* 0: unknown */
    const char *why;                /* fleet only: for SILENT the cause in words; else "" */
} rp_reach_board;

typedef enum {
    RP_REACH_WORKS,
    RP_REACH_FAILS,      /* see `why` */
    RP_REACH_IMPOSSIBLE, /* the far board cannot be dialled */
    RP_REACH_UNTRIED     /* one of them is not there, or not idle */
} rp_reach_outcome;

typedef struct {
    uint32_t from, to; /* indices of boards */
    bool chosen;       /* a run would use this direction */
    rp_reach_outcome way;
    char why[160];
} rp_reach_pair;

typedef struct {
    const rp_roster_entry *roster; /* borrowed as long as the result is used */
    uint32_t count;
    const char *listen; /* where boards that dial find this host; NULL: nowhere */
    const rp_keypair *keys;
    const rp_clock *clock;
    bool (*stopped)(void *context); /* polled; NULL: never */
    void *context;
} rp_reach_options;

typedef struct {
    uint32_t board_count, pair_count;
    rp_reach_board *board;
    rp_reach_pair *pair; /* neighbours in ring order: 0 -> 1, 1 -> 0, 1 -> 2, .. */
    uint64_t strangers;  /* handshakes with keys that are not in the roster */
    bool complete;       /* every board is there, and all chosen directions work */
} rp_reach_result;

/* errors those of rp_link_open(), MEMORY */
rp_err rp_reach_check_ring(rp_arena *arena, const rp_reach_options *options,
                           rp_reach_result *out) RP_MUST_CHECK;

/* ---- a fleet (fleet.c) ----------------------------------------------------------------------- */

/* Which boards of a roster are there, for any number of boards; waits overlap. No links between
 * boards are tried. */
enum { RP_FLEET_AT_ONCE = 256 }; /* boards greeted concurrently, not counting those that dial */

typedef struct {
    rp_reach_board *board; /* in roster order */
    uint64_t strangers;
    uint32_t waits; /* number of consecutive waits that ran out */
} rp_fleet;

/* Addresses that accept no connection within wait_ns are dropped, all at the same time. The
 * remaining boards are greeted, RP_FLEET_AT_ONCE concurrently, for wait_ns at most. The total is at
 * most wait_ns (1 + the number of such boards / RP_FLEET_AT_ONCE, rounded up); a low limit of open
 * files makes the groups smaller.
 * errors those of rp_link_open(), MEMORY; INTERRUPTED */
rp_err rp_fleet_greet(rp_arena *arena, const rp_reach_options *options, int64_t wait_ns,
                      rp_fleet *out) RP_MUST_CHECK;

#endif
