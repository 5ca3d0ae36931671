/* Communication between an unprivileged agent and the privileged service: it
 * publishes the state and reads wishes. Everything that the agent writes is treated as untrusted
 * bytes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/folders.h"
#include "base/log.h"
#include "base/replace.h"
#include "update/system.h"

enum { WISH_BYTES = 128 };

static const char *const state_words[] = {"empty", "good", "trial", "failed", NULL};
static const char *const slot_words[] = {"none", "a", "b", NULL};

/* ---- state ----------------------------------------------------------------------------------- */

/* Escapes the text of an error, so that it cannot end the surrounding YAML string. */
static void put_text(FILE *file, const char *text) {
    for (; *text; text++) {
        (void)fputc(*text < ' ' || *text == '\'' ? ' ' : *text, file);
    }
}

rp_err rp_system_tell(const char *path, const rp_system *system) {
    FILE *file = rp_replace_begin(path);
    if (file) {
        (void)fprintf(file, "boot: '%s'\nown: %s\ndue: %s\nerror: '", system->boot,
                      rp_ab_slot_name(system->own), system->due ? "true" : "false");
        put_text(file, system->error);
        (void)fprintf(file, "'\n");
        for (rp_ab_slot slot = RP_AB_A; slot <= RP_AB_B; slot++) {
            const rp_system_slot *at = &system->slot[slot];
            (void)fprintf(file, "%s: {state: %s, release: %" PRIu64 ", starts: %u}\n",
                          rp_ab_slot_name(slot), rp_system_state_name(at->state), at->release,
                          at->starts);
        }
    }
    const bool good = file && !ferror(file) && fchmod(fileno(file), 0644) == 0;
    return rp_replace_end(file, path, good);
}

static rp_err read_slot(rp_node *root, const char *name, rp_system_slot *out) {
    rp_node *map = rp_node_find(root, name);
    uint32_t state = RP_SYSTEM_EMPTY;
    rp_err err;
    RP_TRY(rp_node_need(root, name));
    RP_TRY(rp_node_word(map, "state", state_words, &state));
    RP_TRY(rp_node_u64(map, "release", 0, INT64_MAX, &out->release));
    RP_TRY(rp_node_u32(map, "starts", 0, 99, &out->starts));
    RP_TRY(rp_node_done(map));
    out->state = (rp_system_state)state;
fail:
    return err;
}

rp_err rp_system_read(const char *path, rp_system *out) {
    const char *boot = "";
    const char *error = "";
    uint32_t own = RP_AB_NONE;
    rp_arena arena;
    rp_node *root;
    rp_err err;
    *out = (rp_system){0};
    rp_arena_init(&arena, "system", 0);
    RP_TRY(rp_config_read_file(&arena, path, &root));
    RP_TRY(rp_node_string(root, "boot", &boot));
    RP_TRY(rp_node_string(root, "error", &error));
    RP_TRY(rp_node_word(root, "own", slot_words, &own));
    RP_TRY(rp_node_bool(root, "due", &out->due));
    RP_TRY(read_slot(root, "a", &out->slot[RP_AB_A]));
    RP_TRY(read_slot(root, "b", &out->slot[RP_AB_B]));
    RP_TRY(rp_node_done(root));
    out->own = (rp_ab_slot)own;
    (void)snprintf(out->boot, sizeof out->boot, "%.39s", boot);
    (void)snprintf(out->error, sizeof out->error, "%.199s", error);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Only one process writes at a time: a starting agent triggers `publish` while `serve` may run. */
static int lock_state(const rp_system_service *service) {
    char path[RP_AB_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%.900s/lock", service->state);
    const int fd = rp_replace_open(path, O_RDWR);
    return fd >= 0 && flock(fd, LOCK_EX) == 0 ? fd : -1;
}

/* `due` and `error`: result of a wish or a bundle; NULL: keep the previous values. */
static rp_err publish_state(const rp_system_service *service, const bool *due, const char *error) {
    char path[RP_AB_PATH_BYTES];
    rp_system before = {0};
    rp_system now;
    int held = -1;
    rp_err err;
    RP_TRY(rp_folders_make(service->state, 0755));
    held = lock_state(service);
    (void)snprintf(path, sizeof path, "%.900s/state", service->state);
    const bool told = access(path, F_OK) == 0 && rp_system_read(path, &before) == RP_OK &&
                      strcmp(before.boot, service->boot) == 0;
    RP_TRY(rp_system_look(&service->places, &now));
    (void)snprintf(now.boot, sizeof now.boot, "%.39s", service->boot);
    now.due = due ? *due : told && before.due;
    (void)snprintf(now.error, sizeof now.error, "%.199s", error ? error : told ? before.error : "");
    RP_TRY(rp_system_tell(path, &now));
fail:
    if (held >= 0) {
        (void)close(held);
    }
    return err;
}

rp_err rp_system_publish(const rp_system_service *service) {
    return publish_state(service, NULL, NULL);
}

/* ---- wishes ---------------------------------------------------------------------------------- */

/* Opens a plain file in the folder for reading. Returns -1 if it is missing or not a plain file. */
static int open_plain(int folder, const char *name) {
    struct stat st;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static rp_err remove_file(int folder, const char *name) {
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s: cannot be removed: %s", name, strerror(errno));
}

/* Executes a wish; *due: the board's next start uses the slot that is not running. */
static rp_err fulfil_wish(const rp_system_service *service, char *wish, bool *due) {
    char *boot = strchr(wish, ' ');
    if (!boot || strcmp(boot + 1, service->boot) != 0) {
        rp_log_warn("system: dropped a wish from an earlier start of this board");
        return RP_OK;
    }
    *boot = '\0';
    if (strcmp(wish, "validate") == 0 && *due) {
        rp_log_warn("system: another slot starts next, so this one is not validated");
        return RP_OK;
    }
    if (strcmp(wish, "validate") == 0) {
        return rp_system_validate(&service->places);
    }
    if (strcmp(wish, "revert") == 0) {
        const rp_err err = rp_system_revert(&service->places);
        *due = *due || err == RP_OK;
        return err;
    }
    return rp_fail(RP_ERR_USAGE, "unknown wish");
}

static rp_err serve_wish(const rp_system_service *service, int folder, bool *due) {
    char wish[WISH_BYTES] = "";
    const int fd = open_plain(folder, RP_SYSTEM_WISH);
    if (fd < 0) {
        return remove_file(folder, RP_SYSTEM_WISH);
    }
    const ssize_t bytes = read(fd, wish, sizeof wish - 1);
    (void)close(fd);
    wish[bytes > 0 ? bytes : 0] = '\0';
    wish[strcspn(wish, "\n")] = '\0';
    (void)!fulfil_wish(service, wish, due); /* the error is in the log */
    return remove_file(folder, RP_SYSTEM_WISH);
}

static rp_err take_bundle(const rp_system_service *service, FILE *file) {
    uint8_t key[RP_SIGNING_BYTES];
    rp_err err;
    RP_TRY(rp_signing_read_public(service->keys, key));
    RP_TRY(rp_system_install(&service->places, file, RP_SYSTEM_BUNDLE, key, service->board));
fail:
    return err;
}

/* The bundle is removed only after its result is written: until then the agent reports that a
 * system is being written. */
static void serve_bundle(const rp_system_service *service, int folder, bool *due,
                         char error[RP_SYSTEM_TEXT]) {
    const int fd = open_plain(folder, RP_SYSTEM_BUNDLE);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file) {
        const rp_err err = take_bundle(service, file);
        (void)fclose(file);
        (void)snprintf(error, RP_SYSTEM_TEXT, "%.199s", err == RP_OK ? "" : rp_err_message());
        *due = err == RP_OK;
    }
}

rp_err rp_system_serve(const rp_system_service *service) {
    char error[RP_SYSTEM_TEXT] = "";
    char path[RP_AB_PATH_BYTES];
    rp_system before;
    bool due = false;
    rp_err err;
    (void)snprintf(path, sizeof path, "%.900s/state", service->state);
    RP_TRY(rp_system_publish(service));
    RP_TRY(rp_system_read(path, &before));
    due = before.due;
    (void)snprintf(error, sizeof error, "%s", before.error);
    const int folder = open(service->wishes, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0) {
        return errno == ENOENT ? RP_OK
                               : rp_fail(RP_ERR_IO, "%s: %s", service->wishes, strerror(errno));
    }
    const rp_err wished = serve_wish(service, folder, &due);
    serve_bundle(service, folder, &due, error);
    const rp_err told = publish_state(service, &due, error);
    const rp_err dropped = remove_file(folder, RP_SYSTEM_BUNDLE);
    (void)close(folder);
    err = told != RP_OK ? told : wished != RP_OK ? wished : dropped;
fail:
    return err;
}
