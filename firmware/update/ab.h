/* Two slots for software, of which one is good:
 *
 *   DIR/a, DIR/b   content of bundles
 *   DIR/releases   the profiles they are for (releases.h)
 *   DIR/state      good: a             # or missing: no slot is good, the system's own starts
 *                  version: 7          # of the good slot
 *                  trial: b            # or missing
 *                  trial_version: 8
 *                  starts: 2           # left for the trial
 *                  former: 6           # version in the slot that is not good, for a revert
 *                  failed: 5           # the last version that used up its starts, for people
 *
 * install -> trial, starts 3 -> start (one less, written before it is made) -> validate -> good
 *                                     `-> no start left: the good one again, `failed` records it
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

/* Checks a bundle, unpacks it into the slot that is not good, and puts that on trial. `board`: this
 * board's profile; NULL: any. Creates a missing folder.
 * errors  REFUSED: not signed by `key`, for another board, or not newer than the last good release
 *         for the same profile; those of rp_bundle_read(), rp_ab_check_space() and
 *         rp_bundle_unpack(). After an error no slot is on trial, and the slot that was written to
 *         is empty */
rp_err rp_ab_install(const char *dir, const char *bundle, const uint8_t key[RP_SIGNING_BYTES],
                     const char *board, rp_ab *out) RP_MUST_CHECK;

/* Checks the space for `incoming` bytes in `dir`, and then for `unpacked` bytes in the slot that is
 * not good, after its content is removed.
 * errors  LIMIT with the numbers; IO; those of rp_ab_read() */
rp_err rp_ab_check_space(const char *dir, uint64_t incoming, uint64_t unpacked) RP_MUST_CHECK;

/* Chooses the slot of this start and records the start; *slot is RP_AB_NONE for the system's own
 * software. errors as of rp_ab_read() */
rp_err rp_ab_start(const char *dir, rp_ab_slot *slot) RP_MUST_CHECK;

/* Marks the slot on trial as good; does nothing if `slot` is not on trial. */
rp_err rp_ab_validate(const char *dir, rp_ab_slot slot) RP_MUST_CHECK;

/* Ends the trial; without one, returns to the slot that was good before.
 * errors  USAGE: there is neither */
rp_err rp_ab_revert(const char *dir) RP_MUST_CHECK;

const char *rp_ab_slot_name(rp_ab_slot slot); /* "a", "b", "none" */

#endif
