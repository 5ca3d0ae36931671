/* Board profiles: boards/<name>/board.yaml says which device to use and how much of it; tuning.json
 * next to it says how. No board's name appears in code. */
#ifndef RP_AGENT_BOARD_H
#define RP_AGENT_BOARD_H

#include "base/arena.h"
#include "device/device.h"

enum { RP_BOARDS_MAX = 64 };

typedef struct {
    const char *name;
    bool is_profile;               /* false: "auto" found no matching profile */
    const char *platform, *device; /* parts of names, NULL = any */
    const char *tuning_path;       /* NULL if the board has none yet */
    const char *cpu_tuning_path;   /* of another profile's tuning for CPUs, NULL = none */
    double memory_fraction;        /* usable fraction of the device's memory, (0, 1] */
    /* if several devices match, choose the one measured as fastest */
    bool fastest;
} rp_board;

/* Descriptions in a profile; missing texts are "". */
typedef struct {
    const char *vendor, *model, *soc, *arch, *memory, *network;
    uint32_t tier; /* 1 to 3; 0: missing */
    const char *evidence, *checked;
    const char *route,
        *packages; /* of the OpenCL driver: its name, Debian packages separated by ' ' */
    const char *console, *method, *how; /* of flashing */
    /* Debian package with the kernel of its image; "": no image is made */
    const char *kernel;
    const char *image_console; /* consoles of that kernel: ttyS0, or several separated by ',' */
    uint32_t quirk_count;
} rp_board_about;

/* The folder with the profiles: $RINGPIPE_BOARDS, or the installed or built one. */
const char *rp_board_folder(void);

/* Names of all profiles in alphabetical order, so that a choice does not depend on the file system;
 * *count is at most `max`. errors MEMORY */
rp_err rp_board_list(rp_arena *arena, char **names, uint32_t max, uint32_t *count) RP_MUST_CHECK;
/* errors  USAGE with file and line */
rp_err rp_board_read_about(rp_arena *arena, const char *name, rp_board_about *out) RP_MUST_CHECK;

/* Finds a profile by name. "auto" takes the first profile whose `machine` occurs in this machine's
 * own name, else the first that matches the first device, else a plain profile named "generic".
 * Sets the profile's environment variables that the process does not have, so call it before
 * another thread runs and before the first call of OpenCL. `threads`: the value for
 * rp_device_open(), because "auto" opens a device.
 * errors  USAGE naming the known boards; DEVICE from opening one
 *
 * Trap: PoCL takes its number of threads from the first call that queries its devices. */
rp_err rp_board_find(rp_arena *arena, const char *name, uint32_t threads,
                     rp_board *out) RP_MUST_CHECK;
/* Opens its device. errors as of rp_device_open() */
rp_err rp_board_open_device(rp_arena *arena, const rp_board *board, uint32_t threads,
                            rp_device **out) RP_MUST_CHECK;

#endif
