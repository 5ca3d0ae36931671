/* The identity of a run: `identity.json` in its folder keeps the id and the newest term, so that
 * boards can tell a controller from one that it has replaced (wire/identity.h).
 *
 *   {"run": "0f3c5a...", "term": 4}         16 hexadecimal digits; 1 to 2^32 - 1
 */
#ifndef RP_RING_IDENTITY_H
#define RP_RING_IDENTITY_H

#include "base/err.h"
#include "wire/identity.h"

/* Begins the next term; without an id in `identity` that of the folder's run, or of a new one:
 * `fresh`, or a random id when that is 0. The file is on the disk when this returns. folder NULL:
 * nothing is kept. errors  FORMAT: identity.json is not one; IO */
rp_err rp_identity_begin_term(const char *folder, uint64_t fresh,
                              rp_run_identity *identity) RP_MUST_CHECK;
/* A board has heard of this term, which the folder does not know: the next start begins above it.
 * folder NULL: nothing is kept. errors  IO */
rp_err rp_identity_keep(const char *folder, const rp_run_identity *newer) RP_MUST_CHECK;
/* Whether the folder's run is still this controller's: what is written now counts. A file that
 * somebody took away says nothing. errors  PEER: another term has begun; FORMAT */
rp_err rp_identity_check(const char *folder, const rp_run_identity *own) RP_MUST_CHECK;

#endif
