/* A folder for a vendor's system with its own boot chain: it is copied to the boot partition, or to
 * any place. */
#ifndef RP_IMAGE_OVERLAY_H
#define RP_IMAGE_OVERLAY_H

#include "image/node.h"

/* Makes `folder`, which must not exist:
 *   user-data, meta-data, network-config   a seed for cloud-init (NoCloud)
 *   ringpipe/      node.conf etc., first-boot, packages/ or tree/
 * `packages`: folder with ringpipe-agent_*_ARCH.deb; `drivers`: Debian's packages, separated by '
 * '; NULL: a system without dpkg, which gets the package's files. errors  USAGE, IO */
rp_err rp_image_overlay(const rp_image_node *node, const char *arch, const char *packages,
                        const char *drivers, const char *folder) RP_MUST_CHECK;

#endif
