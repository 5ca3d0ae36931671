/* Memory of this machine that its programs may still take. */
#ifndef RP_RING_AVAILABLE_H
#define RP_RING_AVAILABLE_H

#include <stdint.h>

/* What is free or can be freed, swap included, within the limits of this process's control groups
 * (version 2). 0: not known. `root`: the folder of /proc and /sys, "" except in tests. */
uint64_t rp_available_memory(const char *root);

#endif
