/* Private declarations shared by safetensors*.c. */
#ifndef RP_BASE_SAFETENSORS_OWN_H
#define RP_BASE_SAFETENSORS_OWN_H

#include "base/safetensors.h"

enum { RP_ST_LENGTH_BYTES = 8, RP_ST_STRETCHES_MAX = 8, RP_ST_SUM_DIGITS = 16 };

/* Metadata keys of files with checksums. The first is the sum of the header with zeros instead of
 * this value; the second lists the sums of the tensors in header order. XXH3-64, as hexadecimal
 * digits. */
#define RP_ST_SUM_KEY "xxh3"
#define RP_ST_SUMS_KEY "xxh3_tensors"

struct rp_st_reader {
    rp_arena *arena;
    const char *name;
    const unsigned char *bytes; /* of the whole file */
    size_t count;
    void *mapped; /* NULL when the bytes are the caller's */
    const unsigned char *data;
    rp_st_entry *entries;
    const rp_st_entry **by_name;
    uint32_t entry_count;
    const char **meta; /* key, value, ... */
    uint32_t meta_count;
};

/* Stretches [begin, end) of one tensor that have been written, sorted and not adjacent. */
typedef struct {
    uint64_t begin[RP_ST_STRETCHES_MAX], end[RP_ST_STRETCHES_MAX];
    uint32_t count;
} rp_st_coverage;

struct rp_st_writer {
    const char *path, *temporary;
    int fd;
    uint64_t data_offset;
    char *header; /* padded up to the data */
    bool summed;
    rp_st_entry *entries;
    rp_st_coverage *written;
    uint32_t entry_count;
};

/* safetensors_types.c: the type with this name; false if unknown. */
bool rp_st_type_find(const char *name, rp_st_type *out);
/* Number of elements; false on overflow. */
bool rp_st_count_of(const rp_st_entry *entry, uint64_t *out);
/* Size in bytes (shape times type); false on overflow, or if it is not a whole number. */
bool rp_st_size_of(const rp_st_entry *entry, uint64_t *out);
/* Value `i` of a type for which rp_st_has_values(); the bytes need not be aligned. */
double rp_st_value(rp_st_type type, const uint8_t *bytes, uint64_t i);

/* safetensors_sums.c: placeholder values of both keys, before the tensors are written. `sums` has
 * room for RP_ST_SUM_DIGITS digits a tensor and the terminating 0. */
void rp_st_blank_sums(uint32_t count, char sum[RP_ST_SUM_DIGITS + 1], char *sums);
/* Reads back the written tensors and puts the checksums into the header in memory. errors IO */
rp_err rp_st_add_sums(rp_st_writer *writer) RP_MUST_CHECK;

#endif
