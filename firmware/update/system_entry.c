/* Entries of systemd-boot, one per file, whose names count their starts. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"
#include "update/system_own.h"

static const char prefix[] = "ringpipe-";
static const char slot_option[] = " ringpipe.slot=";
enum { PREFIX = sizeof prefix - 1, COUNT_MAX = 99 };

/* ---- names ----------------------------------------------------------------------------------- */

/* Parses "3" of "+3-1": a number of at most two digits. Returns what follows, or NULL. */
static const char *read_count(const char *at, int32_t *out) {
    int32_t value = 0;
    uint32_t digits = 0;
    for (; isdigit((unsigned char)*at) && digits < 3; at++, digits++) {
        value = value * 10 + (*at - '0');
    }
    *out = value;
    return digits > 0 && value <= COUNT_MAX ? at : NULL;
}

/* ringpipe-a.conf, ringpipe-b+3.conf, ringpipe-b+2-1.conf; firmware may change the case. */
static bool read_name(const char *name, rp_entry *out) {
    const char *at = name + PREFIX;
    int32_t done;
    if (strlen(name) >= RP_ENTRY_NAME || strncasecmp(name, prefix, PREFIX) != 0 || !*at) {
        return false;
    }
    *out = (rp_entry){.left = RP_ENTRY_UNCOUNTED};
    memcpy(out->name, name, strlen(name));
    const int letter = tolower((unsigned char)*at++);
    out->slot = letter == 'a' ? RP_AB_A : letter == 'b' ? RP_AB_B : RP_AB_NONE;
    if (*at == '+') {
        at = read_count(at + 1, &out->left);
        at = at && *at == '-' ? read_count(at + 1, &done) : at;
    }
    return at && out->slot != RP_AB_NONE && strcasecmp(at, ".conf") == 0;
}

static rp_err name_file(const char *boot, const char *name, char out[RP_AB_PATH_BYTES]) {
    const int n = snprintf(out, RP_AB_PATH_BYTES, "%s/loader/entries/%s", boot, name);
    return n > 0 && n < RP_AB_PATH_BYTES
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%.100s...: path is too long", boot);
}

/* ---- contents -------------------------------------------------------------------------------- */

static bool read_release(const char *value, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(value, &end, 10);
    return isdigit((unsigned char)value[0]) && *end == '\0' && errno == 0 && *out <= INT64_MAX;
}

/* Removes the slot from the options. Returns false if they do not name exactly this slot. */
static bool take_slot(rp_entry *entry) {
    char *at = strstr(entry->options, slot_option);
    const size_t length = sizeof slot_option - 1;
    if (!at || at[length] != rp_ab_slot_name(entry->slot)[0] ||
        (at[length + 1] != '\0' && at[length + 1] != ' ')) {
        return false;
    }
    memmove(at, at + length + 1, strlen(at + length + 1) + 1);
    return true;
}

/* Parses `text`, which is modified. The last line, `linux`, proves that the text is complete. */
static void read_text(char *text, rp_entry *entry) {
    char kernel[32];
    bool has_release = false;
    bool has_slot = false;
    bool has_kernel = false;
    char *rest = text;
    (void)snprintf(kernel, sizeof kernel, "/%s/vmlinuz", rp_ab_slot_name(entry->slot));
    for (char *line; (line = strsep(&rest, "\n"));) {
        const size_t key = strcspn(line, " \t");
        char *value = line + key + strspn(line + key, " \t");
        line[key] = '\0';
        if (strcmp(line, "version") == 0) {
            has_release = read_release(value, &entry->release);
        } else if (strcmp(line, "options") == 0 && strlen(value) + 1 < RP_ENTRY_TEXT) {
            /* With a leading blank, because the slot may be the first option. */
            (void)snprintf(entry->options, sizeof entry->options, " %s", value);
            has_slot = take_slot(entry);
        } else if (strcmp(line, "linux") == 0) {
            has_kernel = strcmp(value, kernel) == 0;
        }
    }
    entry->whole = has_release && has_slot && has_kernel;
}

static rp_err read_file(const char *boot, rp_entry *entry) {
    char path[RP_AB_PATH_BYTES];
    char text[RP_ENTRY_TEXT];
    rp_err err = name_file(boot, entry->name, path);
    if (err != RP_OK) {
        return err;
    }
    FILE *file = fopen(path, "rbe");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    const bool bad = ferror(file);
    (void)fclose(file);
    if (bad) {
        return rp_fail(RP_ERR_IO, "%s: cannot be read", path);
    }
    text[bytes] = '\0';
    if (strlen(text) == bytes) {
        read_text(text, entry);
    }
    return RP_OK;
}

rp_err rp_entries_read(const char *boot, rp_entries *out) {
    char path[RP_AB_PATH_BYTES];
    DIR *dir = NULL;
    rp_err err;
    out->count = 0;
    RP_TRY(name_file(boot, "", path));
    dir = opendir(path);
    if (!dir) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno)));
    }
    for (const struct dirent *at; (at = readdir(dir));) {
        rp_entry entry;
        if (!read_name(at->d_name, &entry)) {
            continue;
        }
        if (out->count == RP_ENTRIES_MAX) {
            RP_TRY(rp_fail(RP_ERR_LIMIT, "%s: more than %d entries", path, RP_ENTRIES_MAX));
        }
        RP_TRY(read_file(boot, &entry));
        out->entry[out->count++] = entry;
    }
fail:
    if (dir) {
        (void)closedir(dir);
    }
    return err;
}

const rp_entry *rp_entries_of(const rp_entries *entries, rp_ab_slot slot) {
    const rp_entry *best = NULL;
    for (uint32_t i = 0; i < entries->count; i++) {
        const rp_entry *at = &entries->entry[i];
        if (at->slot == slot && at->whole &&
            (!best || (best->left != RP_ENTRY_UNCOUNTED &&
                       (at->left == RP_ENTRY_UNCOUNTED || at->left > best->left)))) {
            best = at;
        }
    }
    return best;
}

/* ---- changes --------------------------------------------------------------------------------- */

rp_err rp_entry_write(const char *boot, rp_ab_slot slot, int32_t left, uint64_t release,
                      const char *options) {
    const char *name = rp_ab_slot_name(slot);
    char text[RP_ENTRY_TEXT + 512];
    char file[RP_ENTRY_NAME];
    char count[16] = "";
    char path[RP_AB_PATH_BYTES];
    rp_err err;
    if (left != RP_ENTRY_UNCOUNTED) {
        (void)snprintf(count, sizeof count, "+%d", (int)left);
    }
    (void)snprintf(file, sizeof file, "%s%s%s.conf", prefix, name, count);
    const int bytes = snprintf(text, sizeof text,
                               "title ringpipe %" PRIu64 " (%s)\n"
                               "sort-key ringpipe\n"
                               "version %" PRIu64 "\n"
                               "options%s%s%s\n"
                               "initrd /%s/initrd\n"
                               "linux /%s/vmlinuz\n",
                               release, name, release, options, slot_option, name, name, name);
    RP_ASSERT(bytes > 0 && bytes < (int)sizeof text);
    RP_TRY(name_file(boot, file, path));
    const int fd = rp_replace_open(path, O_WRONLY | O_TRUNC);
    const bool good = fd >= 0 && write(fd, text, (size_t)bytes) == bytes && fsync(fd) == 0;
    const int code = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!good) {
        return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(code));
    }
    RP_TRY(rp_replace_sync_folder(path));
fail:
    return err;
}

rp_err rp_entries_remove(const char *boot, const rp_entries *entries, rp_ab_slot slot,
                         int32_t left) {
    char path[RP_AB_PATH_BYTES];
    rp_err err;
    for (uint32_t i = 0; i < entries->count; i++) {
        const rp_entry *at = &entries->entry[i];
        if (at->slot != slot || at->left == left) {
            continue;
        }
        RP_TRY(name_file(boot, at->name, path));
        if (unlink(path) != 0 && errno != ENOENT) {
            return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
        }
    }
    RP_TRY(name_file(boot, "", path));
    RP_TRY(rp_replace_sync_folder(path));
fail:
    return err;
}
