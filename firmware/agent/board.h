/* Board profiles: boards/<name>/board.yaml says which device to take and how much of it, and the
 * tuning.json beside it how. A board's name never appears in code. */
#ifndef RP_AGENT_BOARD_H
#define RP_AGENT_BOARD_H

#include "base/arena.h"

typedef struct {
    const char *name;
    const char *platform, *device; /* parts of names, NULL = any */
    const char *tuning_path;       /* NULL when the board has none yet */
    double memory_fraction;        /* of the device's memory that is ours, (0, 1] */
} rp_board;

/* The folder with the profiles: $RINGPIPE_BOARDS, or where they were installed or built. */
const char *rp_board_folder(void);

/* By name; "auto" looks at the first device and takes the first profile that fits it, or a plain
 * one named "generic". `threads`: what rp_device_open() will get, since "auto" opens a device.
 * errors  USAGE naming the known boards; DEVICE from looking
 * trap    PoCL takes its number of threads from the first call that looks at its devices */
rp_err rp_board_find(rp_arena *arena, const char *name, uint32_t threads,
                     rp_board *out) RP_MUST_CHECK;

#endif
