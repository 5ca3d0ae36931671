#include "federation/ring_now.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "runs/now_place.h"
#include "runs/tail.h"

static const double SILENT_S = 2;
static const int64_t OLD_S = 3; /* the ring replaces the file every second */

/* NULL: missing, old, too long, or no JSON. */
static json_t *load(const char *path) {
    struct stat facts;
    json_t *root = NULL;
    const int fd = rp_tail_open(path);
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size <= RP_NOW_BYTES_MAX &&
        rp_wall_s() - facts.st_mtime <= OLD_S) {
        root = json_loadfd(fd, 0, NULL);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return root;
}

static json_t *load_now(const char *folder) {
    char path[RP_NOW_PATH_BYTES];
    json_t *root = rp_now_runtime_place(folder, false, path) ? load(path) : NULL;
    return root || !rp_now_folder_place(folder, path) ? root : load(path);
}

static bool is_away(const json_t *board) {
    const char *state = json_string_value(json_object_get(board, "state"));
    const json_t *silent = json_object_get(board, "silent_s");
    return state && (strcmp(state, "away") == 0 || json_number_value(silent) >= SILENT_S);
}

static bool is_printable(const char *name) {
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127) {
            return false;
        }
    }
    return name[0] != '\0';
}

void rp_ring_now_list_away(const char *folder, char *names, size_t bytes) {
    json_t *root = load_now(folder);
    size_t used = 0;
    size_t i;
    const json_t *board;
    names[0] = '\0';
    json_array_foreach(json_object_get(root, "boards"), i, board) {
        const char *name = json_string_value(json_object_get(board, "name"));
        const bool listed = is_away(board) && name && is_printable(name);
        if (listed && used + strlen(name) + 3 < bytes) {
            used +=
                (size_t)snprintf(names + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
        }
    }
    json_decref(root);
}
