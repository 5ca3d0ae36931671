/* What libFuzzer and replay.c call. */
#ifndef RP_TESTS_FUZZ_FUZZ_H
#define RP_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#endif
