/* Files of records of CIFAR's binary version: one or two labels, 1024 red, 1024 green, 1024 blue
 * bytes. Private to the room.
 *
 * source  https://www.cs.toronto.edu/~kriz/cifar.html */
#ifndef RP_DATA_CIFAR_H
#define RP_DATA_CIFAR_H

#include "base/arena.h"

enum { RP_CIFAR_SIDE = 32, RP_CIFAR_PIXELS = 3 * RP_CIFAR_SIDE * RP_CIFAR_SIDE };

typedef struct {
    uint8_t *records;
    uint32_t count, record_bytes;
} rp_cifar_file;

/* Opens FOLDER/NAME, or FOLDER/SUB/NAME, where the official archive unpacks it. Checks the file's
 * size before memory is taken, and that label i of every record is below most[i]; `most` ends with
 * a 0. errors  IO, FORMAT with the file's name */
rp_err rp_cifar_open(rp_arena *arena, const char *folder, const char *sub, const char *name,
                     const uint32_t *most, rp_cifar_file *out) RP_MUST_CHECK;

/* Reads the lines of a file of names; *out NULL: the file is missing, or has not `count` lines. */
rp_err rp_cifar_names(rp_arena *arena, const char *folder, const char *sub, const char *name,
                      uint32_t count, const char *const **out) RP_MUST_CHECK;

#endif
