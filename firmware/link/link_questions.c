/* Questions belong to no session, so that another client may ask while a peer is served. */
#include "link/head.h"
#include "link/link_own.h"

void rp_link_set_answer(rp_link *link, rp_link_answer answer, void *context) {
    link->answer = answer;
    link->answer_context = context;
}

/* If the answer cannot be sent now, the client asks again. */
bool rp_link_take_question(rp_link *link, const rp_Frame *frame, uint64_t from) {
    const rp_Ask *ask = &frame->body.ask;
    rp_Frame out = {0};
    rp_packet packet = {.count = 1, .peer = from};
    if (!link->answer || ask->id == 0 || !link->answer(link->answer_context, ask, &out)) {
        return false;
    }
    out.version = link->wire;
    out.session = link->session.own;
    out.peer = frame->session;
    if (rp_frame_seal(&out, NULL, 0) != RP_OK || rp_head_write(&out, &packet.frame[0]) != RP_OK) {
        return false;
    }
    if (link->port->kind->post(link->port, &packet) == RP_OK) {
        link->stats.bytes_sent += rp_packet_bytes(&packet);
    }
    rp_packet_drop(&packet);
    return true;
}
