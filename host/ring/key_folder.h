/* Temporary folders with the keys of local agents. If a controller was killed, the next start
 * removes its folder. A lock, which ends with its process, marks folders in use. */
#ifndef RP_RING_KEY_FOLDER_H
#define RP_RING_KEY_FOLDER_H

/* Locks a new folder until the descriptor is closed. -1: it could not be locked, and is never
 * removed. */
int rp_key_folder_lock(const char *folder);
/* Accepts -1. */
void rp_key_folder_unlock(const char *folder, int fd);
/* Removes this account's folders ringpipe-XXXXXX in `base` that no process has locked. */
void rp_key_folder_remove_stale(const char *base);

#endif
