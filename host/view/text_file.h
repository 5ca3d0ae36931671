/* The metrics as a file, for the textfile collector of Prometheus' node_exporter. */
#ifndef RP_VIEW_TEXT_FILE_H
#define RP_VIEW_TEXT_FILE_H

#include "view/feeds.h"

/* Replaces `folder`/ringpipe.prom. errors IO, MEMORY */
rp_err rp_view_text_file_write(rp_view_feeds *feeds, const char *folder,
                               int64_t now_ns) RP_MUST_CHECK;

#endif
