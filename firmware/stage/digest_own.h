/* Private to the digest executor: executor_digest.c, digest_blocks.c and digest_regions.c. */
#ifndef RP_STAGE_DIGEST_OWN_H
#define RP_STAGE_DIGEST_OWN_H

#include "stage/busy.h"
#include "stage/digest.h"

/* A parameter that is being written: its bytes come in order, in pieces of any size. */
enum { DIGEST_CHUNK_BYTES = 1024 };
typedef struct {
    rp_region region;
    size_t next;
    bool plain; /* something lies behind the first 16 bytes: no digest but values */
    rp_digest first;
    rp_digest hash;                 /* of all whole chunks so far */
    char chunk[DIGEST_CHUNK_BYTES]; /* the bytes behind them */
} digest_writing;

typedef struct {
    rp_busy_executor as; /* first: what the table's shared entries see */
    bool strict;
    bool *fails;         /* as the site */
    rp_digest *blocks;   /* in a row, each of trained_count */
    rp_digest *running;  /* by parameter: batch statistics */
    rp_digest *kept;     /* [layout->kept] copies of them */
    rp_digest *slots;    /* rows of values, then the statistics of the layers */
    rp_digest *deferred; /* rows of gradients */
    rp_digest *grads;    /* those of an undivided backward */
    float *results, *probe_norms;
    size_t slot_digests, rows_digests; /* of one slot, of all rows of it */
    uint32_t stride;                   /* of a row */
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

/* By trained parameter. */
static inline const rp_model_param *digest_trained(const digest_executor *e, uint32_t trained) {
    uint32_t p = 0;
    while (e->as.base.layout->trained[p] != trained) {
        p++;
    }
    return digest_param(e, p);
}

/* digest_blocks.c: a command on whole blocks, for one trained parameter; each has the same. */
void rp_digest_run_block(digest_executor *executor, const rp_command *command, uint32_t trained);

/* digest_blocks.c: KEEP and RESTORE. */
void rp_digest_run_kept(digest_executor *executor, const rp_command *command);

/* digest_regions.c: entries of the table, for bytes in files. errors USAGE: bytes out of order */
rp_err rp_digest_read_region(rp_executor *executor, const rp_region *region, size_t first,
                             size_t count, void *out) RP_MUST_CHECK;
rp_err rp_digest_write_region(rp_executor *executor, const rp_region *region, size_t first,
                              size_t count, const void *from) RP_MUST_CHECK;
size_t rp_digest_in_flight_bytes(const digest_executor *executor);

#endif
