/* Comparisons that a NaN can not pass, over cmocka. Include this instead of cmocka.h. */
#ifndef RP_TESTS_EXPECT_H
#define RP_TESTS_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

/* Of a test's many cases: `few` of them under a sanitizer, which is there for the code and not for
 * the numbers, and takes ten times as long. */
static inline uint32_t trials(uint32_t all, uint32_t few) {
#ifdef RP_SANITIZED
    (void)all;
    return few;
#else
    (void)few;
    return all;
#endif
}

/* Finite by its bits: true under any compiler flag. */
static inline int expect_finite_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & UINT64_C(0x7ff0000000000000)) != UINT64_C(0x7ff0000000000000);
}

/* Asks "is it close", so that a NaN or an infinity is not: |got - want| <= abs + rel * |want|. */
static inline int expect_is_close(double got, double want, double rel, double abs_tolerance) {
    if (!expect_finite_bits(got) || !expect_finite_bits(want)) {
        return 0;
    }
    double difference = got > want ? got - want : want - got;
    double size = want > 0 ? want : -want;
    return difference <= abs_tolerance + rel * size;
}

static inline void expect_close_at(double got, double want, double rel, double abs_tolerance,
                                   const char *what, size_t index, const char *file, int line) {
    if (!expect_is_close(got, want, rel, abs_tolerance)) {
        print_error("%s[%zu]: got %.9g, want %.9g (rel %g, abs %g)\n", what, index, got, want, rel,
                    abs_tolerance);
        _fail(file, line);
    }
}

#define expect_close(got, want, rel, abs_tolerance)                                                \
    expect_close_at((double)(got), (double)(want), (rel), (abs_tolerance), #got, 0, __FILE__,      \
                    __LINE__)

#define expect_close_all(got, want, count, rel, abs_tolerance)                                     \
    do {                                                                                           \
        for (size_t expect_i = 0; expect_i < (size_t)(count); expect_i++) {                        \
            expect_close_at((double)(got)[expect_i], (double)(want)[expect_i], (rel),              \
                            (abs_tolerance), #got, expect_i, __FILE__, __LINE__);                  \
        }                                                                                          \
    } while (0)

#define expect_ok(call) assert_int_equal((call), RP_OK)
#define expect_err(call, wanted) assert_int_equal((call), (wanted))

/* RP_SMALL in the environment: the kernels are interpreted (.ci/oclgrind) and very slow. A test
 * then keeps to the smallest sizes that still walk every path of ours. */
static inline int expect_small(void) {
    return getenv("RP_SMALL") != NULL;
}

/* Say why and skip the whole program (CTest reads 77). */
#define skip_program(...)                                                                          \
    do {                                                                                           \
        printf("SKIP: ");                                                                          \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        exit(77);                                                                                  \
    } while (0)

#endif
