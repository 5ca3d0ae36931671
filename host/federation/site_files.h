/* `sites.files`: run files of sites that have a ring and data of their own. */
#ifndef RP_FEDERATION_SITE_FILES_H
#define RP_FEDERATION_SITE_FILES_H

#include "data/split_file.h"
#include "run/runfile.h"

/* The run file of a site; NULL: it trains in the ring of the run. */
const rp_node *rp_site_files_find(const rp_federated_keys *keys, const char *name);

/* Reads and checks all of them: they belong to sites of the split file, have the run's model and
 * one ring, and the rule allows their optimiser. Sites without one share the run's ring.
 * errors  USAGE naming the key or the file; those of rp_runfile_read() */
rp_err rp_site_files_check(const rp_runfile *run, const rp_split_list *list) RP_MUST_CHECK;

#endif
