/* Median and spread of repeated measurements. */
#ifndef RP_BASE_MEDIAN_H
#define RP_BASE_MEDIAN_H

#include <stdint.h>

/* Sorts `repeats` in place. *median is their median and *spread their interquartile range divided
 * by it. *spread is 1 with fewer than 3 repeats, and 0 if the median is not positive. */
void rp_median(double *repeats, uint32_t count, double *median, double *spread);

#endif
