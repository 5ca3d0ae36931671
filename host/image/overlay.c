#include "image/overlay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/folders.h"
#include "flash/tool.h"
#include "image/make.h"
#include "image/wifi.h"

enum { PATH_BYTES = 4096 };

static const char user_data[] =
    "#cloud-config\n"
    "# Made by `ringpipe image --overlay`: at its first start this board becomes %s.\n"
    "hostname: \"%s\"\n"
    "runcmd:\n"
    "  - [sh, -c, 'for at in /boot/firmware /boot /boot/efi /media/* /mnt; do if [ -f\n"
    "      \"$at/ringpipe/node.conf\" ]; then exec sh \"$at/ringpipe/first-boot\" "
    "\"$at/ringpipe\"; fi; done']\n";

static const char read_me[] =
    "For the board %s.\n"
    "\n"
    "Systems with cloud-init (Raspberry Pi OS from trixie on, Ubuntu, Armbian): copy everything in "
    "this folder\n"
    "to the boot partition of the card, and start the board.\n"
    "All further systems (JetPack, older ones): copy the folder `ringpipe` to the board, and run "
    "once there:\n"
    "  sudo sh ringpipe/first-boot ringpipe\n"
    "Keep node.conf secret: it contains a token until first-boot has removed it.\n";

static rp_err write_seed(rp_arena *arena, const rp_image_node *node, const char *folder) {
    char *text;
    const char *network;
    rp_image_wifi wifi;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &text, user_data, node->name, node->name));
    RP_TRY(rp_image_write_file(folder, "user-data", text));
    RP_TRY(rp_arena_printf(arena, &text, "instance-id: ringpipe-%s\nlocal-hostname: \"%s\"\n",
                           node->name, node->name));
    RP_TRY(rp_image_write_file(folder, "meta-data", text));
    RP_TRY(rp_arena_printf(arena, &text, read_me, node->name));
    RP_TRY(rp_image_write_file(folder, "README.txt", text));
    if (node->wifi) {
        RP_TRY(rp_image_read_wifi(arena, node->wifi, &wifi));
        RP_TRY(rp_image_wifi_cloud(arena, &wifi, &network));
        RP_TRY(rp_image_write_file(folder, "network-config", network));
    }
fail:
    return err;
}

static rp_err run_words(rp_arena *arena, const char *const *words, int *code) {
    char *word[6] = {NULL};
    rp_err err = RP_OK;
    for (size_t i = 0; words[i] && i < 5; i++) {
        RP_TRY(rp_arena_string(arena, words[i], &word[i]));
    }
    RP_TRY(rp_tool_run(word, code));
fail:
    return err;
}

/* Unpacks the files of a package without running its installation scripts. */
static rp_err unpack_package(rp_arena *arena, const char *package, const char *folder) {
    int code;
    rp_err err;
    RP_TRY(rp_folders_make(folder, 0700));
    RP_TRY(
        run_words(arena, (const char *[]){"dpkg-deb", "--extract", package, folder, NULL}, &code));
    if (code != 0) {
        return rp_fail(RP_ERR_IO, "%s cannot be unpacked to %s", package, folder);
    }
fail:
    return err;
}

static rp_err copy_file(rp_arena *arena, const char *from, const char *folder) {
    int code;
    rp_err err;
    RP_TRY(run_words(arena, (const char *[]){"cp", "-L", "--", from, folder, NULL}, &code));
    if (code != 0) {
        return rp_fail(RP_ERR_IO, "%s cannot be copied to %s", from, folder);
    }
fail:
    return err;
}

/* Adds the agent as a package for apt with the list of driver packages or, if `drivers` is NULL, as
 * files. */
static rp_err put_agent(rp_arena *arena, const char *agent, const char *drivers, const char *own) {
    char *inner;
    char *line;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &inner, "%s/%s", own, drivers ? "packages" : "tree"));
    if (!drivers) {
        return unpack_package(arena, agent, inner);
    }
    RP_TRY(rp_folders_make(inner, 0700));
    RP_TRY(copy_file(arena, agent, inner));
    RP_TRY(rp_arena_printf(arena, &line, "%s\n", drivers));
    RP_TRY(rp_image_write_file(inner, "drivers", line));
fail:
    return err;
}

rp_err rp_image_overlay(const rp_image_node *node, const char *arch, const char *packages,
                        const char *drivers, const char *folder) {
    char own[PATH_BYTES];
    char *script;
    const char *agent;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "overlay", 0);
    RP_TRY(rp_image_find_agent(&arena, packages, arch, &agent));
    if (access(folder, F_OK) == 0) {
        RP_TRY(
            rp_fail(RP_ERR_USAGE, "%s exists already; remove it, or choose a new --out", folder));
    }
    if (snprintf(own, sizeof own, "%s/ringpipe", folder) >= (int)sizeof own) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "%s: the path is too long", folder));
    }
    RP_TRY(rp_folders_make(own, 0700));
    RP_TRY(rp_image_write_node(node, own));
    RP_TRY(put_agent(&arena, agent, drivers, own));
    RP_TRY(rp_arena_printf(&arena, &script, "%s/first-boot", rp_image_folder()));
    RP_TRY(copy_file(&arena, script, own));
    RP_TRY(write_seed(&arena, node, folder));
fail:
    rp_arena_finish(&arena);
    return err;
}
