/* Where an installed program finds what was installed with it. */
#ifndef RP_BASE_SHARE_H
#define RP_BASE_SHARE_H

/* Points the environment's `variable` at the folder `name` of the data that was installed with
 * this program, wherever the tree lies now. Nothing changes when the variable is set, or when there
 * is no such folder: a program that was only built uses its source tree. Child processes inherit
 * it. Call it first in main(): the environment is not safe with threads. */
void rp_share_announce(const char *variable, const char *name);

#endif
