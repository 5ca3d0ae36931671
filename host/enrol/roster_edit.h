/* Changes boards' lines in a roster file, as a person would do it: all other lines, comments and
 * the order stay as they were written. */
#ifndef RP_ENROL_ROSTER_EDIT_H
#define RP_ENROL_ROSTER_EDIT_H

#include "run/roster.h"

/* Puts the board at the end of the list, or in the place of the one that has its name, whose labels
 * it keeps, and whose texts where it has none itself (rp_roster_keys); in a group with an address
 * it gets none. A file, or the list in it, that is not there is made. The new text is read once as
 * a roster before it takes the old one's place. errors  USAGE: the file is no roster, or its boards
 * do not begin a line each; what the roster would be refused for (an address or a key twice); IO;
 * MEMORY */
rp_err rp_roster_put(const char *path, const rp_roster_entry *board) RP_MUST_CHECK;
/* Whether rp_roster_put() would take it; writes nothing. errors as above */
rp_err rp_roster_check_put(const char *path, const rp_roster_entry *board) RP_MUST_CHECK;
/* All of them, or none. errors  USAGE: nobody is called so, or nobody would be left; and as above
 */
rp_err rp_roster_remove(const char *path, const char *const *name, uint32_t count) RP_MUST_CHECK;

#endif
