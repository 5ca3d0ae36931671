/* The content of a board's tuning.json: the GEMM implementation, its parameters, and defines of
 * programs.
 *
 *   {"gemm": "panel",
 *    "panel": {"rows": 8, "depth": 256, "columns": 128},
 *    "clblast": {"Xgemm": {"MWG": 64, ...}},
 *    "programs": {"pool": "-DWG=32"},
 *    "device": "name", "driver": "version", ...}
 *
 * `ringpipe tune` writes it (tune.h); it is read when the device is opened. A file that names a
 * device or a driver applies only to that; one that names none applies to every device that fits
 * the board's profile. Other unknown keys at the top level are notes of the tuner (measured
 * figures) and ignored; below it they are errors.
 *
 * Tunings made on this machine are in a folder, one file per device and driver, and take precedence
 * over the board's: $RINGPIPE_TUNING, or the user's (~/.config/ringpipe/tuning, $XDG_CONFIG_HOME),
 * then the machine's (/etc/ringpipe/tuning). */
#ifndef RP_DEVICE_TUNING_H
#define RP_DEVICE_TUNING_H

#include "base/arena.h"

enum { RP_TUNING_KERNELS_MAX = 16, RP_TUNING_VALUES_MAX = 24, RP_TUNING_PROGRAMS_MAX = 64 };

/* The two implementations of matrix products, see gemm.h. */
typedef enum { RP_GEMM_CLBLAST, RP_GEMM_PANEL } rp_gemm_choice;
const char *rp_gemm_choice_name(rp_gemm_choice choice); /* "clblast", "panel" */

/* Parameters of one CLBlast kernel ("Xgemm", "XgemmDirect", "GemmRoutine", ...), precision 32. */
typedef struct {
    const char *kernel;
    uint32_t count;
    const char *name[RP_TUNING_VALUES_MAX];
    size_t value[RP_TUNING_VALUES_MAX];
} rp_tuning_clblast;

typedef struct {
    uint32_t rows;    /* of a register tile: 8 or 12 */
    uint32_t depth;   /* of a packed block, 64..1024, a multiple of 16 */
    uint32_t columns; /* of a work-group: 32, 64, 96 or 128 */
} rp_tuning_panel;

typedef struct {
    const char *name;
    const char *defines;
} rp_tuning_program;

typedef struct {
    rp_gemm_choice gemm;
    rp_tuning_panel panel;
    uint32_t clblast_count;
    rp_tuning_clblast clblast[RP_TUNING_KERNELS_MAX];
    uint32_t program_count;
    rp_tuning_program programs[RP_TUNING_PROGRAMS_MAX];
    const char *device, *driver; /* for which it applies; NULL: any */
} rp_tuning;

/* The device and driver of a tuning. */
typedef struct {
    const char *platform, *device, *driver;
} rp_tuning_key;

/* The file in force, and the one that is ignored because it is for another device. */
typedef struct {
    const char *applied; /* NULL: CLBlast's own parameters */
    const char *ignored; /* NULL: no file */
    const char *ignored_device, *ignored_driver;
} rp_tuning_origin;

/* CLBlast with its own parameters. */
rp_tuning rp_tuning_default(void);
/* Texts are stored in `arena`. errors IO; FORMAT naming file and key */
rp_err rp_tuning_read(rp_arena *arena, const char *path, rp_tuning *out) RP_MUST_CHECK;
/* Searches the folders named at the head of this file, then `board_path` (may be NULL), the board's
 * file. Texts are stored in `arena`. errors as rp_tuning_read(), for an existing file */
rp_err rp_tuning_choose(rp_arena *arena, const rp_tuning_key *key, const char *board_path,
                        rp_tuning *out, rp_tuning_origin *origin) RP_MUST_CHECK;
/* The folder to which `tune` writes, the user's or the machine's.
 * errors  USAGE: the user has no home; MEMORY */
rp_err rp_tuning_folder(rp_arena *arena, bool machine, const char **out) RP_MUST_CHECK;
/* The path of this device's file in a folder. */
rp_err rp_tuning_path(rp_arena *arena, const char *folder, const rp_tuning_key *key,
                      char **out) RP_MUST_CHECK;

/* Extra defines of a program, or NULL. */
const char *rp_tuning_defines(const rp_tuning *tuning, const char *program);

#endif
