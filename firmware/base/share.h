/* Finding the data that was installed with a program. */
#ifndef RP_BASE_SHARE_H
#define RP_BASE_SHARE_H

/* Sets the environment's `variable` to the folder `name` of the data installed with this program,
 * wherever the tree is now. Does nothing if the variable is set or the folder does not exist: a
 * program that was built but not installed uses its source tree. Child processes inherit the
 * variable. Call it first in main(), because changing the environment is not thread-safe. */
void rp_share_announce(const char *variable, const char *name);

#endif
