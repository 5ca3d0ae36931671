/* The slots of a whole system, on a card that `ringpipe image` has made: two partitions, of which
 * systemd-boot starts one.
 *
 *   BOOT/loader/entries/ringpipe-a.conf       slot a is good
 *   BOOT/loader/entries/ringpipe-b+3.conf     b is on trial: the loader takes one of its 3 starts
 *                                             away, by the file's name, before it makes it
 *   BOOT/loader/entries/ringpipe-b+0-3.conf   none is left: the loader takes the other slot
 *   BOOT/b/vmlinuz, BOOT/b/initrd             .. and the partition, which has the rest
 *
 * The loader takes the greatest release that has a start left. An entry is whole when its last
 * line, `linux`, is: one that was cut off names no kernel that is there, and the loader passes it
 * over. So a slot is written while it has no entry, and its entry is the last that is written.
 *
 * Nothing is renamed: on FAT a cut within that may leave two names for the same bytes.
 *
 * source  systemd 252, src/boot/efi/boot.c: the order of entries, and their counters */
#ifndef RP_UPDATE_SYSTEM_H
#define RP_UPDATE_SYSTEM_H

#include "update/ab.h"

typedef enum {
    RP_SYSTEM_EMPTY, /* no entry that is whole */
    RP_SYSTEM_GOOD,
    RP_SYSTEM_TRIAL,  /* has starts left, or runs with none left */
    RP_SYSTEM_FAILED, /* none is left, or it was left */
    RP_SYSTEM_STATES
} rp_system_state;

typedef struct {
    rp_system_state state;
    uint64_t release; /* 0: of the card that was made */
    uint32_t starts;  /* TRIAL: that are left */
} rp_system_slot;

enum { RP_SYSTEM_TEXT = 200, RP_SYSTEM_BOOT_ID = 40 };

/* Also what `state` says to an agent, which may look at nothing else of this. */
typedef struct {
    rp_ab_slot own;               /* that runs */
    rp_system_slot slot[3];       /* by rp_ab_slot; [0] is not used */
    bool due;                     /* another start of the board takes the other slot */
    char boot[RP_SYSTEM_BOOT_ID]; /* which start of the board this is */
    char error[RP_SYSTEM_TEXT];   /* why the last bundle was not taken; "" */
} rp_system;

typedef struct {
    const char *boot;         /* the boot partition's folder */
    const char *partition[3]; /* devices by rp_ab_slot; [0] is not used */
    rp_ab_slot own;           /* that runs: A or B */
} rp_system_places;

rp_ab_slot rp_system_other(rp_ab_slot slot);
const char *rp_system_state_name(rp_system_state state); /* "empty", "good", "trial", "failed" */

/* What the entries say. errors  IO */
rp_err rp_system_look(const rp_system_places *places, rp_system *out) RP_MUST_CHECK;

/* Checks a bundle and writes it to the slot that does not run, which gets RP_AB_STARTS starts.
 * `board`: this board's profile; NULL: any.
 * errors  REFUSED: not signed by `key`, for another board, no newer than what runs, no bundle of a
 * system, or what runs is not good; LIMIT: the slot is too small; those of rp_bundle_read(); IO.
 * Behind an error the other slot has no entry, or the one it had before */
rp_err rp_system_install(const rp_system_places *places, FILE *bundle, const char *name,
                         const uint8_t key[RP_SIGNING_BYTES], const char *board) RP_MUST_CHECK;

/* What runs is good; nothing where it is already. errors  IO; USAGE: it has no entry */
rp_err rp_system_validate(const rp_system_places *places) RP_MUST_CHECK;

/* What runs is left for the other slot, at the next start. errors  USAGE: that is not good; IO */
rp_err rp_system_revert(const rp_system_places *places) RP_MUST_CHECK;

/* Is it one for rp_system_install()? */
bool rp_bundle_is_system(const rp_bundle *bundle);

/* ---- between an agent, which has no rights, and who has them ---- */

/* `state`, whole or not at all. errors IO */
rp_err rp_system_tell(const char *path, const rp_system *system) RP_MUST_CHECK;
/* errors  IO: there is none; USAGE with its line */
rp_err rp_system_read(const char *path, rp_system *out) RP_MUST_CHECK;

/* In the folder of an agent's slots: a bundle that it has taken, and a wish, "validate BOOT" or
 * "revert BOOT", where BOOT is rp_system.boot: one of a former start is not fulfilled. */
#define RP_SYSTEM_BUNDLE "system.rpb"
#define RP_SYSTEM_WISH "system-wish"

typedef struct {
    rp_system_places places;
    const char *state;  /* to be told to agents */
    const char *wishes; /* the folder */
    const char *keys;   /* the folder with update.key, which no agent may change */
    const char *board;
    const char *boot; /* which start of the board this is */
} rp_system_service;

/* Tells what there is; `due` and `error` stay as they were told in this start of the board. */
rp_err rp_system_publish(const rp_system_service *service) RP_MUST_CHECK;
/* Fulfils the wish, and takes the bundle; both are gone then, also where they were not fulfilled,
 * and what came of it is told. errors  IO: neither could be told, or not be removed */
rp_err rp_system_serve(const rp_system_service *service) RP_MUST_CHECK;

#endif
