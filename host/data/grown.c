#include "data/grown.h"

#include <string.h>

#include "base/arena.h"

enum { ROOM_FIRST = 64 };

rp_err rp_grown_reserve(rp_grown *grown, size_t room) {
    void *at;
    rp_err err;
    if (room <= grown->room) {
        return RP_OK;
    }
    size_t most = grown->room > 0 ? 2 * grown->room : ROOM_FIRST;
    most = most > room ? most : room;
    if (most > SIZE_MAX / grown->size) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a list of %zu items", most);
    }
    RP_TRY(rp_block_new(most * grown->size, &at));
    if (grown->count > 0) {
        memcpy(at, grown->at, grown->count * grown->size);
    }
    rp_block_free(grown->at);
    grown->at = at;
    grown->room = most;
fail:
    return err;
}

void rp_grown_free(rp_grown *grown) {
    rp_block_free(grown->at);
    grown->at = NULL;
    grown->count = grown->room = 0;
}
