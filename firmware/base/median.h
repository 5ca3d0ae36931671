/* What repeats of a measurement come to. */
#ifndef RP_BASE_MEDIAN_H
#define RP_BASE_MEDIAN_H

#include <stdint.h>

/* The median of repeats, which are sorted, and the distance of their quartiles by it; that is 1
 * with fewer than 3. Pure. */
void rp_median(double *repeats, uint32_t count, double *median, double *spread);

#endif
