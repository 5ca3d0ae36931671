/* The struct of the verb `round`, and what its round ends with. */
#ifndef RP_CLI_SITE_ROUND_H
#define RP_CLI_SITE_ROUND_H

#include <jansson.h>

#include "cli/cli.h"
#include "run/runfile.h"
#include "sites/answer.h"

typedef struct {
    const rp_cli_args *args;
    rp_arena *arena;
    rp_runfile run; /* the site's run file with --set */
    rp_round_asked asked;
    const char *folder, *run_folder;
    const char *result; /* what leaves the site: weights.safetensors, or update.safetensors */
    const char *errors; /* error.safetensors, of the update */
    const char *begin;  /* start.safetensors */
    const char *before; /* before.json, the evaluation of the start */
    rp_site_start start;
    rp_site_difference difference; /* of the result */
    const char *trained;           /* file with the weights of the run */
    const char *newest;            /* newest checkpoint of the run; NULL: none */
    uint64_t done, samples;        /* steps and samples in it */
    uint64_t updates;              /* of its optimiser, those of earlier rounds included */
    double rates;                  /* sum of their learning rates in this round */
    bool claimed;                  /* the folder belonged to this round before */
    int lock, state_lock;          /* descriptors of the locked folders; -1: none */
} rp_site_round;

/* Does an update leave the site? */
static inline bool rp_site_round_is_coded(const rp_site_round *r) {
    return r->asked.rules.delta.kind != RP_DELTA_NONE;
}

/* Does the site keep anything for its next round? */
bool rp_site_round_keeps_state(const rp_site_round *r);

/* *yes: the round's run has begun. errors MEMORY */
rp_err rp_site_round_has_run(const rp_site_round *r, bool *yes) RP_MUST_CHECK;
/* Finds the newest checkpoint of the run, and what it came to. errors those of the run file; IO */
rp_err rp_site_round_find_newest(rp_site_round *r) RP_MUST_CHECK;

/* Writes what leaves the site. errors IO, FORMAT; USAGE: the given weights have changed */
rp_err rp_site_round_write_result(rp_site_round *r) RP_MUST_CHECK;
/* Saves what the site keeps. errors IO, FORMAT */
rp_err rp_site_round_save_state(const rp_site_round *r) RP_MUST_CHECK;
/* Writes round.json, the last file. errors IO, FORMAT, MEMORY */
rp_err rp_site_round_write_answer(rp_site_round *r, bool partial, double seconds) RP_MUST_CHECK;
/* Prints it, and releases `answer`. errors IO */
rp_err rp_site_round_print_answer(const rp_site_round *r, json_t *answer) RP_MUST_CHECK;

#endif
