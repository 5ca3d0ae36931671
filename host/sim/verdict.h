/* Runs one seed: resumes the run until it is finished, then compares the weights with the digests
 * of the reference. */
#ifndef RP_SIM_VERDICT_H
#define RP_SIM_VERDICT_H

#include "planning/planfile.h"
#include "sim/cluster.h"
#include "sim/reference.h"
#include "sim/seeds.h"

/* What all seeds share. */
typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_plan *plan;   /* of --plan, or NULL */
    rp_digest *want; /* reference, by parameter; NULL: only the ledger is compared (timed executor;
                        cut: auto without a flush) */
    double *layer_seconds;
    rp_profile profile; /* of --profile; board_count 0: not given, or without boards */
} rp_sim_subject;

/* errors  those of the run file; USAGE: the method has no reference */
rp_err rp_sim_subject_open(const char *run_path, const char *const *set, uint32_t set_count,
                           const char *executor, const char *plan, const char *profile,
                           rp_sim_subject *out) RP_MUST_CHECK;
void rp_sim_subject_close(rp_sim_subject *subject);

typedef struct {
    const rp_sim_subject *subject;
    rp_cluster_options cluster;  /* rp_sim_judge() sets seed, faults and folder */
    const rp_sim_faults *faults; /* for every seed; NULL: drawn, or none */
    bool draws_faults;
    bool once;        /* end the run when its controller stops */
    rp_err stop;      /* `once`: result of that controller */
    int output_error; /* as in rp_sim_result */
    FILE *terminal;   /* gets the seed and its faults; NULL: not printed */
} rp_sim_case;

/* Runs one seed in a folder of its own, which is removed unless `cluster.folder` names it.
 * errors  IO, MEMORY; the run's own outcome is in *out */
rp_err rp_sim_judge(const rp_sim_case *what, uint64_t seed, rp_sim_result *out) RP_MUST_CHECK;

#endif
