/* How a number differs between sites: a pure function. */
#ifndef RP_FEDERATION_SPREAD_H
#define RP_FEDERATION_SPREAD_H

#include <stdint.h>

typedef struct {
    uint32_t count;      /* finite values; 0: all others are NAN */
    double mean;         /* each site counts the same */
    double worst_decile; /* mean of the lowest tenth of the values, at least one */
    double deviation;    /* of the values from the mean; 0 for one value */
} rp_spread;

/* Values that are not finite are left out; the rest is sorted in place. */
rp_spread rp_spread_of(double *value, uint32_t count);

#endif
