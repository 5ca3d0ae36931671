/* Where now.json is, the present state of an active run. Its controller replaces it every second,
 * so it is in memory while the run is active, and in the run folder after the end. */
#ifndef RP_RUNS_NOW_PLACE_H
#define RP_RUNS_NOW_PLACE_H

#include <stdbool.h>

enum { RP_NOW_PATH_BYTES = 4096, RP_NOW_BYTES_MAX = 65536 };

/* Path below XDG_RUNTIME_DIR for this run folder. `make`: makes the folder of such files.
 * false: there is no usable XDG_RUNTIME_DIR, or no run folder. */
bool rp_now_runtime_place(const char *folder, bool make, char path[static RP_NOW_PATH_BYTES]);
/* Path in the run folder. false: it is too long. */
bool rp_now_folder_place(const char *folder, char path[static RP_NOW_PATH_BYTES]);

#endif
