/* What one seed came to: lives of the controller follow each other until the run is finished, then
 * the weights are compared with the reference's digests. */
#ifndef RP_SIM_VERDICT_H
#define RP_SIM_VERDICT_H

#include "planning/planfile.h"
#include "sim/cluster.h"
#include "sim/reference.h"
#include "sim/seeds.h"

/* Made once for all seeds, which it does not depend on. */
typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_plan *plan;   /* that was given, or NULL */
    rp_digest *want; /* by parameter of the model; NULL: only the ledger is compared (timed; a cut
                        that is chosen, without a flush) */
    double *layer_seconds;
    rp_profile profile; /* that was given; without boards: none, or one of layers alone */
} rp_sim_subject;

/* errors  those of the run file; USAGE: a method that has no reference */
rp_err rp_sim_subject_open(const char *run_path, const char *const *set, uint32_t set_count,
                           const char *executor, const char *plan, const char *profile,
                           rp_sim_subject *out) RP_MUST_CHECK;
void rp_sim_subject_close(rp_sim_subject *subject);

typedef struct {
    const rp_sim_subject *subject;
    rp_cluster_options cluster;  /* faults, seed and folder are this seed's */
    const rp_sim_faults *faults; /* the same for each seed; NULL: drawn, or none */
    bool draws_faults;
    bool once; /* the run is over when its controller stops, with: */
    rp_err stop;
    int output_error; /* as in rp_sim_result */
    FILE *terminal;   /* gets the option set and the event log's hash; NULL: quiet */
} rp_sim_case;

/* Runs one seed in a folder of its own, which is removed unless `cluster.folder` names it.
 * errors  IO, MEMORY; whatever becomes of the run itself is in *out */
rp_err rp_sim_judge(const rp_sim_case *what, uint64_t seed, rp_sim_result *out) RP_MUST_CHECK;

#endif
