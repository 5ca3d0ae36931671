/* For a system that owns its boot chain: a folder that goes onto its boot partition, or anywhere.
 */
#ifndef RP_IMAGE_OVERLAY_H
#define RP_IMAGE_OVERLAY_H

#include "image/node.h"

/* Makes `folder`, which must not be there:
 *   user-data, meta-data, network-config   a seed for cloud-init (NoCloud)
 *   ringpipe/      node.conf and the rest, first-boot, packages/ or tree/
 * `packages`: where ringpipe-agent_*_ARCH.deb lies; `drivers`: Debian's, with ' ' between; NULL:
 * for a system without dpkg, which gets the package's files. errors  USAGE, IO */
rp_err rp_image_overlay(const rp_image_node *node, const char *arch, const char *packages,
                        const char *drivers, const char *folder) RP_MUST_CHECK;

#endif
