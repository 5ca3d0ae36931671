/* `ringpipe data fetch`: the official files of a set, checked by SHA-256. */
#ifndef RP_DATA_FETCH_H
#define RP_DATA_FETCH_H

#include <stdint.h>

#include "base/err.h"

/* Brings the files of `set` into the folder `dir` (made when missing) with the `curl` program; what
 * is there already and right stays. Each file appears whole and checked, or not at all.
 *
 * errors  USAGE for a set that has no files; IO when curl is missing or fails (then the message
 *         says what to put where by hand), or the disk is full; FORMAT when a checksum is wrong
 * source  MNIST: the mirror that torchvision uses. Fashion-MNIST: its repository. CIFAR-10: its
 *         page. The sums are of the official files (sizes and MD5 sums agree with theirs). */
rp_err rp_data_fetch(const char *set, const char *dir) RP_MUST_CHECK;

/* Sets that have files to fetch; NULL behind the last. */
const char *rp_data_fetch_name(uint32_t index);

/* Takes the six .bin files out of cifar-10-binary.tar.gz into `dir`. */
rp_err rp_data_unpack_cifar10(const char *archive, const char *dir) RP_MUST_CHECK;

#endif
