/* Private to the digest executor: executor_digest.c, digest_blocks.c and digest_regions.c. */
#ifndef RP_STAGE_DIGEST_OWN_H
#define RP_STAGE_DIGEST_OWN_H

#include "stage/busy.h"
#include "stage/digest.h"

/* State while a parameter is written. Its bytes arrive in order, in pieces of any size. */
enum { DIGEST_CHUNK_BYTES = 1024 };
typedef struct {
    rp_region region;
    size_t next;
    /* The bytes after the first 16 are not all zero, so these are values and not a digest. */
    bool plain;
    rp_digest first;
    rp_digest hash;                 /* of all complete chunks so far */
    char chunk[DIGEST_CHUNK_BYTES]; /* the bytes after them */
} digest_writing;

typedef struct {
    rp_busy_executor as; /* first member: used by the shared functions of busy.h */
    bool strict;
    bool *fails;         /* see rp_site */
    rp_digest *blocks;   /* all blocks, trained_count digests each */
    rp_digest *running;  /* by parameter: running statistics, frozen parameters */
    rp_digest *kept;     /* [layout->kept] copies of `running` */
    rp_digest *slots;    /* by slot: rows of values, statistics of the layers, values of far uses */
    rp_digest *seen;     /* if there are far uses: the weights of the op being executed */
    rp_digest *deferred; /* by deferred slot: rows of gradients */
    rp_digest *grads;    /* rows of gradients of a backward that is not split */
    float *results, *probe_norms;
    size_t slot_digests, rows_digests; /* digests of a slot; of all its rows */
    uint32_t stride;                   /* digests of a row */
    digest_writing writing;
} digest_executor;

static inline digest_executor *digest_executor_of(rp_executor *executor) {
    return (digest_executor *)(void *)executor; /* the base is its first member */
}

static inline rp_digest *digest_block(const digest_executor *e, rp_block block) {
    return e->blocks +
           (size_t)rp_block_position(e->as.base.layout, block) * e->as.base.layout->trained_count;
}

static inline const rp_model_param *digest_param(const digest_executor *e, uint32_t param) {
    return &e->as.base.job->model->param[e->as.base.layout->param_first + param];
}

/* The parameter with index `trained` among the trained ones; of a tied tensor its owner, so that
 * all uses get the same digests. */
static inline const rp_model_param *digest_trained(const digest_executor *e, uint32_t trained) {
    uint32_t p = 0;
    while (e->as.base.layout->trained[p] != trained) {
        p++;
    }
    const rp_model *model = e->as.base.job->model;
    return &model->param[digest_param(e, p)->owner];
}

/* digest_blocks.c: executes a command on whole blocks for one trained parameter. */
void rp_digest_run_block(digest_executor *executor, const rp_command *command, uint32_t trained);

/* digest_ties.c: execute ROW and TIE. */
void rp_digest_read_row(const digest_executor *executor, rp_block block, char *out);
void rp_digest_run_tie(digest_executor *executor, const rp_command *command);

/* digest_ties.c: writes the values of tensors of other stages to the forward's slot; gives the
 * weights that a pass sees, with these values. */
void rp_digest_take_values(digest_executor *executor, const rp_pass *pass);
const rp_digest *rp_digest_select_values(digest_executor *executor, const rp_pass *pass);

/* digest_blocks.c: executes KEEP or RESTORE. */
void rp_digest_run_kept(digest_executor *executor, const rp_command *command);

/* digest_regions.c: read and write of the executor's table. errors USAGE: bytes out of order */
rp_err rp_digest_read_region(rp_executor *executor, const rp_region *region, size_t first,
                             size_t count, void *out) RP_MUST_CHECK;
rp_err rp_digest_write_region(rp_executor *executor, const rp_region *region, size_t first,
                              size_t count, const void *from) RP_MUST_CHECK;
size_t rp_digest_in_flight_bytes(const digest_executor *executor);

#endif
