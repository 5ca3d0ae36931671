/* The folder of a site: what the site keeps from one round to the next.
 *
 *   round-0000000007.safetensors   saved after round 7, before its round.json:
 *       keep.NAME             a tensor that never leaves the site
 *       optim.STATE.NAME      state of the optimiser
 *       optim.drift.NAME      drift during the round
 *       optim.error.NAME      error of the coded difference (update.h)
 *       last.NAME             weights at the end of the round, of tensors with a drift
 *
 * The last two files are kept, so that the newest round can be done again. */
#ifndef RP_SITES_STATE_H
#define RP_SITES_STATE_H

#include "sites/rules.h"

#define RP_SITE_NO_ROUND UINT64_MAX

/* Finds the newest state from before `round`; *path NULL and *from RP_SITE_NO_ROUND: no state
 * exists. errors  USAGE: the folder has the state of a later round, so earlier ones may be removed;
 * IO */
rp_err rp_site_find_state(rp_arena *arena, const char *folder, uint64_t round, char **path,
                          uint64_t *from) RP_MUST_CHECK;

/* Removes the state of a round that shall be done again with other settings, if there is one, so
 * that a site that then takes no part does not go on from it. errors  IO */
rp_err rp_site_drop_state(const char *folder, uint64_t round) RP_MUST_CHECK;

typedef struct {
    const rp_round_rules *rules;
    const char *folder, *site;
    uint64_t round;
    const char *trained;   /* checkpoint of the round's end, or its start.safetensors */
    const char *optimizer; /* kind */
    uint64_t updates;      /* steps of the optimiser that its state has seen */
    const char *errors;    /* file of rp_update_write(); NULL: none */
    double rates;          /* sum of the learning rates of the round's updates */
} rp_site_state;

/* Saves the state after a round, and removes all but the last two. It changes nothing if the folder
 * has the state of a later round. errors  IO; FORMAT: `trained` is damaged */
rp_err rp_site_save_state(rp_arena *arena, const rp_site_state *state) RP_MUST_CHECK;

#endif
