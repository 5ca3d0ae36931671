/* split.json: which training samples each site has.
 *
 *   {"version": 1, "set": "fashion-mnist", "digest": "0123456789abcdef", "seed": 1,
 *    "rule": "dirichlet:0.5", "samples": 60000,
 *    "sites": [{"name": "site-0", "train": ["0-99", 203], "validation": ["100-119"]}, ...]}
 *
 * Samples are counted from 0 as the set stores them; "0-99" includes both ends. The digest is that
 * of the labels, so it differs for another set, or for one in another order. */
#ifndef RP_DATA_SPLIT_FILE_H
#define RP_DATA_SPLIT_FILE_H

#include "base/arena.h"
#include "base/err.h"

enum { RP_SPLIT_DIGEST = 17, RP_SITE_NAME_MAX = 64 };

/* Samples of one site, ascending. */
typedef struct {
    const char *name;
    const uint32_t *train, *validation;
    uint32_t train_count, validation_count;
} rp_site_samples;

typedef struct {
    const char *set, *digest, *rule;
    uint64_t seed;
    uint32_t samples; /* of the whole training part */
    const rp_site_samples *site;
    uint32_t sites;
} rp_split_list;

/* Replaces the file as a whole. errors IO, MEMORY */
rp_err rp_split_file_write(const char *path, const rp_split_list *list) RP_MUST_CHECK;

/* Reads and checks the file: every sample is below `samples` and in at most one part of one site,
 * and no name occurs twice. errors USAGE with the path; IO; MEMORY */
rp_err rp_split_file_read(rp_arena *arena, const char *path, rp_split_list *out) RP_MUST_CHECK;

/* The site with this name, or NULL. */
const rp_site_samples *rp_split_list_find(const rp_split_list *list, const char *name);

/* May `name` be the name of a site: 1 to 64 letters, digits, '.', '_', '-', not first '.' or '-'?
 */
bool rp_site_name_is_valid(const char *name);

#endif
