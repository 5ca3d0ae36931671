/* ringpipe-system: the privileged operations on system slots, on a card of ours. Only the services
 * of packaging/image call it.
 *
 *   publish   tells the agent which system runs
 *   serve     also fulfils the agent's wishes: installs a bundle, marks the running system as
 *             good
 *   trial     exits with 0 if the running system is on trial, with 1 if not
 *
 * RINGPIPE_SYSTEM_ROOT: prefix of all its files, for tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "update/system.h"

enum { LINE_BYTES = 256 };

typedef struct {
    char boot[RP_AB_PATH_BYTES], state[RP_AB_PATH_BYTES], wishes[RP_AB_PATH_BYTES],
        keys[RP_AB_PATH_BYTES];
    char slot[LINE_BYTES], device[3][LINE_BYTES], board[LINE_BYTES], boot_id[LINE_BYTES];
} texts;

static void name_file(char out[RP_AB_PATH_BYTES], const char *path) {
    const char *root = getenv("RINGPIPE_SYSTEM_ROOT");
    (void)snprintf(out, RP_AB_PATH_BYTES, "%.500s%.500s", root ? root : "", path);
}

/* Reads the first line of a file; false if it has no line. */
static bool read_line(const char *path, char out[LINE_BYTES]) {
    char whole[RP_AB_PATH_BYTES];
    name_file(whole, path);
    FILE *file = fopen(whole, "re");
    const bool read = file && fgets(out, LINE_BYTES, file);
    if (file) {
        (void)fclose(file);
    }
    out[read ? strcspn(out, "\n") : 0] = '\0';
    return read && out[0];
}

/* Reads what the initrd's `init` left in /run/ringpipe; false: this card has no slots. */
static bool find_places(texts *t, rp_system_service *out) {
    *out = (rp_system_service){.state = t->state, .wishes = t->wishes, .keys = t->keys};
    name_file(t->boot, "/boot");
    name_file(t->state, "/run/ringpipe/system");
    name_file(t->wishes, "/var/lib/private/ringpipe-agent/slots");
    name_file(t->keys, "/etc/ringpipe");
    if (!read_line("/run/ringpipe/slot", t->slot) ||
        !read_line("/run/ringpipe/device-a", t->device[RP_AB_A]) ||
        !read_line("/run/ringpipe/device-b", t->device[RP_AB_B]) ||
        !read_line("/proc/sys/kernel/random/boot_id", t->boot_id)) {
        return false;
    }
    t->boot_id[RP_SYSTEM_BOOT_ID - 1] = '\0';
    out->boot = t->boot_id;
    out->board = read_line("/etc/ringpipe/board", t->board) ? t->board : NULL;
    out->places.boot = t->boot;
    out->places.partition[RP_AB_A] = t->device[RP_AB_A];
    out->places.partition[RP_AB_B] = t->device[RP_AB_B];
    out->places.own = strcmp(t->slot, "a") == 0   ? RP_AB_A
                      : strcmp(t->slot, "b") == 0 ? RP_AB_B
                                                  : RP_AB_NONE;
    return out->places.own != RP_AB_NONE;
}

static int is_trial(const rp_system_service *service) {
    rp_system system;
    const rp_err err = rp_system_look(&service->places, &system);
    return err == RP_OK && system.slot[system.own].state == RP_SYSTEM_TRIAL ? 0 : 1;
}

int main(int argc, char **argv) {
    static texts t;
    rp_system_service service;
    const char *action = argc == 2 ? argv[1] : "";
    rp_log_setup_plain("ringpipe-system");
    /* the service's umask is stricter, and the agent must be able to read the state */
    (void)umask(022);
    const bool publishes = strcmp(action, "publish") == 0;
    if (!publishes && strcmp(action, "serve") != 0 && strcmp(action, "trial") != 0) {
        (void)fprintf(stderr, "usage: ringpipe-system publish|serve|trial\n");
        return 2;
    }
    if (!find_places(&t, &service)) {
        (void)fprintf(stderr, "ringpipe-system: this board's card has no slots for a system\n");
        return 1;
    }
    if (strcmp(action, "trial") == 0) {
        return is_trial(&service);
    }
    const rp_err err = publishes ? rp_system_publish(&service) : rp_system_serve(&service);
    return err == RP_OK ? 0 : rp_err_exit_code(err);
}
