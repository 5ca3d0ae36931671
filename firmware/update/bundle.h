/* A bundle: the files for one kind of board, signed together.
 *
 *   "RPBUNDLE1\n"   10 bytes
 *   signature       64 bytes, Ed25519 over "ringpipe bundle 1\n" and the manifest
 *   manifest bytes  4 bytes, little endian
 *   manifest        YAML:
 *                     board: generic-arm64
 *                     version: 7             # grows with every bundle for these boards
 *                     software: 0.1.0        # for people
 *                     files:
 *                       - {path: bin/ringpipe-agent, bytes: 397312, mode: 755, sha256: 64 digits}
 *   the files       concatenated, in the manifest's order
 *
 * Nothing of the manifest is used before the signature is checked, and no file is kept whose bytes
 * do not have the manifest's sum. */
#ifndef RP_UPDATE_BUNDLE_H
#define RP_UPDATE_BUNDLE_H

#include <stdio.h>

#include "base/arena.h"
#include "update/signing.h"

enum {
    RP_BUNDLE_MANIFEST_MAX = 1 << 16,
    RP_BUNDLE_FILES_MAX = 256,
    RP_BUNDLE_PATH_MAX = 200,
    RP_BUNDLE_BOARD_MAX = 63,
    RP_BUNDLE_SUM = 32
};
#define RP_BUNDLE_BYTES_MAX (UINT64_C(1) << 30) /* of all files together: a whole system fits */

typedef struct {
    const char *path; /* within the slot: characters A-Z a-z 0-9 . _ + - and /, never leaving it */
    uint64_t bytes;
    uint32_t mode; /* 0644 or 0755 */
    uint8_t sha256[RP_BUNDLE_SUM];
} rp_bundle_file;

typedef struct {
    const char *board, *software;
    uint64_t version; /* >= 1 */
    rp_bundle_file *file;
    uint32_t count;
} rp_bundle;

/* Reads and checks everything before the files; the stream is then at their first byte. `name`: of
 * the file, for messages.
 * errors  REFUSED: another key has signed it, or it was changed; FORMAT: it is not a bundle, is cut
 *         off, or its manifest is invalid; IO; MEMORY */
rp_err rp_bundle_read(rp_arena *arena, FILE *file, const char *name,
                      const uint8_t key[RP_SIGNING_BYTES], rp_bundle *out) RP_MUST_CHECK;

/* After rp_bundle_read(): unpacks the files into an existing, empty folder. When it returns OK they
 * and the folders are synced to the disk.
 * errors  REFUSED: a sum differs; FORMAT: it is cut off, or continues after the last file; IO */
rp_err rp_bundle_unpack(const rp_bundle *bundle, FILE *file, const char *name,
                        const char *folder) RP_MUST_CHECK;

/* Makes a bundle of all plain files below `folder`, in the order of their names. Files that any
 * user may execute get mode 755, others 644.
 * errors  USAGE: an invalid name, no file, a link or device among them; LIMIT; IO */
rp_err rp_bundle_write(const char *path, const char *folder, const char *board, uint64_t version,
                       const char *software, const rp_signing_pair *pair) RP_MUST_CHECK;

/* Whether it is a valid path of a file in a slot. */
bool rp_bundle_is_path(const char *path);

/* Whether it is a valid profile name: 1 to 63 of A-Z a-z 0-9 . _ - */
bool rp_bundle_is_board(const char *board);

/* Bytes of all files together. */
uint64_t rp_bundle_bytes(const rp_bundle *bundle);

#endif
