/* Temporary folders with the keys of local agents: those of a controller that was killed are
 * removed by the next start. A lock that ends with its process tells them from those in use. */
#ifndef RP_RING_KEY_FOLDER_H
#define RP_RING_KEY_FOLDER_H

/* Marks a new folder as in use until the descriptor is closed. -1: it is not, and stays for
 * ever. */
int rp_key_folder_lock(const char *folder);
/* Accepts -1. */
void rp_key_folder_unlock(const char *folder, int fd);
/* Removes what nobody uses any more of this account's folders ringpipe-XXXXXX in `base`. */
void rp_key_folder_remove_stale(const char *base);

#endif
