/* Low-rank corrections added to their weights. Private to the room. */
#ifndef RP_EXPORT_MERGE_H
#define RP_EXPORT_MERGE_H

#include "export/net.h"

/* Replaces the weight of every layer with `lora` by W + (alpha / rank) B A, and takes A and B out
 * of the net. errors USAGE: no layer has corrections, or a corrected weight is shared; MEMORY */
rp_err rp_export_merge(rp_export_net *net) RP_MUST_CHECK;

/* alpha / rank of a layer with the key `lora`. errors USAGE */
rp_err rp_export_lora_scale(rp_node *lora, double *out) RP_MUST_CHECK;

#endif
