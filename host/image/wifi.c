#include "image/wifi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/quote.h"

enum { SSID_MAX = 32, PASSPHRASE_MIN = 8, PASSPHRASE_MAX = 63 };

static bool is_plain(const char *text) {
    for (const char *at = text; *at; at++) {
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\') {
            return false;
        }
    }
    return true;
}

/* Is it printable UTF-8 of 1 to 32 bytes? */
static bool is_name(const char *text) {
    const size_t bytes = strlen(text);
    size_t at = 0;
    while (at < bytes && rp_printable_bytes(text + at) > 0) {
        at += rp_printable_bytes(text + at);
    }
    return at == bytes && bytes > 0 && bytes <= SSID_MAX;
}

rp_err rp_image_read_wifi(rp_arena *arena, const char *path, rp_image_wifi *out) {
    rp_node *root;
    rp_err err;
    *out = (rp_image_wifi){0};
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_need(root, "ssid"));
    RP_TRY(rp_node_string(root, "ssid", &out->ssid));
    RP_TRY(rp_node_string(root, "passphrase", &out->passphrase));
    RP_TRY(rp_node_string(root, "country", &out->country));
    RP_TRY(rp_node_done(root));
    if (!is_name(out->ssid)) {
        return rp_node_fail(rp_node_find(root, "ssid"),
                            "expected 1 to %d bytes of printable UTF-8, found %zu bytes", SSID_MAX,
                            strlen(out->ssid));
    }
    const size_t length = out->passphrase ? strlen(out->passphrase) : PASSPHRASE_MIN;
    if (length < PASSPHRASE_MIN || length > PASSPHRASE_MAX ||
        (out->passphrase && !is_plain(out->passphrase))) { /* the secret is not shown */
        return rp_node_fail(rp_node_find(root, "passphrase"),
                            "expected %d to %d characters without quotes and \\", PASSPHRASE_MIN,
                            PASSPHRASE_MAX);
    }
    if (out->country && (strlen(out->country) != 2 || !isupper((unsigned char)out->country[0]) ||
                         !isupper((unsigned char)out->country[1]))) {
        return rp_node_fail(rp_node_find(root, "country"),
                            "expected two capital letters, as in DE");
    }
fail:
    return err;
}

/* Writes a name for wpa_supplicant: in quotes, or as hexadecimal digits if it has special bytes. */
static void write_ssid(const char *ssid, char out[2 * SSID_MAX + 3]) {
    char *to = out;
    if (is_plain(ssid)) {
        (void)snprintf(out, 2 * SSID_MAX + 3, "\"%s\"", ssid);
        return;
    }
    for (; *ssid; ssid++, to += 2) {
        (void)snprintf(to, 3, "%02x", (unsigned char)*ssid);
    }
}

rp_err rp_image_wifi_text(rp_arena *arena, const rp_image_wifi *wifi, const char **out) {
    char *text;
    rp_err err;
    char ssid[2 * SSID_MAX + 3];
    const bool closed = wifi->passphrase != NULL;
    write_ssid(wifi->ssid, ssid);
    RP_TRY(rp_arena_printf(arena, &text,
                           "ctrl_interface=DIR=/run/wpa_supplicant\n%s%s%s"
                           "network={\n    ssid=%s\n    scan_ssid=1\n    %s%s%s\n}\n",
                           wifi->country ? "country=" : "", wifi->country ? wifi->country : "",
                           wifi->country ? "\n" : "", ssid, closed ? "psk=\"" : "key_mgmt=NONE",
                           closed ? wifi->passphrase : "", closed ? "\"" : ""));
    *out = text;
fail:
    return err;
}

rp_err rp_image_wifi_cloud(rp_arena *arena, const rp_image_wifi *wifi, const char **out) {
    char *text;
    const char *ssid;
    const char *passphrase = "";
    rp_err err;
    const bool closed = wifi->passphrase != NULL;
    RP_TRY(rp_quote(arena, wifi->ssid, &ssid));
    RP_TRY(closed ? rp_quote(arena, wifi->passphrase, &passphrase) : RP_OK);
    RP_TRY(rp_arena_printf(arena, &text,
                           "version: 2\n"
                           "ethernets: {eth0: {dhcp4: true, optional: true}}\n"
                           "wifis:\n  wlan0:\n    dhcp4: true\n    optional: true\n%s%s%s"
                           "    access-points: {%s: {%s%s}}\n",
                           wifi->country ? "    regulatory-domain: " : "",
                           wifi->country ? wifi->country : "", wifi->country ? "\n" : "", ssid,
                           closed ? "password: " : "", passphrase));
    *out = text;
fail:
    return err;
}
