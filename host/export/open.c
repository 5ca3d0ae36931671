#include "export/merge.h"
#include "export/net.h"

rp_err rp_export_open(rp_arena *arena, const rp_export_options *options, rp_export_net **out) {
    rp_export_net *net = NULL;
    rp_err err;
    RP_TRY(rp_export_read_net(arena, options, &net));
    if (options->merge) {
        RP_TRY(rp_export_merge(net));
    }
    *out = net;
    return RP_OK;
fail:
    rp_export_close(&net);
    return err;
}
