#include "adopt/adopt.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "adopt/remote.h"
#include "flash/tool.h"
#include "image/overlay.h"

enum { LOOK_S = 60, SEND_S = 600, INSTALL_S = 3600, CLEAN_S = 60, ANSWER_BYTES = 4096 };

/* Works in any POSIX shell; only reads. */
static const char look_command[] =
    "echo os=$(uname -s); echo machine=$(uname -m); "
    "echo arch=$(dpkg --print-architecture 2>/dev/null); echo name=$(uname -n); "
    "echo user=$(id -u); echo sudo=$(command -v sudo); "
    "echo systemd=$(test -d /run/systemd/system && echo yes); "
    "echo service=$(systemctl is-active ringpipe-agent 2>/dev/null); "
    "echo from=$(echo $SSH_CONNECTION | cut -d ' ' -f 1); "
    "echo driver=$(ls /etc/OpenCL/vendors 2>/dev/null | head -n 1); "
    "echo missing=$(PATH=$PATH:/usr/sbin:/sbin; for l in libzmq.so.5 libclblast.so.1 "
    "libOpenCL.so.1 libsodium.so.23; do ldconfig -p 2>/dev/null | grep -q $l || echo $l; done); "
    "echo system=$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '\"')";

/* ---- commands -------------------------------------------------------------------------------- */

static rp_err send_command(rp_arena *arena, const rp_adopt *adopt, char **out) {
    return rp_arena_printf(arena, out, "mkdir -m 700 %s && tar -C %s -xf -", adopt->scratch,
                           adopt->scratch);
}

static rp_err install_command(rp_arena *arena, const rp_adopt *adopt, bool is_root, char **out) {
    return rp_arena_printf(arena, out, "%ssh %s/ringpipe/first-boot %s/ringpipe",
                           is_root ? "" : "sudo ", adopt->scratch, adopt->scratch);
}

/* Files left by first-boot belong to the user, so no root is needed to remove them. */
static rp_err clean_command(rp_arena *arena, const rp_adopt *adopt, char **out) {
    return rp_arena_printf(arena, out, "rm -rf %s", adopt->scratch);
}

rp_err rp_adopt_show(const rp_adopt *adopt, FILE *file) {
    rp_arena arena;
    rp_remote remote = {.to = adopt->to, .command = look_command};
    char *command;
    const char *text;
    rp_err err;
    rp_arena_init(&arena, "adopt", 0);
    RP_TRY(rp_remote_text(&arena, &remote, &text));
    (void)fprintf(file, "# what the system is; nothing is changed\n%s\n", text);
    RP_TRY(send_command(&arena, adopt, &command));
    remote.command = command;
    RP_TRY(rp_remote_text(&arena, &remote, &text));
    (void)fprintf(file,
                  "# ringpipe.tar: first-boot, node.conf with a token, ringpipe-agent_*.deb of %s "
                  "(its files, where there is no dpkg)\n"
                  "%s <ringpipe.tar\n",
                  adopt->packages, text);
    RP_TRY(install_command(&arena, adopt, false, &command));
    remote.command = command;
    remote.terminal = true;
    RP_TRY(rp_remote_text(&arena, &remote, &text));
    (void)fprintf(file,
                  "# apt-get install of the package and a driver, or its files to /usr and "
                  "/etc/systemd/system; /etc/default/ringpipe-agent, the service is started; root "
                  "needs no sudo\n%s\n",
                  text);
    RP_TRY(clean_command(&arena, adopt, &command));
    remote.command = command;
    remote.terminal = false;
    RP_TRY(rp_remote_text(&arena, &remote, &text));
    (void)fprintf(file, "%s\n", text);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- looking --------------------------------------------------------------------------------- */

bool rp_adopt_is_address(const char *to) {
    static const char more[] = "._-@:%[]";
    const char *at = strrchr(to, '@');
    if (strlen(to) > 255 || !at || at == to || !at[1] || to[0] == '-' || at[1] == '-') {
        return false;
    }
    for (const char *c = to; *c; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9') || strchr(more, *c);
        if (!plain) {
            return false;
        }
    }
    return true;
}

rp_err rp_adopt_scratch(rp_arena *arena, const char **out) {
    uint64_t number;
    char *text;
    rp_err err;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        return rp_fail(RP_ERR_IO, "getrandom: %s", strerror(errno));
    }
    RP_TRY(
        rp_arena_printf(arena, &text, "/tmp/ringpipe-adopt-%016llx", (unsigned long long)number));
    *out = text;
fail:
    return err;
}

/* Reads a line `key=value`; only printable ASCII is kept. "": no such line. */
static void read_word(const char *answer, const char *key, char out[64]) {
    const size_t length = strlen(key);
    out[0] = '\0';
    for (const char *line = answer; line && *line;) {
        const char *end = line + strcspn(line, "\r\n");
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *value = line + length + 1;
            (void)snprintf(out, 64, "%.*s", (int)(end - value), value);
            for (char *c = out; *c; c++) {
                *c = *c >= ' ' && *c <= '~' ? *c : '?';
            }
            return;
        }
        line = *end ? end + 1 : NULL;
    }
}

static rp_err say_ssh(const char *to, int code, const char *what) {
    return code == 255 ? rp_fail(RP_ERR_IO, "ssh to %s failed (above): does `ssh %s` work?", to, to)
                       : rp_fail(RP_ERR_FAULT, "%s: %s ended with %d (above)", to, what, code);
}

/* Debian's architecture name, for a system without dpkg. */
static void note_bare(rp_adopt_system *system) {
    const bool x86 = strcmp(system->machine, "x86_64") == 0;
    system->bare = !system->arch[0] && (x86 || strcmp(system->machine, "aarch64") == 0);
    if (system->bare) {
        (void)snprintf(system->arch, sizeof system->arch, "%s", x86 ? "amd64" : "arm64");
    }
}

rp_err rp_adopt_look(const char *to, rp_adopt_system *out) {
    char answer[ANSWER_BYTES];
    const rp_remote remote = {.to = to,
                              .command = look_command,
                              .wait_s = LOOK_S,
                              .out = answer,
                              .out_bytes = sizeof answer};
    int code;
    const rp_err err = rp_remote_run(&remote, &code);
    if (err != RP_OK) {
        return err;
    }
    if (code != 0) {
        return say_ssh(to, code, "looking at it");
    }
    read_word(answer, "os", out->os);
    read_word(answer, "machine", out->machine);
    read_word(answer, "arch", out->arch);
    read_word(answer, "name", out->name);
    read_word(answer, "user", out->user);
    read_word(answer, "sudo", out->sudo);
    read_word(answer, "systemd", out->systemd);
    read_word(answer, "service", out->service);
    read_word(answer, "from", out->from);
    read_word(answer, "driver", out->driver);
    read_word(answer, "missing", out->missing);
    read_word(answer, "system", out->system);
    note_bare(out);
    return out->os[0] ? RP_OK
                      : rp_fail(RP_ERR_USAGE,
                                "%s: does not answer `uname -s`: does it have a POSIX shell?", to);
}

/* Without dpkg the package's files are copied as they are. Libraries cannot be brought along,
 * because a driver is made for its system's libraries. */
static rp_err check_bare(const char *to, const rp_adopt_system *system) {
    const bool has_driver = system->driver[0] != '\0';
    if (!system->missing[0] && has_driver) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_USAGE,
                   "%s: %s has no dpkg, so the agent's files are copied as they are, but these "
                   "are missing: %s%s%s; install them with its own tools, and adopt it again",
                   to, system->system[0] ? system->system : "its system", system->missing,
                   system->missing[0] && !has_driver ? " and " : "",
                   has_driver ? "" : "an OpenCL driver (a file in /etc/OpenCL/vendors)");
}

rp_err rp_adopt_check(const char *to, const rp_adopt_system *system) {
    if (strcmp(system->os, "Linux") != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: its system is %s, expected Linux", to, system->os);
    }
    if (strcmp(system->arch, "amd64") != 0 && strcmp(system->arch, "arm64") != 0) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: %s on %s has %s packages, expected amd64 or arm64 of Debian, Ubuntu or "
                       "their derivatives, or x86_64 or aarch64 without dpkg; on other systems the "
                       "agent has to be built there: `./bootstrap build`",
                       to, system->system[0] ? system->system : "its system", system->machine,
                       system->arch[0] ? system->arch : "no Debian");
    }
    if (strcmp(system->systemd, "yes") != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: systemd, which starts the agent, does not run there", to);
    }
    if (strcmp(system->user, "0") != 0 && !system->sudo[0]) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: its user is not root, and there is no sudo: take root@, or install "
                       "sudo there",
                       to);
    }
    return system->bare ? check_bare(to, system) : RP_OK;
}

/* ---- installing ------------------------------------------------------------------------------ */

static rp_err run_tool(const char *const *words, const char *what) {
    char *argv[8] = {NULL};
    rp_arena arena;
    int code = 0;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "tool", 0);
    for (uint32_t i = 0; words[i] && i < 7; i++) {
        RP_TRY(rp_arena_string(&arena, words[i], &argv[i]));
    }
    RP_TRY(rp_tool_run(argv, &code));
    err = code == 0 ? RP_OK : rp_fail(RP_ERR_IO, "%s: %s ended with %d", what, words[0], code);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Packs OVERLAY's folder `ringpipe` into one file. */
static rp_err pack_overlay(rp_arena *arena, const rp_adopt *adopt, const rp_adopt_system *system,
                           const rp_image_node *node, const char *own, char **tar) {
    char *overlay;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &overlay, "%s/overlay", own));
    RP_TRY(rp_arena_printf(arena, tar, "%s/ringpipe.tar", own));
    RP_TRY(rp_image_overlay(node, system->arch, adopt->packages,
                            system->bare ? NULL : adopt->drivers, overlay));
    const char *const words[] = {"tar", "-C", overlay, "-cf", *tar, "ringpipe", NULL};
    RP_TRY(run_tool(words, "what the board needs"));
fail:
    return err;
}

static rp_err run_step(const rp_remote *remote, const char *what) {
    int code;
    const rp_err err = rp_remote_run(remote, &code);
    return err == RP_OK && code != 0 ? say_ssh(remote->to, code, what) : err;
}

static rp_err send_and_install(rp_arena *arena, const rp_adopt *adopt,
                               const rp_adopt_system *system, const char *tar) {
    rp_remote remote = {.to = adopt->to, .input = tar, .wait_s = SEND_S};
    char *command;
    char *clean = NULL;
    int code;
    rp_err err;
    RP_TRY(clean_command(arena, adopt, &clean));
    RP_TRY(send_command(arena, adopt, &command));
    remote.command = command;
    err = run_step(&remote, "unpacking");
    if (err == RP_OK) {
        RP_TRY(install_command(arena, adopt, strcmp(system->user, "0") == 0, &command));
        const rp_remote install = {
            .to = adopt->to, .command = command, .terminal = true, .wait_s = INSTALL_S};
        err = run_step(&install, "first-boot");
    }
    /* The folder contains a secret, so it is removed in any case. */
    const rp_remote last = {.to = adopt->to, .command = clean, .wait_s = CLEAN_S};
    const rp_err cleaned = rp_remote_run(&last, &code);
    if (err == RP_OK && (cleaned != RP_OK || code != 0)) {
        err = rp_fail(RP_ERR_IO, "%s: %s still exists there and contains a token: remove it",
                      adopt->to, adopt->scratch);
    }
fail:
    return err;
}

rp_err rp_adopt_install(const rp_adopt *adopt, const rp_adopt_system *system,
                        const rp_image_node *node) {
    const char *temporary = getenv("TMPDIR");
    rp_arena arena;
    char *own = NULL;
    char *tar;
    bool made = false;
    rp_err err;
    rp_arena_init(&arena, "adopt", 0);
    RP_TRY(rp_arena_printf(&arena, &own, "%s/ringpipe-adopt-XXXXXX",
                           temporary && temporary[0] == '/' ? temporary : "/tmp"));
    made = mkdtemp(own) != NULL;
    if (!made) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", own, strerror(errno)));
    }
    RP_TRY(pack_overlay(&arena, adopt, system, node, own, &tar));
    RP_TRY(send_and_install(&arena, adopt, system, tar));
fail:
    if (made) {
        const char *const words[] = {"rm", "-rf", "--", own, NULL};
        const rp_err removed = run_tool(words, own);
        err = err == RP_OK ? removed : err;
    }
    rp_arena_finish(&arena);
    return err;
}
