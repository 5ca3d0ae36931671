/* Which profile the releases of a board were made for. Numbers of different profiles have nothing
 * to do with each other, and a board's profile can change: a driver is installed, --board is given.
 *
 *   DIR/releases   a: {board: generic-arm64, version: 7}   # the bundle in slot a
 *                  b: {board: rk3588, version: 2}
 *                  kept: [{board: generic-arm64, version: 7}]   # last good release of profiles
 *                                                               # that the good slot has left
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

/* Empty when the file is missing. errors  FORMAT, USAGE with its line; IO */
rp_err rp_releases_read(const char *dir, rp_releases *out) RP_MUST_CHECK;
rp_err rp_releases_write(const char *dir, const rp_releases *releases) RP_MUST_CHECK;

void rp_releases_note(rp_releases *releases, uint32_t slot, const char *board, uint64_t version);

/* The release that a bundle for `board` has to exceed, 0: any; slot `good` has release `version`.
 * `good` is 0 when no slot is good. */
uint64_t rp_releases_newest(const rp_releases *releases, uint32_t good, uint64_t version,
                            const char *board);

/* Slot `to` with release `to_version` becomes the good one instead of slot `from`: when their
 * profiles differ, the release of `from` is kept. True: `releases` has changed. */
bool rp_releases_leave(rp_releases *releases, uint32_t from, uint64_t from_version, uint32_t to,
                       uint64_t to_version);

#endif
