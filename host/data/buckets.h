/* Buckets by length: all samples of a step have one of a few lengths, so that short texts are not
 * filled up to the longest. The key `buckets` of the sets `tsv` and `pairs`.
 *
 * Batches of an epoch: the samples are taken in the epoch's order, each into the open batch of its
 * bucket, the shortest that holds it. A full batch is the next step. The samples that are left at
 * the end are joined, from the shortest bucket to the longest, and make the last steps, of which
 * only the last may have fewer samples. So an epoch has every sample once, and as many steps as
 * without buckets. The length of a step is the bucket that holds its longest sample. */
#ifndef RP_DATA_BUCKETS_H
#define RP_DATA_BUCKETS_H

#include <stdint.h>

enum { RP_BUCKETS_MAX = 8 };

typedef struct {
    uint32_t count;
    uint32_t time[RP_BUCKETS_MAX]; /* ascending, below the tokens of a sample, which is one more */
} rp_buckets;

/* The quartiles of `count` lengths, rounded up to a multiple of 8 and below `most`. Sorts the
 * lengths. */
rp_buckets rp_buckets_choose(uint32_t *length, uint32_t count, uint32_t most);

/* Index of the shortest bucket that holds `length` tokens; `count`: the longest. */
uint32_t rp_buckets_find(const rp_buckets *buckets, uint32_t length);
/* Tokens of a sample in this bucket; 0: as without buckets. */
uint32_t rp_buckets_hold(const rp_buckets *buckets, uint32_t length);

#endif
