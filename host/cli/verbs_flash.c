/* flash: writes an image to a card, or starts it under qemu. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/cli.h"
#include "cli/signals.h"
#include "flash/disk_image.h"
#include "flash/disks.h"
#include "flash/tool.h"
#include "flash/write.h"
#include "run/roster.h"

enum { QEMU_PORTS = 18 }; /* ports of an agent, including those for boards that share a stage */

typedef struct {
    const rp_cli_args *args;
    const char *root;
    const char *doing;
    bool shown;
} job;

/* ---- output and questions -------------------------------------------------------------------- */

static rp_err list_disks(const job *j) {
    static rp_disk disk[RP_DISKS_MAX];
    uint32_t count;
    uint32_t free_count = 0;
    rp_err err;
    RP_TRY(rp_disks_read(j->root, disk, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (disk[i].can_leave) {
            const char *state = disk[i].in_use[0]   ? disk[i].in_use
                                : disk[i].read_only ? "cannot be written"
                                                    : "free";
            (void)printf("/dev/%-10s %8.1f GB  %-24s %s\n", disk[i].name,
                         (double)disk[i].bytes * 1e-9, disk[i].model, state);
            free_count += !disk[i].in_use[0] && !disk[i].read_only;
        }
    }
    (void)printf("%u disk%s can be written\n", free_count, free_count == 1 ? "" : "s");
fail:
    return err;
}

static void show_progress(void *context, uint64_t bytes, uint64_t of) {
    job *j = context;
    if (!j->args->quiet && isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r%s %3.0f %%  %6" PRIu64 " of %" PRIu64 " MiB ", j->doing,
                      of ? 100.0 * (double)bytes / (double)of : 100.0, bytes >> 20, of >> 20);
        (void)fflush(stderr);
        j->shown = true;
    }
}

static void end_progress(job *j) {
    if (j->shown) {
        (void)fprintf(stderr, "\n");
        j->shown = false;
    }
}

/* Asks before a card is overwritten, unless --yes is given. */
static rp_err confirm(const job *j, const char *image, const char *device, const rp_disk *disk) {
    char answer[16];
    if (j->args->yes) {
        return RP_OK;
    }
    if (!isatty(STDIN_FILENO) && !j->root[0]) {
        return rp_fail(RP_ERR_USAGE,
                       "%s would be overwritten; without a terminal, confirm with --yes", device);
    }
    (void)fprintf(stderr,
                  "%s (%s, %.1f GB) will be overwritten with %s; everything on it is lost. Write? "
                  "[y/N] ",
                  device, disk->model[0] ? disk->model : "no name", (double)disk->bytes * 1e-9,
                  image);
    (void)fflush(stderr);
    if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y')) {
        return rp_fail(RP_ERR_USAGE, "nothing was written");
    }
    return RP_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static rp_err run_bmaptool(rp_arena *arena, const char *image, const char *path) {
    static const char *const start[] = {"bmaptool", "copy", "--nobmap", "--"};
    char *word[7] = {NULL};
    int code;
    rp_err err;
    for (size_t i = 0; i < 3; i++) {
        RP_TRY(rp_arena_string(arena, start[i], &word[i]));
    }
    RP_TRY(rp_arena_string(arena, image, &word[3]));
    RP_TRY(rp_arena_string(arena, path, &word[4]));
    RP_TRY(rp_tool_run(word, &code));
    if (code != 0) {
        return rp_fail(RP_ERR_FAULT,
                       "bmaptool failed with exit code %d; the card has only a part of the image",
                       code);
    }
fail:
    return err;
}

static rp_err write_card(rp_arena *arena, job *j, const char *image, const char *device) {
    static const rp_tool bmaptool[] = {{"bmaptool", "bmap-tools"}};
    const bool own = !j->args->image.runner || strcmp(j->args->image.runner, "dd") == 0;
    char path[RP_DISK_PATH];
    rp_disk_image about;
    rp_disk disk;
    rp_err err;
    RP_TRY(rp_disk_image_check(image, &about));
    RP_TRY(own ? RP_OK : rp_tools_need(bmaptool, 1));
    RP_TRY(rp_disk_choose(j->root, device, about.bytes, &disk, path));
    RP_TRY(confirm(j, image, device, &disk));
    const rp_card_job work = {.image = image,
                              .device = path,
                              .stopped = rp_cli_is_stopped,
                              .progress = show_progress,
                              .context = j};
    j->doing = "writing";
    RP_TRY(own ? rp_card_write(&work) : run_bmaptool(arena, image, path));
    end_progress(j);
    j->doing = "reading back";
    RP_TRY(rp_card_verify(&work));
    end_progress(j);
    (void)printf("%s has %s: %" PRIu64 " MiB, read back and equal\n", device, image,
                 about.bytes >> 20);
fail:
    end_progress(j);
    return err;
}

static rp_err ask_for_card(const job *j, const char *image, const char *device) {
    char answer[16];
    if (!isatty(STDIN_FILENO) && !j->root[0]) {
        return rp_fail(RP_ERR_USAGE, "several images need a terminal, because cards have to be "
                                     "changed; flash them one by one");
    }
    rp_print(stderr, "insert the card for %s into %s, then press Enter ", image, device);
    (void)fflush(stderr);
    return fgets(answer, sizeof answer, stdin) ? RP_OK
                                               : rp_fail(RP_ERR_USAGE, "stopped; no further card "
                                                                       "was written");
}

/* ---- qemu ------------------------------------------------------------------------------------ */

/* Options of qemu that forward the agent's ports from this machine to the guest. */
static rp_err list_forwards(rp_arena *arena, const char *endpoint, char **out) {
    const char *at = endpoint + strlen("tcp://");
    const char *colon = strrchr(at, ':');
    const uint32_t port = (uint32_t)strtoul(colon + 1, NULL, 10);
    const int host = strncmp(at, "0.0.0.0:", 8) == 0 ? 0 : (int)(colon - at);
    rp_err err;
    RP_TRY(rp_arena_string(arena, "user,id=net", out));
    for (uint32_t i = 0; i < QEMU_PORTS; i++) {
        RP_TRY(rp_arena_printf(arena, out, "%s,hostfwd=tcp:%.*s:%u-:%u", *out, host, at, port + i,
                               port + i));
    }
fail:
    return err;
}

static rp_err start_qemu(rp_arena *arena, const job *j, const char *image) {
    const char *endpoint = j->args->image.listen ? j->args->image.listen : "tcp://0.0.0.0:7000";
    static const rp_tool tools[2][1] = {{{"qemu-system-x86_64", "qemu-system-x86"}},
                                        {{"qemu-system-aarch64", "qemu-system-arm"}}};
    rp_disk_image about;
    char *net;
    char *drive;
    rp_err err;
    RP_TRY(rp_disk_image_check(image, &about));
    if (!about.arch) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: the image does not name its machine; expected one made by "
                       "`ringpipe image` for amd64 or arm64",
                       image);
    }
    if (!rp_roster_is_address(endpoint)) {
        return rp_fail(RP_ERR_USAGE, "--listen: expected " RP_ROSTER_ADDRESS ", found '%s'",
                       endpoint);
    }
    const bool arm = strcmp(about.arch, "arm64") == 0;
    const char *bios = arm ? "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd" : "/usr/share/ovmf/OVMF.fd";
    RP_TRY(rp_tools_need(tools[arm], 1));
    if (access(bios, R_OK) != 0) {
        return rp_fail(RP_ERR_USAGE, "missing: %s; on Debian install it with `apt-get install %s`",
                       bios, arm ? "qemu-efi-aarch64" : "ovmf");
    }
    RP_TRY(list_forwards(arena, endpoint, &net));
    RP_TRY(rp_arena_printf(arena, &drive, "file=%s,format=raw,if=virtio", image));
    const char *const words[] = {arm ? "qemu-system-aarch64" : "qemu-system-x86_64",
                                 "-M",
                                 arm ? "virt" : "q35",
                                 "-cpu",
                                 arm ? "cortex-a57" : "Nehalem",
                                 "-smp",
                                 "2",
                                 "-m",
                                 "1024",
                                 "-bios",
                                 bios,
                                 "-drive",
                                 drive,
                                 "-netdev",
                                 net,
                                 "-device",
                                 "virtio-net-pci,netdev=net,romfile=",
                                 "-nographic",
                                 NULL};
    (void)execvp(words[0], (char *const *)(uintptr_t)words);
    return rp_fail(RP_ERR_IO, "%s cannot be started", words[0]);
fail:
    return err;
}

/* ---- the verb -------------------------------------------------------------------------------- */

rp_err rp_verb_flash(rp_arena *arena, const rp_cli_args *args) {
    const char *root = getenv("RINGPIPE_FLASH_ROOT");
    job j = {.args = args, .root = root ? root : ""};
    const uint32_t images = args->words.count > 0 ? args->words.count - 1 : 0;
    rp_err err = RP_OK;
    if (strcmp(args->image.runner, "qemu") == 0) {
        return args->words.count == 1
                   ? start_qemu(arena, &j, args->words.item[0])
                   : rp_fail(RP_ERR_USAGE, "expected: flash IMAGE --runner qemu, without a device");
    }
    if (args->words.count == 0) {
        return list_disks(&j);
    }
    if (images == 0) {
        return rp_fail(RP_ERR_USAGE, "expected: flash IMAGE... DEVICE; `ringpipe flash` without "
                                     "arguments lists the devices");
    }
    RP_TRY(rp_cli_watch_signals());
    for (uint32_t i = 0; i < images; i++) {
        if (i > 0) {
            RP_TRY(ask_for_card(&j, args->words.item[i], args->words.item[images]));
        }
        RP_TRY(write_card(arena, &j, args->words.item[i], args->words.item[images]));
    }
fail:
    return err;
}
