/* Board profiles: boards/<name>/board.yaml says which device to take and how much of it, and the
 * tuning.json beside it how. A board's name never appears in code. */
#ifndef RP_AGENT_BOARD_H
#define RP_AGENT_BOARD_H

#include "base/arena.h"
#include "device/device.h"

enum { RP_BOARDS_MAX = 64 };

typedef struct {
    const char *name;
    bool is_profile;               /* false: "auto" found no profile that fits */
    const char *platform, *device; /* parts of names, NULL = any */
    const char *tuning_path;       /* NULL when the board has none yet */
    const char *cpu_tuning_path;   /* of the profile that has one for CPUs, NULL = none */
    double memory_fraction;        /* of the device's memory that is ours, (0, 1] */
    bool fastest;                  /* of several devices that fit the one that is measured so */
} rp_board;

/* What a profile says to people; texts are "" where it says nothing. */
typedef struct {
    const char *vendor, *model, *soc, *arch, *memory, *network;
    uint32_t tier; /* 1 to 3; 0: not said */
    const char *evidence, *checked;
    const char *route,
        *packages; /* to its OpenCL: what it is, Debian's packages with ' ' between */
    const char *console, *method, *how; /* of flashing */
    const char *kernel;        /* Debian's package with the kernel of its image; "": none is made */
    const char *image_console; /* of that kernel: ttyS0, or several with ',' between */
    uint32_t quirk_count;
} rp_board_about;

/* The folder with the profiles: $RINGPIPE_BOARDS, or where they were installed or built. */
const char *rp_board_folder(void);

/* Names of all profiles in alphabetical order, so that a choice does not depend on the disk; *count
 * is at most `max`. errors MEMORY */
rp_err rp_board_list(rp_arena *arena, char **names, uint32_t max, uint32_t *count) RP_MUST_CHECK;
/* errors  USAGE with file and line */
rp_err rp_board_read_about(rp_arena *arena, const char *name, rp_board_about *out) RP_MUST_CHECK;

/* By name; "auto" takes the first profile whose `machine` is in what this machine says it is, else
 * looks at the first device and takes the first profile that fits it, or a plain one named
 * "generic". The profile's environment is set where the process has nothing in its place: call this
 * before any other thread runs and before OpenCL is asked. `threads`: what rp_device_open() will
 * get, since "auto" opens a device.
 * errors  USAGE naming the known boards; DEVICE from looking
 * trap    PoCL takes its number of threads from the first call that looks at its devices */
rp_err rp_board_find(rp_arena *arena, const char *name, uint32_t threads,
                     rp_board *out) RP_MUST_CHECK;
/* Opens its device. errors  as of rp_device_open() */
rp_err rp_board_open_device(rp_arena *arena, const rp_board *board, uint32_t threads,
                            rp_device **out) RP_MUST_CHECK;

#endif
