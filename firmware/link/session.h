/* Which peer a link talks to. Each end has a number for its life; frames name both ends' numbers,
 * so that what was meant for another life is never taken. */
#ifndef RP_LINK_SESSION_H
#define RP_LINK_SESSION_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_SESSION_RETIRED_MAX = 8 };

typedef struct {
    uint64_t own;  /* not 0 */
    uint64_t peer; /* 0 = not heard yet */
    uint64_t retired[RP_SESSION_RETIRED_MAX];
    uint32_t retired_count; /* ever */
} rp_session;

typedef enum {
    RP_SESSION_SAME,   /* the peer that we know */
    RP_SESSION_FIRST,  /* the first one of our life */
    RP_SESSION_OTHER,  /* another life: of the same peer or of somebody else */
    RP_SESSION_INVALID /* of no life, or of one that is over */
} rp_session_is;

rp_session_is rp_session_classify(const rp_session *session, uint64_t number);
/* From now on this is the peer; the one before is over. */
void rp_session_adopt(rp_session *session, uint64_t number);

#endif
