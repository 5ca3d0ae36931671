/* `about.json` of a run folder: how the folder was made, for later readers.
 *
 *   {"version": 1, "plan": "given", "boards": [{"name": "0", "device": "..."}, ..],
 *    "starts": [{"command": "ringpipe train run.yaml", "ringpipe": "0.1.0", "host": "desk",
 *                "date": "2026-11-22T12:00:00Z", "folder": "..."}, ..]}
 *
 * `plan`: `given` by the user (--plan), `made`, or `shared`: made with stages that several boards
 * share; a resumed run starts with a shared plan. `starts`: all starts and resumes, at most
 * RP_ABOUT_STARTS_MAX; the first one is never dropped. */
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
    const char *command; /* NULL: unknown */
    const char *plan;    /* "given", "made" or "shared" */
    const rp_about_board *board;
    uint32_t board_count;
} rp_about;

/* Adds this start to about.json. An invalid file is replaced. errors IO, MEMORY */
rp_err rp_about_write(const char *folder, const rp_about *about) RP_MUST_CHECK;
/* The folder's run has this kind of plan: "given", .. False without a file. */
bool rp_about_plan_is(const char *folder, const char *word);

#endif
