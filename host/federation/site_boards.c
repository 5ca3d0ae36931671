/* Boards for which the ring of a site waits. The ring itself waits much longer before it gives up,
 * so they are named here. */
#include <stdio.h>
#include <string.h>

#include "federation/federation_own.h"

/* A ring that starts has not met its boards yet. */
static const int64_t STARTS_NS = 2 * RP_NS_PER_S;
static const int64_t LOOK_NS = RP_NS_PER_S / 2;

static rp_err watch_site(rp_federation *f, rp_site *site) {
    char out[RP_FEDERATION_PATH];
    char names[RP_FEDERATION_NOTE];
    if (site->condition != RP_SITE_TRAINS || f->now_ns - site->began_ns < STARTS_NS) {
        return RP_OK;
    }
    rp_federation_name_round(f, site->trains, site, out);
    f->engine.kind->list_away(f->engine.context, out, names, sizeof names);
    if (names[0] == '\0' || strcmp(names, site->waits) == 0) {
        return RP_OK;
    }
    (void)snprintf(site->waits, sizeof site->waits, "%s", names);
    return rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITE_WAITS,
                                                      .site = site->name,
                                                      .round = site->trains,
                                                      .boards = site->waits});
}

rp_err rp_federation_watch_boards(rp_federation *f) {
    rp_err err = RP_OK;
    if (!f->engine.kind->list_away || f->now_ns - f->looked_ns < LOOK_NS) {
        return RP_OK;
    }
    f->looked_ns = f->now_ns;
    for (uint32_t i = 0; i < f->sites; i++) {
        RP_TRY(watch_site(f, &f->site[i]));
    }
fail:
    return err;
}
