/* Identifies the peer of a link. Each end has a session number, new for each life of the process;
 * frames name both ends' numbers, so that a frame meant for another session is never accepted. */
#ifndef RP_LINK_SESSION_H
#define RP_LINK_SESSION_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_SESSION_RETIRED_MAX = 8 };

typedef struct {
    uint64_t own;  /* not 0 */
    uint64_t peer; /* 0 = not heard yet */
    uint64_t retired[RP_SESSION_RETIRED_MAX];
    uint32_t retired_count; /* number of sessions ever retired */
} rp_session;

typedef enum {
    RP_SESSION_SAME,   /* the known peer */
    RP_SESSION_FIRST,  /* the first peer of our session */
    RP_SESSION_OTHER,  /* another session: the same peer restarted, or another peer */
    RP_SESSION_INVALID /* no session, or one that is over */
} rp_session_is;

rp_session_is rp_session_classify(const rp_session *session, uint64_t number);
/* Adopts this peer; the session of the previous one is over. */
void rp_session_adopt(rp_session *session, uint64_t number);

#endif
