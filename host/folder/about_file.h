/* `about.json` of a run folder: what made it, for whoever finds the folder later.
 *
 *   {"version": 1, "plan": "given", "boards": [{"name": "0", "device": "..."}, ..],
 *    "starts": [{"command": "ringpipe train run.yaml", "ringpipe": "0.1.0", "host": "desk",
 *                "date": "2026-11-22T12:00:00Z", "folder": "..."}, ..]}
 *
 * `plan`: `given` by somebody (--plan), `made`, or `shared`: made, with stages that several boards
 * share, and a run that is resumed begins with it. `starts`: the first and every one that went on,
 * RP_ABOUT_STARTS_MAX at most, of which the oldest stays. */
#ifndef RP_FOLDER_ABOUT_FILE_H
#define RP_FOLDER_ABOUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_ABOUT_STARTS_MAX = 100 };

typedef struct {
    const char *name, *device;
} rp_about_board;

typedef struct {
    const char *command; /* NULL: not known */
    const char *plan;    /* one of the words above */
    const rp_about_board *board;
    uint32_t board_count;
} rp_about;

/* Adds this start. A file that is not one of these is begun anew. errors IO, MEMORY */
rp_err rp_about_write(const char *folder, const rp_about *about) RP_MUST_CHECK;
/* Whether the folder's run has such a plan: "given", .. False also without a file. */
bool rp_about_plan_is(const char *folder, const char *word);

#endif
