/* What now.json of a site's ring says about its boards. */
#ifndef RP_FEDERATION_RING_NOW_H
#define RP_FEDERATION_RING_NOW_H

#include <stddef.h>

/* Names the boards for which the ring of this run folder waits, separated by commas and cut off at
 * the end of the room: boards that have not joined, and boards that have not been heard for 2 s.
 * "": none, or the file is missing, damaged or older than 3 s. */
void rp_ring_now_list_away(const char *folder, char *names, size_t bytes);

#endif
