/* A token for one board. */
#ifndef RP_ENROL_ISSUE_H
#define RP_ENROL_ISSUE_H

#include "transport/token.h"

/* Makes one and puts it on the list of `keys_folder`, where it takes the place of an older one of
 * that name. `host`: this host's public key, Z85. `word`: a secret, which is nowhere else. errors
 * those of rp_pending_replace() */
rp_err rp_enrol_issue(const char *keys_folder, const char *host, const char *name, int64_t ends_s,
                      int64_t now_s, char word[RP_TOKEN_WORD]) RP_MUST_CHECK;

#endif
