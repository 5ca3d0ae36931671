/* The texts of kernels/, embedded by kernels/CMakeLists.txt at build time. */
#ifndef RP_DEVICE_SOURCES_H
#define RP_DEVICE_SOURCES_H

#include <stddef.h>

typedef struct {
    const char *name;          /* file name, "gemm_panel.cl"; NULL ends the table */
    const unsigned char *text; /* 0-terminated */
    size_t bytes;
} rp_kernel_source;

extern const rp_kernel_source rp_kernel_sources[];

#endif
