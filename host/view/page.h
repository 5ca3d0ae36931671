/* The page, embedded: page/index.html, app.js and style.css. */
#ifndef RP_VIEW_PAGE_H
#define RP_VIEW_PAGE_H

#include <stddef.h>

typedef struct {
    const char *path, *type;
    const char *bytes;
    size_t count;
} rp_view_page_file;

extern const rp_view_page_file rp_view_page_files[];
extern const size_t rp_view_page_file_count;

#endif
