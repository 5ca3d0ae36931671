/* The system slots of a card that `ringpipe image` has made: two partitions with whole systems, of
 * which systemd-boot starts one.
 *
 *   BOOT/loader/entries/ringpipe-a.conf       slot a is good
 *   BOOT/loader/entries/ringpipe-b+3.conf b is on trial with 3 starts left: the loader counts
 *                                             down in the file's name before each start
 *   BOOT/loader/entries/ringpipe-b+0-3.conf   no start is left: the loader starts slot a
 *   BOOT/b/vmlinuz, BOOT/b/initrd             kernel of b; the partition has the rest
 *
 * The loader starts the greatest release that has a start left. An entry is complete when its last
 * line, `linux`, is: one that was cut off names no existing kernel, and the loader skips it. So a
 * slot is written while it has no entry, and its entry is written last.
 *
 * Nothing is renamed, because on FAT a power cut during a rename may leave two names for the same
 * bytes.
 *
 * source  systemd 252, src/boot/efi/boot.c: the order of entries, and their counters */
#ifndef RP_UPDATE_SYSTEM_H
#define RP_UPDATE_SYSTEM_H

#include "update/ab.h"

typedef enum {
    RP_SYSTEM_EMPTY, /* no complete entry */
    RP_SYSTEM_GOOD,
    RP_SYSTEM_TRIAL,  /* has starts left, or is running its last start */
    RP_SYSTEM_FAILED, /* no start is left, or it was reverted */
    RP_SYSTEM_STATES
} rp_system_state;

typedef struct {
    rp_system_state state;
    uint64_t release; /* 0: of the original card */
    uint32_t starts;  /* TRIAL: starts left */
} rp_system_slot;

enum { RP_SYSTEM_TEXT = 200, RP_SYSTEM_BOOT_ID = 40 };

/* Also the content of `state`, all that an agent can read of this. */
typedef struct {
    rp_ab_slot own;               /* the running slot */
    rp_system_slot slot[3];       /* by rp_ab_slot; [0] is not used */
    bool due;                     /* the board's next start uses the slot that is not running now */
    char boot[RP_SYSTEM_BOOT_ID]; /* ID of the board's current boot */
    char error[RP_SYSTEM_TEXT];   /* why the last bundle was refused; "" */
} rp_system;

typedef struct {
    const char *boot;         /* the boot partition's folder */
    const char *partition[3]; /* devices by rp_ab_slot; [0] is not used */
    rp_ab_slot own;           /* the running slot: A or B */
} rp_system_places;

rp_ab_slot rp_system_other(rp_ab_slot slot);
const char *rp_system_state_name(rp_system_state state); /* "empty", "good", "trial", "failed" */

/* Reads the entries. errors IO */
rp_err rp_system_look(const rp_system_places *places, rp_system *out) RP_MUST_CHECK;

/* Checks a bundle and writes it to the slot that is not running, which gets RP_AB_STARTS starts.
 * `board`: this board's profile; NULL: any.
 * errors  REFUSED: not signed by `key`, for another board, not newer than the running system, not a
 *         system bundle, or the running system is not good; LIMIT: the slot is too small; those of
 *         rp_bundle_read(); IO. After an error that slot has no entry, or its previous one */
rp_err rp_system_install(const rp_system_places *places, FILE *bundle, const char *name,
                         const uint8_t key[RP_SIGNING_BYTES], const char *board) RP_MUST_CHECK;

/* Marks the running system as good, if it is not already. errors IO; USAGE: it has no entry */
rp_err rp_system_validate(const rp_system_places *places) RP_MUST_CHECK;

/* Makes the next start use the slot that is not running. errors USAGE: it is not good; IO */
rp_err rp_system_revert(const rp_system_places *places) RP_MUST_CHECK;

/* Whether it is a bundle for rp_system_install(). */
bool rp_bundle_is_system(const rp_bundle *bundle);

/* ---- between an unprivileged agent and the privileged service ---- */

/* Writes `state`, as a whole or not at all. errors IO */
rp_err rp_system_tell(const char *path, const rp_system *system) RP_MUST_CHECK;
/* errors  IO: the file is missing; USAGE with its line */
rp_err rp_system_read(const char *path, rp_system *out) RP_MUST_CHECK;

/* Files in the folder of an agent's slots: a bundle that it has received, and a wish, "validate
 * BOOT" or "revert BOOT", where BOOT is rp_system.boot: a wish from an earlier boot is dropped. */
#define RP_SYSTEM_BUNDLE "system.rpb"
#define RP_SYSTEM_WISH "system-wish"

typedef struct {
    rp_system_places places;
    const char *state;  /* folder of the state for agents */
    const char *wishes; /* folder of the wishes */
    const char *keys;   /* the folder with update.key, which no agent may change */
    const char *board;
    const char *boot; /* ID of the board's current boot */
} rp_system_service;

/* Writes the present state; `due` and `error` keep the values written during this boot. */
rp_err rp_system_publish(const rp_system_service *service) RP_MUST_CHECK;
/* Processes the wish and the bundle; removes both, even if they fail, and writes the result to the
 * state. errors IO: the state could not be written, or a file not removed */
rp_err rp_system_serve(const rp_system_service *service) RP_MUST_CHECK;

#endif
