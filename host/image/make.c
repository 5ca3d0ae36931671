#include "image/make.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/config.h"
#include "base/folders.h"
#include "flash/tool.h"

enum { PATH_BYTES = 4096 };

static const rp_tool tools[] = {
    {"mmdebstrap", "mmdebstrap"}, {"sqfstar", "squashfs-tools"}, {"mke2fs", "e2fsprogs"},
    {"mkfs.vfat", "dosfstools"},  {"mcopy", "mtools"},           {"sfdisk", "fdisk"},
    {"dpkg-deb", "dpkg"},
};
static const rp_tool foreign_tools[] = {
    {"qemu-aarch64-static", "qemu-user-static"},
    {"arch-test", "arch-test"},
};

const char *rp_image_folder(void) {
    const char *folder = getenv("RINGPIPE_IMAGE");
    return folder ? folder : RP_IMAGE_DIR;
}

rp_err rp_image_find_agent(rp_arena *arena, const char *packages, const char *arch,
                           const char **out) {
    char end[32];
    char *best = NULL;
    rp_err err = RP_OK;
    DIR *dir = opendir(packages);
    (void)snprintf(end, sizeof end, "_%s.deb", arch);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        const size_t length = strlen(name);
        if (strncmp(name, "ringpipe-agent_", 15) == 0 && length > strlen(end) &&
            strcmp(name + length - strlen(end), end) == 0 && (!best || strcmp(name, best) > 0)) {
            RP_TRY(rp_arena_string(arena, name, &best));
        }
    }
    if (!best) {
        RP_TRY(rp_fail(RP_ERR_USAGE,
                       "--packages %s: ringpipe-agent_*_%s.deb is missing; make it in "
                       "build-package/ with `./bootstrap package %s`",
                       packages, arch, arch));
    }
    RP_TRY(rp_arena_printf(arena, &best, "%s/%s", packages, best));
    *out = best;
fail:
    if (dir) {
        (void)closedir(dir);
    }
    return err;
}

/* ---- room ------------------------------------------------------------------------------------ */

static rp_err check_room(const char *path, uint64_t mib, const char *what) {
    struct statvfs st;
    if (statvfs(path, &st) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", path, strerror(errno));
    }
    const uint64_t left = (uint64_t)st.f_bavail * st.f_frsize >> 20;
    return left >= mib ? RP_OK
                       : rp_fail(RP_ERR_USAGE,
                                 "%s: not enough space for %s: %" PRIu64 " MiB are free, %" PRIu64
                                 " MiB are needed",
                                 path, what, left, mib);
}

/* Reads `needs.yaml`, next to the scripts: the space that they need. */
static rp_err read_needs(rp_arena *arena, uint32_t *image_mib, uint32_t *system_mib) {
    rp_node *root;
    char *path;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &path, "%s/needs.yaml", rp_image_folder()));
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_need(root, "image_mib"));
    RP_TRY(rp_node_u32(root, "image_mib", 1, UINT32_MAX, image_mib));
    RP_TRY(rp_node_need(root, "system_mib"));
    RP_TRY(rp_node_u32(root, "system_mib", 1, UINT32_MAX, system_mib));
    RP_TRY(rp_node_done(root));
fail:
    return err;
}

static bool is_foreign(const char *arch) {
#if defined(__x86_64__)
    return strcmp(arch, "amd64") != 0;
#elif defined(__aarch64__)
    return strcmp(arch, "arm64") != 0;
#else
    (void)arch;
    return true;
#endif
}

rp_err rp_image_check_system(const rp_image_system *system, const char *out, uint32_t count) {
    const char *agent;
    char *folder;
    uint32_t image_mib = 0;
    uint32_t system_mib = 0;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "image", 0);
    RP_TRY(rp_image_find_agent(&arena, system->packages, system->arch, &agent));
    RP_TRY(rp_tools_need(tools, sizeof tools / sizeof *tools));
    if (is_foreign(system->arch)) {
        RP_TRY(rp_tools_need(foreign_tools, sizeof foreign_tools / sizeof *foreign_tools));
    }
    RP_TRY(rp_arena_string(&arena, out, &folder));
    char *slash = strrchr(folder, '/');
    if (slash) {
        slash[slash == folder] = '\0';
    }
    RP_TRY(rp_folders_make(system->cache, 0755));
    RP_TRY(read_needs(&arena, &image_mib, &system_mib));
    RP_TRY(check_room(slash ? folder : ".", (uint64_t)image_mib * count, "the image"));
    RP_TRY(check_room(system->cache, system_mib, "the system from which images are made"));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- the scripts ----------------------------------------------------------------------------- */

/* node NULL: makes only the system. */
static rp_err run_make(rp_arena *arena, const rp_image_system *system, const char *node,
                       const char *out) {
    char *word[11] = {NULL};
    int code;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &word[0], "%s/make", rp_image_folder()));
    RP_TRY(rp_arena_printf(arena, &word[1], "arch=%s", system->arch));
    RP_TRY(rp_arena_printf(arena, &word[2], "kernel=%s", system->kernel));
    RP_TRY(rp_arena_printf(arena, &word[3], "console=%s", system->console));
    RP_TRY(rp_arena_printf(arena, &word[4], "drivers=%s", system->drivers));
    RP_TRY(rp_arena_printf(arena, &word[5], "packages=%s", system->packages));
    RP_TRY(
        rp_arena_printf(arena, &word[6], "%s=%s", node ? "node" : "only", node ? node : "system"));
    RP_TRY(rp_arena_printf(arena, &word[7], "cache=%s", system->cache));
    RP_TRY(rp_arena_printf(arena, &word[8], "out=%s", out));
    RP_TRY(rp_arena_printf(arena, &word[9], "release=%u", system->release));
    for (char *at = word[4]; *at; at++) {
        *at = *at == ' ' ? ',' : *at; /* the form for mmdebstrap */
    }
    RP_TRY(rp_tool_run(word, &code));
    if (code == 130 || code == 143) {
        return rp_fail(RP_ERR_INTERRUPTED, "stopped; complete systems in %s are kept",
                       system->cache);
    }
    if (code != 0) {
        return rp_fail(code == 2 ? RP_ERR_USAGE : RP_ERR_FAULT,
                       "%s: the image was not made: %s failed with exit code %d", out, word[0],
                       code);
    }
fail:
    return err;
}

static void remove_folder(const char *path) {
    static const char *const names[] = {"node.conf", "authorized_keys", "wifi.conf", "update.key"};
    char file[PATH_BYTES + 32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(file, sizeof file, "%s/%s", path, names[i]);
        (void)unlink(file);
    }
    (void)rmdir(path);
}

rp_err rp_image_make(const rp_image_system *system, const rp_image_node *node, const char *out) {
    const char *scratch = getenv("TMPDIR");
    char folder[PATH_BYTES];
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "image", 0);
    (void)snprintf(folder, sizeof folder, "%s/ringpipe-image-XXXXXX", scratch ? scratch : "/tmp");
    if (!mkdtemp(folder)) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno)));
    }
    RP_TRY(rp_image_write_node(node, folder));
    err = run_make(&arena, system, folder, out);
fail:
    remove_folder(folder);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_image_make_system(const rp_image_system *system, const char *folder) {
    rp_arena arena;
    rp_arena_init(&arena, "image", 0);
    const rp_err err = run_make(&arena, system, NULL, folder);
    rp_arena_finish(&arena);
    return err;
}
