/* What the files of the replay share: a run, its boards, every version of their weights. */
#ifndef RP_TESTS_TRANSPARENCY_REPLAY_H
#define RP_TESTS_TRANSPARENCY_REPLAY_H

#include "run/runfile.h"
#include "stage/opencl_own.h"
#include "stage/stage_own.h"

/* Microbatch n, counted through the whole run. */
typedef struct {
    uint32_t step, micro;   /* micro: within its step */
    bool last;              /* of its step */
    uint32_t first_of_fill; /* the microbatch that found the pipes empty before this one came */
    rp_range samples;
} microbatch;

typedef enum { FORWARD, BACKWARD, UPDATE } act;

typedef struct {
    act act;
    uint32_t n; /* of an update: the last microbatch of its step */
} entry;

/* The weights of an op: version `version`, moved `ahead` updates by the optimiser's rule. */
typedef struct {
    uint32_t version, ahead;
} weight_view;

/* horizon: measured: what the probes of a tensor have shown. */
typedef struct {
    double aa, ab; /* smoothed <a, a> and <a, b>, a: predicted wholly, b: true */
    double gain;   /* that the newest probe has earned */
    uint32_t rest; /* probes that are left without a prediction */
} credit;

typedef void *parcel[RP_CUT_TENSORS_MAX]; /* [0] NULL: not here yet */

typedef struct {
    rp_job job;
    rp_stage *stage;
    const rp_opencl *memory; /* of the stage */
    uint32_t k, replicas, warm_up, steps_open;
    uint32_t count; /* floats of a version */

    entry *list;
    uint32_t list_count, at;
    uint32_t updates; /* done */

    /* version[s + 1]: what the update of step s made of its replica; version[0]: all replicas at
     * the start. Nothing here is written twice. */
    float **version;
    float *state[RP_REPLICAS_MAX][RP_OPTIM_STATES_MAX];
    uint64_t applied[RP_REPLICAS_MAX];
    float *centre;
    float *gradient;                /* of the last update */
    float *ahead[2];                /* predicted, by direction */
    const float *seen;              /* by the op that looked last */
    uint32_t tensors, *span;        /* trained; first and count of each, in floats */
    credit *credit;                 /* by tensor */
    double *gain;                   /* earned, by probe and tensor */
    uint32_t probes;                /* ended */
    float *probed[2];               /* at its forward: seen, newest */
    uint32_t *kept;                 /* by microbatch: the version that its forward saw */
    parcel *activation, *gradients; /* towards this stage, by microbatch */
} board;

/* Device memory for one optimiser step. */
typedef struct {
    rp_darena *arena;
    rp_buffer *w, *g, *out, *centre, *state[RP_OPTIM_STATES_MAX];
} bench;

typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_device *device;
    rp_optim optim;
    bench bench;
    uint32_t stages, slip;
    uint32_t full; /* microbatches of a full step */
    microbatch *micro;
    uint32_t micro_count;
    float **x; /* by step */
    char **target;
    size_t sample_floats, target_bytes;
    uint32_t *time; /* by step: tokens of a sample, 0 the longest (data.buckets) */
    board *board;
} replay;

/* ---- replay_method.c: METHODS' order, versions, horizons ---- */

uint32_t warm_up_of(const replay *r, uint32_t k);
uint32_t replicas_of(const replay *r, uint32_t k);
uint32_t steps_open_of(const replay *r, uint32_t k);
rp_err write_list(replay *r, board *b);
/* Updates that are over when microbatch n goes forward, on a stage with so long a warm-up. */
uint32_t updates_at_forward(const replay *r, uint32_t n, uint32_t warm_up, uint32_t open);
uint32_t newest(const board *b, uint32_t step);
weight_view forward_view(const replay *r, const board *b, uint32_t n);
weight_view backward_view(const replay *r, const board *b, uint32_t n);

/* ---- replay_gain.c: `horizon: measured` ---- */

rp_err open_probes(replay *r, board *b);
bool is_probed(const replay *r, const board *b, uint32_t n);
/* Behind the backward of a probed microbatch. */
rp_err end_probe(replay *r, board *b, uint32_t n);
/* Of bench.out, the whole prediction of `weights`, times the gain of each tensor. */
rp_err take_shares(replay *r, const board *b, uint32_t n, const float *weights, float *out);

/* ---- replay_codec.c: links.codec ---- */

/* What stage boundary + 1 has of it, or of gradients stage `boundary`, takes its place. */
rp_err send_parcel(replay *r, uint32_t boundary, bool gradients, uint32_t n,
                   const rp_boundary_tensors *of, parcel at);

/* ---- replay.c ---- */

rp_err write_floats(const replay *r, rp_buffer *to, const float *from, const board *b);
/* One update off: the canary. */
void slip_version(const board *b, weight_view *s);
/* What an op of microbatch n sees becomes the stage's weights. */
rp_err choose_weights(replay *r, board *b, uint32_t n, const weight_view *s, uint32_t direction);
/* Of the step of microbatch n, whose gradients are all there. */
rp_err run_update(replay *r, board *b, uint32_t n);

/* ---- replay_umpipe.c: METHODS 14, in the place of the lists ---- */

rp_err train_umpipe(replay *r);

#endif
