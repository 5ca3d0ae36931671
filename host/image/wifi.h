/* A wireless network, from a file of the user:
 *
 *   ssid: workshop                        # 1 to 32 bytes of printable UTF-8
 *   passphrase: "correct horse battery"     # 8 to 63 characters; without it the network is open
 *   country: DE                             # optional; decides which channels are allowed */
#ifndef RP_IMAGE_WIFI_H
#define RP_IMAGE_WIFI_H

#include "base/arena.h"

typedef struct {
    const char *ssid, *passphrase, *country; /* the last two may be NULL */
} rp_image_wifi;

/* errors  USAGE with file, line and key */
rp_err rp_image_read_wifi(rp_arena *arena, const char *path, rp_image_wifi *out) RP_MUST_CHECK;
/* Makes a configuration of wpa_supplicant. errors MEMORY */
rp_err rp_image_wifi_text(rp_arena *arena, const rp_image_wifi *wifi,
                          const char **out) RP_MUST_CHECK;
/* Makes a network-config of cloud-init, version 2. errors MEMORY */
rp_err rp_image_wifi_cloud(rp_arena *arena, const rp_image_wifi *wifi,
                           const char **out) RP_MUST_CHECK;

#endif
