/* .npy files for tests: version 1.0, C order, this machine's byte order. */
#ifndef RP_TESTS_DATA_NPY_FIXTURE_H
#define RP_TESTS_DATA_NPY_FIXTURE_H

#include "fixture.h"

/* `type` as "<f4", `shape` as "(2, 3)". */
static inline void put_npy(const char *name, const char *type, const char *shape,
                           const void *numbers, size_t count) {
    static uint8_t bytes[1 << 16];
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(bytes + 10, ' ', 118);
    const int length =
        snprintf((char *)bytes + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 type, shape);
    assert_true(length > 0 && length < 117);
    bytes[10 + length] = ' ';
    bytes[127] = '\n';
    memcpy(bytes + 128, numbers, count);
    write_file(name, bytes, 128 + count);
}

#endif
