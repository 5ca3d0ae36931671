/* The identity of a run. `identity.json` in its folder stores the run's id and newest term, so that
 * boards can tell a controller from one that it has replaced (wire/identity.h).
 *
 *   {"run": "0f3c5a...", "term": 4}         16 hexadecimal digits; 1 to 2^32 - 1 */
#ifndef RP_RING_IDENTITY_H
#define RP_RING_IDENTITY_H

#include "base/err.h"
#include "wire/identity.h"

/* Starts the next term. If `identity` has no id, it gets that of the folder's run, or else `fresh`,
 * or a random id if that is 0. The file is on disk when this returns. folder NULL: nothing is
 * stored. errors FORMAT: identity.json is invalid; IO */
rp_err rp_identity_begin_term(const char *folder, uint64_t fresh,
                              rp_run_identity *identity) RP_MUST_CHECK;
/* Stores a newer term that a board has reported, so that the next start exceeds it. folder NULL:
 * nothing is stored. errors IO */
rp_err rp_identity_keep(const char *folder, const rp_run_identity *newer) RP_MUST_CHECK;
/* Checks that the folder still belongs to this controller. A missing file is accepted. errors PEER:
 * another controller has started a newer term; FORMAT */
rp_err rp_identity_check(const char *folder, const rp_run_identity *own) RP_MUST_CHECK;

#endif
