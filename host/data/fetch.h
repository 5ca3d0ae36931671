/* `ringpipe data fetch`: gets the official files of a set, checked by SHA-256. */
#ifndef RP_DATA_FETCH_H
#define RP_DATA_FETCH_H

#include <stdint.h>

#include "base/err.h"

/* Downloads the files of `set` to the folder `dir`, which is made if missing. Correct files that
 * exist already are kept. Each file appears complete and checked, or not at all. `from`: address of
 * a mirror (https, http or file) with the same files; NULL: the official address, by https.
 *
 * errors  USAGE: the set has no files; IO: a file cannot be fetched (the message says what to do by
 *         hand), or the disk is full; FORMAT: wrong checksum
 * source  MNIST: the mirror that torchvision uses. Fashion-MNIST: its repository. CIFAR: its page;
 *         the sum of cifar-100-binary.tar.gz is that of TensorFlow Datasets, checksums of cifar100.
 *         The other sums are of the official files (sizes and MD5 sums agree with theirs). */
rp_err rp_data_fetch(const char *set, const char *from, const char *dir) RP_MUST_CHECK;

/* Name of file `index` in the folder of a set after a fetch; NULL: no such file, or unknown set. */
const char *rp_data_fetch_file(const char *set, uint32_t index);

/* Name of set `index` that has files to fetch; NULL after the last. */
const char *rp_data_fetch_name(uint32_t index);

/* Unpacks the files of a set from its archive to `dir`. errors USAGE: the set has no archive; IO,
 * FORMAT */
rp_err rp_data_unpack(const char *set, const char *archive, const char *dir) RP_MUST_CHECK;

#endif
