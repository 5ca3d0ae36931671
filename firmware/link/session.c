#include "link/session.h"

static bool is_retired(const rp_session *session, uint64_t number) {
    uint32_t count = session->retired_count;
    count = count < RP_SESSION_RETIRED_MAX ? count : RP_SESSION_RETIRED_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (session->retired[i] == number) {
            return true;
        }
    }
    return false;
}

rp_session_is rp_session_classify(const rp_session *session, uint64_t number) {
    if (number == 0 || is_retired(session, number)) {
        return RP_SESSION_INVALID;
    }
    if (session->peer == 0) {
        return RP_SESSION_FIRST;
    }
    return number == session->peer ? RP_SESSION_SAME : RP_SESSION_OTHER;
}

void rp_session_adopt(rp_session *session, uint64_t number) {
    if (session->peer) {
        session->retired[session->retired_count++ % RP_SESSION_RETIRED_MAX] = session->peer;
    }
    session->peer = number;
}
