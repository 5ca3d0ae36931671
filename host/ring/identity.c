#include "ring/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/replace.h"

enum { PATH_BYTES = 600, ID_DIGITS = 16 };

static rp_err choose_id(uint64_t *id) {
    *id = 0;
    while (*id == 0) {
        if (getrandom(id, sizeof *id, 0) != (ssize_t)sizeof *id && errno != EINTR) {
            return rp_fail(RP_ERR_IO, "getrandom: %s", strerror(errno));
        }
    }
    return RP_OK;
}

static bool parse_id(const char *text, uint64_t *id) {
    if (!text || strlen(text) != ID_DIGITS || strspn(text, "0123456789abcdef") != ID_DIGITS) {
        return false;
    }
    *id = strtoull(text, NULL, 16);
    return *id != 0;
}

/* Leaves `identity` unchanged when there is no file. */
static rp_err read_identity(const char *path, rp_run_identity *identity) {
    json_error_t problem;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return RP_OK;
    }
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    const json_int_t term = json_integer_value(json_object_get(root, "term"));
    rp_run_identity read = {.term = (uint32_t)term};
    const bool good = parse_id(json_string_value(json_object_get(root, "run")), &read.id) &&
                      term > 0 && term < UINT32_MAX;
    if (good) {
        *identity = read;
    }
    json_decref(root);
    return good ? RP_OK
                : rp_fail(RP_ERR_FORMAT,
                          "%s: is not a valid identity of a run; remove this file to continue the "
                          "run with a new identity",
                          path);
}

static rp_err write_identity(const char *path, const rp_run_identity *identity) {
    char text[96];
    (void)snprintf(text, sizeof text, "{\"run\": \"%016" PRIx64 "\", \"term\": %" PRIu32 "}\n",
                   identity->id, identity->term);
    FILE *file = rp_replace_begin(path);
    return rp_replace_end(file, path, file && fputs(text, file) >= 0);
}

static rp_err write_path(const char *folder, char path[PATH_BYTES]) {
    const int used = snprintf(path, PATH_BYTES, "%s/identity.json", folder);
    return used < PATH_BYTES ? RP_OK : rp_fail(RP_ERR_USAGE, "%s: path too long", folder);
}

rp_err rp_identity_check(const char *folder, const rp_run_identity *own) {
    char path[PATH_BYTES];
    rp_run_identity there = *own;
    rp_err err;
    RP_TRY(write_path(folder, path));
    RP_TRY(read_identity(path, &there));
    if (there.id != own->id || there.term != own->term) {
        err = rp_fail(RP_ERR_PEER,
                      "%s: another controller has taken over this run (term %" PRIu32
                      ", this is %" PRIu32 "); nothing more is saved here",
                      path, there.term, own->term);
    }
fail:
    return err;
}

rp_err rp_identity_keep(const char *folder, const rp_run_identity *newer) {
    char path[PATH_BYTES];
    rp_err err = RP_OK;
    RP_ASSERT(newer->id != 0 && newer->term > 0);
    RP_TRY(folder ? write_path(folder, path) : RP_OK);
    RP_TRY(folder ? write_identity(path, newer) : RP_OK);
fail:
    return err;
}

rp_err rp_identity_begin_term(const char *folder, uint64_t fresh, rp_run_identity *identity) {
    char path[PATH_BYTES];
    rp_err err = RP_OK;
    RP_TRY(folder ? write_path(folder, path) : RP_OK);
    if (folder && identity->id == 0) {
        RP_TRY(read_identity(path, identity));
    }
    if (identity->id == 0) {
        identity->id = fresh;
        RP_TRY(fresh == 0 ? choose_id(&identity->id) : RP_OK);
        identity->term = 0;
    }
    RP_ASSERT(identity->id != 0 && identity->term < UINT32_MAX);
    identity->term++;
    if (folder) {
        err = write_identity(path, identity);
        identity->term -= err != RP_OK; /* the folder still has the previous one */
    }
fail:
    return err;
}
