/* `ringpipe view`: shows runs in a browser, as metrics, and on a terminal. It only reads. */
#ifndef RP_VIEW_VIEW_H
#define RP_VIEW_VIEW_H

#include "base/arena.h"

/* Texts are borrowed. */
typedef struct {
    const char *const *dir; /* [dir_count] folders of runs; none: this account's active runs */
    uint32_t dir_count;
    const char *listen;      /* "127.0.0.1:7180" */
    const char *token_file;  /* NULL: none */
    const char *text_folder; /* gets the metrics as a file; NULL: none */
    bool text;               /* prints the state instead of serving it */
    int stop_fd;             /* readable when the program is to end */
} rp_view_options;

/* Returns when stop_fd is readable; with `text` also when no run is active.
 * errors USAGE: an option, a folder; IO: the address, the terminal, the text file at first */
rp_err rp_view_show(rp_arena *arena, const rp_view_options *options) RP_MUST_CHECK;

#endif
