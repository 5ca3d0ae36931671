/* Checksums of a safetensors file: one per tensor, and one of the header with these. */
#include "base/safetensors_own.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void write_sum(uint64_t sum, char digits[RP_ST_SUM_DIGITS]) {
    char text[RP_ST_SUM_DIGITS + 1];
    (void)snprintf(text, sizeof text, "%016" PRIx64, sum);
    memcpy(digits, text, RP_ST_SUM_DIGITS);
}

void rp_st_blank_sums(uint32_t count, char sum[RP_ST_SUM_DIGITS + 1], char *sums) {
    const size_t digits = (size_t)count * RP_ST_SUM_DIGITS;
    memset(sum, '0', RP_ST_SUM_DIGITS);
    memset(sums, '0', digits);
    sum[RP_ST_SUM_DIGITS] = sums[digits] = '\0';
}

/* The position of a key's value in a header that the writer has made, which puts the metadata first
 * and these keys before all others. Returns NULL if the key is missing. */
static char *find_value(const char *header, size_t bytes, const char *key) {
    char text[64];
    const int length = snprintf(text, sizeof text, "\"%s\":\"", key);
    char *at = memmem(header, bytes, text, (size_t)length);
    return at ? at + length : NULL;
}

rp_err rp_st_add_sums(rp_st_writer *writer) {
    const size_t bytes = (size_t)writer->data_offset - RP_ST_LENGTH_BYTES;
    const uint32_t count = writer->entry_count;
    const rp_st_entry *last = count ? &writer->entries[count - 1] : NULL;
    const size_t total = (size_t)(writer->data_offset + (last ? last->offset + last->bytes : 0));
    char *sum = find_value(writer->header, bytes, RP_ST_SUM_KEY);
    char *sums = find_value(writer->header, bytes, RP_ST_SUMS_KEY);
    char *file = mmap(NULL, total, PROT_READ, MAP_SHARED, writer->fd, 0);
    if (file == MAP_FAILED) {
        return rp_fail(RP_ERR_IO, "%s: cannot be mapped: %s", writer->temporary, strerror(errno));
    }
    for (uint32_t i = 0; i < count; i++) {
        const rp_st_entry *entry = &writer->entries[i];
        write_sum(XXH3_64bits(file + writer->data_offset + entry->offset, (size_t)entry->bytes),
                  sums + (size_t)i * RP_ST_SUM_DIGITS);
    }
    (void)munmap(file, total);
    write_sum(XXH3_64bits(writer->header, bytes), sum);
    return RP_OK;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Checks the header with zeros instead of its own sum, as when the sum was computed. */
static rp_err check_header(const rp_st_reader *reader, const char *sum) {
    const char *header = (const char *)reader->bytes + RP_ST_LENGTH_BYTES;
    const size_t bytes = (size_t)(reader->data - reader->bytes) - RP_ST_LENGTH_BYTES;
    const char *at = find_value(header, bytes, RP_ST_SUM_KEY);
    char zeros[RP_ST_SUM_DIGITS];
    char own[RP_ST_SUM_DIGITS];
    XXH3_state_t state;
    memset(zeros, '0', sizeof zeros);
    const bool fits = at && (size_t)(at - header) + RP_ST_SUM_DIGITS <= bytes;
    bool same = fits && strlen(sum) == RP_ST_SUM_DIGITS && XXH3_64bits_reset(&state) == XXH_OK &&
                XXH3_64bits_update(&state, header, (size_t)(at - header)) == XXH_OK &&
                XXH3_64bits_update(&state, zeros, sizeof zeros) == XXH_OK &&
                XXH3_64bits_update(&state, at + sizeof zeros,
                                   bytes - (size_t)(at - header) - sizeof zeros) == XXH_OK;
    if (same) {
        write_sum(XXH3_64bits_digest(&state), own);
        same = memcmp(own, sum, sizeof own) == 0;
    }
    return same
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: is damaged: the checksum of its header does not match",
                         reader->name);
}

const char *rp_st_sum(const rp_st_reader *reader) {
    return rp_st_meta(reader, RP_ST_SUM_KEY);
}

rp_err rp_st_check_header(const rp_st_reader *reader) {
    const char *sum = rp_st_meta(reader, RP_ST_SUM_KEY);
    return check_header(reader, sum ? sum : "");
}

rp_err rp_st_check_sums(const rp_st_reader *reader) {
    const char *sum = rp_st_meta(reader, RP_ST_SUM_KEY);
    const char *sums = rp_st_meta(reader, RP_ST_SUMS_KEY);
    rp_err err;
    if (!sum && !sums) {
        return RP_OK; /* written without checksums */
    }
    RP_TRY(check_header(reader, sum ? sum : ""));
    if (!sums || strlen(sums) != (size_t)reader->entry_count * RP_ST_SUM_DIGITS) {
        return rp_fail(RP_ERR_FORMAT, "%s: is damaged: checksums of some tensors are missing",
                       reader->name);
    }
    for (uint32_t i = 0; i < reader->entry_count; i++) {
        const rp_st_entry *entry = &reader->entries[i];
        char own[RP_ST_SUM_DIGITS];
        write_sum(XXH3_64bits(rp_st_data(reader, entry), (size_t)entry->bytes), own);
        if (memcmp(own, sums + (size_t)i * RP_ST_SUM_DIGITS, sizeof own) != 0) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: is damaged: the checksum of tensor '%s' does not match",
                           reader->name, entry->name);
        }
    }
fail:
    return err;
}
