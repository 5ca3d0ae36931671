/* Memory that is available on this machine. */
#ifndef RP_RING_AVAILABLE_H
#define RP_RING_AVAILABLE_H

#include <stdint.h>

/* Returns the bytes that are free or can be freed, including swap, within the limits of this
 * process's control groups (version 2); 0: unknown. `root`: folder of /proc and /sys, "" except in
 * tests. */
uint64_t rp_available_memory(const char *root);

#endif
