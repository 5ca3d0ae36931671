/* Decides whether a round closes: a pure function of facts about its sites. */
#ifndef RP_FEDERATION_TAKE_H
#define RP_FEDERATION_TAKE_H

#include <stdint.h>

typedef struct {
    uint32_t asked;    /* sites that take part, at least 1 */
    uint32_t done;     /* of these, their rounds are done */
    uint32_t given_up; /* of these, they are not waited for */
    uint32_t least;    /* sites without which the round does not close; 0: all */
    int64_t waited_ns; /* since the round began */
    int64_t wait_ns;   /* a round closes after this time; 0: no limit */
} rp_take_facts;

typedef enum {
    RP_TAKE_WAITS,
    RP_TAKE_CLOSES, /* with the sites that are done */
    RP_TAKE_FAILS   /* too many sites are given up: `least` cannot be met */
} rp_take_decision;

rp_take_decision rp_take_decide(const rp_take_facts *facts);

#endif
