/* The profiles that a board's releases were made for. Version numbers of different profiles are
 * unrelated, and a board's profile can change when a driver is installed or --board is given.
 *
 *   DIR/releases   a: {board: generic-arm64, version: 7}   # the bundle in slot a
 *                  b: {board: rk3588, version: 2}
 *                  kept: [{board: generic-arm64, version: 7}]   # last good release of former
 *                                                               # profiles of the good slot
 *
 * `state` (ab.h) decides which slot starts. Older agents write it without this file, so a slot's
 * entry counts only while its version is the one in `state`. */
#ifndef RP_UPDATE_RELEASES_H
#define RP_UPDATE_RELEASES_H

#include "update/bundle.h"

enum { RP_RELEASES_KEPT = 16 };

typedef struct {
    char board[RP_BUNDLE_BOARD_MAX + 1]; /* "": unknown */
    uint64_t version;
} rp_release;

typedef struct {
    rp_release slot[3];                /* 1: a, 2: b; [0] is not used */
    rp_release kept[RP_RELEASES_KEPT]; /* newest first; the oldest one is dropped */
    uint32_t kept_count;
} rp_releases;

/* Empty if the file is missing. errors FORMAT, USAGE with its line; IO */
rp_err rp_releases_read(const char *dir, rp_releases *out) RP_MUST_CHECK;
rp_err rp_releases_write(const char *dir, const rp_releases *releases) RP_MUST_CHECK;

void rp_releases_note(rp_releases *releases, uint32_t slot, const char *board, uint64_t version);

/* The release that a bundle for `board` must exceed, 0: any; slot `good` has release `version`.
 * `good` is 0 if no slot is good. */
uint64_t rp_releases_newest(const rp_releases *releases, uint32_t good, uint64_t version,
                            const char *board);

/* Slot `to` with release `to_version` replaces slot `from` as the good one: if their profiles
 * differ, the release of `from` is kept. Returns true if `releases` has changed. */
bool rp_releases_leave(rp_releases *releases, uint32_t from, uint64_t from_version, uint32_t to,
                       uint64_t to_version);

#endif
