#include "folder/about_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/replace.h"

enum { PATH_BYTES = 600 };

static bool write_path(const char *folder, const char *end, char path[PATH_BYTES]) {
    return snprintf(path, PATH_BYTES, "%s/about.json%s", folder, end) < PATH_BYTES;
}

/* NULL: no valid file. */
static json_t *load_about(const char *folder) {
    char path[PATH_BYTES];
    json_t *root = write_path(folder, "", path) ? json_load_file(path, 0, NULL) : NULL;
    if (root && !json_is_object(root)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

bool rp_about_plan_is(const char *folder, const char *word) {
    json_t *root = load_about(folder);
    const char *plan = json_string_value(json_object_get(root, "plan"));
    const bool same = plan && strcmp(plan, word) == 0;
    json_decref(root);
    return same;
}

/* NULL: out of memory. */
static json_t *make_start(const rp_about *about) {
    char host[256] = "";
    char here[4096] = "";
    char date[32];
    struct timespec now;
    struct tm tm;
    (void)gethostname(host, sizeof host - 1);
    (void)!getcwd(here, sizeof here);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &tm));
    return json_pack("{s:s?, s:s, s:s, s:s, s:s}", "command", about->command, "ringpipe",
                     RP_VERSION, "host", host, "date", date, "folder", here);
}

static json_t *make_boards(const rp_about *about) {
    json_t *boards = json_array();
    for (uint32_t i = 0; i < about->board_count; i++) {
        const rp_about_board *board = &about->board[i];
        (void)json_array_append_new(
            boards, json_pack("{s:s, s:s?}", "name", board->name, "device", board->device));
    }
    return boards;
}

/* Returns the earlier starts and this one. */
static json_t *add_start(json_t *before, const rp_about *about) {
    json_t *starts = json_is_array(before) ? json_incref(before) : json_array();
    while (json_array_size(starts) >= RP_ABOUT_STARTS_MAX) {
        (void)json_array_remove(starts, 1);
    }
    (void)json_array_append_new(starts, make_start(about));
    return starts;
}

rp_err rp_about_write(const char *folder, const rp_about *about) {
    char path[PATH_BYTES];
    if (!write_path(folder, "", path)) {
        return rp_fail(RP_ERR_USAGE, "%s: path too long", folder);
    }
    json_t *before = load_about(folder);
    json_t *root = json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "plan", about->plan, "boards",
                             make_boards(about), "starts",
                             add_start(json_object_get(before, "starts"), about));
    FILE *file = root ? rp_replace_begin(path) : NULL;
    const bool good =
        file && json_dumpf(root, file, JSON_INDENT(2)) == 0 && fputc('\n', file) != EOF;
    json_decref(root);
    json_decref(before);
    return rp_replace_end(file, path, good);
}
