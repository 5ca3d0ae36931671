/* Two slots for software, of which one is good:
 *
 *   DIR/a, DIR/b   what bundles have brought
 *   DIR/releases   for which profiles (releases.h)
 *   DIR/state      good: a             # or missing: no slot is, the system's own software is
 *                  version: 7          # of what is good
 *                  trial: b            # or missing
 *                  trial_version: 8
 *                  starts: 2           # that the trial has left
 *                  former: 6           # version in the slot that is not good, which a way back
 * takes failed: 5           # the last version that had no start left, for people
 *
 * install -> trial, starts 3 -> start (one less, written before it is made) -> validate -> good
 *                                     `-> no start left: the good one again, `failed` says so
 *
 * One process at a time changes a folder: DIR/lock. */
#ifndef RP_UPDATE_AB_H
#define RP_UPDATE_AB_H

#include "update/bundle.h"

enum { RP_AB_STARTS = 3, RP_AB_PATH_BYTES = 1024 };

typedef enum { RP_AB_NONE, RP_AB_A, RP_AB_B } rp_ab_slot;

typedef struct {
    rp_ab_slot good, trial;
    uint64_t version, trial_version; /* 0: none */
    uint64_t former, failed;         /* 0: none */
    uint32_t starts;
} rp_ab;

/* errors  FORMAT, USAGE: the state file, with its line; IO */
rp_err rp_ab_read(const char *dir, rp_ab *out) RP_MUST_CHECK;

/* Checks a bundle, unpacks it into the slot that is not good, and puts that on trial.
 * `board`: this board's profile; NULL: any. A folder that is missing is made.
 * errors  REFUSED: not signed by `key`, for another board, or no newer than the last good release
 * for the same profile; those of rp_bundle_read(), rp_ab_check_space() and rp_bundle_unpack().
 * After an error no slot is on trial, and the slot that was written to is empty */
rp_err rp_ab_install(const char *dir, const char *bundle, const uint8_t key[RP_SIGNING_BYTES],
                     const char *board, rp_ab *out) RP_MUST_CHECK;

/* Is there room for `incoming` bytes in `dir`, and then for `unpacked` bytes in the slot that is
 * not good, instead of what it has? errors  LIMIT with the numbers; IO; those of rp_ab_read() */
rp_err rp_ab_check_space(const char *dir, uint64_t incoming, uint64_t unpacked) RP_MUST_CHECK;

/* Which slot this start takes, and writes down that it was made; *slot is RP_AB_NONE for the
 * system's own software. errors as of rp_ab_read() */
rp_err rp_ab_start(const char *dir, rp_ab_slot *slot) RP_MUST_CHECK;

/* What runs is good: of the slot that is on trial, and nothing when `slot` is not. */
rp_err rp_ab_validate(const char *dir, rp_ab_slot slot) RP_MUST_CHECK;

/* Away from the trial; without one, back to the slot that was good before.
 * errors  USAGE: there is neither */
rp_err rp_ab_revert(const char *dir) RP_MUST_CHECK;

const char *rp_ab_slot_name(rp_ab_slot slot); /* "a", "b", "none" */

#endif
