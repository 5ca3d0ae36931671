/* Changes lines of boards in a roster file as a text. All other lines, comments and the order stay
 * unchanged. */
#ifndef RP_ENROL_ROSTER_EDIT_H
#define RP_ENROL_ROSTER_EDIT_H

#include "run/roster.h"

/* Adds the board at the end of the list, or replaces the line of the board with its name. A
 * replaced board keeps its labels, and its values of rp_roster_keys that the new entry lacks. The
 * line has no address if the board's group has one. A missing file or list is made. The new text is
 * checked as a roster before it is written. errors  USAGE: the file is not a roster, its boards do
 * not begin a line each, or the new roster would be invalid (repeated address or key); IO; MEMORY
 */
rp_err rp_roster_put(const char *path, const rp_roster_entry *board) RP_MUST_CHECK;
/* Checks rp_roster_put() without writing. errors as rp_roster_put() */
rp_err rp_roster_check_put(const char *path, const rp_roster_entry *board) RP_MUST_CHECK;
/* Removes all named boards, or none. errors  USAGE: an unknown name, or no board would be left; as
 * rp_roster_put() */
rp_err rp_roster_remove(const char *path, const char *const *name, uint32_t count) RP_MUST_CHECK;

#endif
