/* `ringpipe data fetch`: the official files of a set, checked by SHA-256. */
#ifndef RP_DATA_FETCH_H
#define RP_DATA_FETCH_H

#include <stdint.h>

#include "base/err.h"

/* Brings the files of `set` into the folder `dir` (made when missing) by libcurl; what is there
 * already and right stays. Each file appears whole and checked, or not at all. `from`: an address
 * (https, http or file) in place of the official one, a mirror's; NULL: the official one, by https.
 * The sums are the same.
 *
 * errors  USAGE for a set that has no files; IO when a file cannot be fetched (then the message
 *         says what to put where by hand), or the disk is full; FORMAT when a checksum is wrong
 * source  MNIST: the mirror that torchvision uses. Fashion-MNIST: its repository. CIFAR: its page;
 *         the sum of cifar-100-binary.tar.gz is that of TensorFlow Datasets, checksums of cifar100.
 *         The other sums are of the official files (sizes and MD5 sums agree with theirs). */
rp_err rp_data_fetch(const char *set, const char *from, const char *dir) RP_MUST_CHECK;

/* File `index` of those that a set has in its folder after a fetch; NULL behind the last, and of a
 * set that has none. */
const char *rp_data_fetch_file(const char *set, uint32_t index);

/* Sets that have files to fetch; NULL behind the last. */
const char *rp_data_fetch_name(uint32_t index);

/* Takes the files of a set out of its archive into `dir`. errors USAGE: it has none; IO, FORMAT */
rp_err rp_data_unpack(const char *set, const char *archive, const char *dir) RP_MUST_CHECK;

#endif
