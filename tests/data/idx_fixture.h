/* Small idx files: `count` pictures of 28 x 28 and their labels. */
#ifndef RP_TESTS_DATA_IDX_FIXTURE_H
#define RP_TESTS_DATA_IDX_FIXTURE_H

#include "fixture.h"

enum { IDX_BYTES_MAX = 16 + 8 * 784 };

static inline void put_big(unsigned char *to, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        to[i] = (unsigned char)(value >> (24 - 8 * i));
    }
}

static inline size_t make_images(unsigned char *to, uint32_t count) {
    put_big(to, 0x803);
    put_big(to + 4, count);
    put_big(to + 8, 28);
    put_big(to + 12, 28);
    for (size_t i = 0; i < count * 784u; i++) {
        to[16 + i] = (unsigned char)(i % 251);
    }
    return 16 + count * 784u;
}

static inline size_t make_labels(unsigned char *to, uint32_t count) {
    put_big(to, 0x801);
    put_big(to + 4, count);
    for (uint32_t i = 0; i < count; i++) {
        to[8 + i] = (unsigned char)((i * 3 + 1) % 10);
    }
    return 8 + count;
}

/* A whole set: training plain, test gzipped. */
static inline void write_idx_set(uint32_t train, uint32_t test) {
    unsigned char bytes[IDX_BYTES_MAX];
    write_file("train-images-idx3-ubyte", bytes, make_images(bytes, train));
    write_file("train-labels-idx1-ubyte", bytes, make_labels(bytes, train));
    write_gz("t10k-images-idx3-ubyte.gz", bytes, make_images(bytes, test));
    write_gz("t10k-labels-idx1-ubyte.gz", bytes, make_labels(bytes, test));
}

#endif
