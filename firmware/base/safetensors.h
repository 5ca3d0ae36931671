/* Weights and checkpoints as safetensors: 8-byte little-endian header length, JSON header, bytes.
 *
 * source  huggingface/safetensors format description: contiguous, no holes, no duplicate keys,
 *         header starts with '{'
 *
 * Reading checks every offset against the file size before anything is mapped or allocated. Writing
 * goes to a temporary file in the same folder, which is synced and renamed before the folder is
 * synced, so a reader sees either the old file or the new one. */
#ifndef RP_BASE_SAFETENSORS_H
#define RP_BASE_SAFETENSORS_H

#include "base/arena.h"

enum {
    RP_ST_DIMS_MAX = 6,
    RP_ST_NAME_MAX = 200,
    RP_ST_TENSORS_MAX = 65536,
    RP_ST_HEADER_BYTES_MAX = 16 << 20
};

#define RP_ST_META_KEY "__metadata__" /* no tensor has this name */

/* All types of the format. Ringpipe writes and uses F32, F64, U8 and I64; the reader also accepts
 * files with tensors of further types. */
typedef enum {
    RP_ST_F32,
    RP_ST_I32,
    RP_ST_I64,
    RP_ST_U8,
    RP_ST_F64,
    RP_ST_F16,
    RP_ST_BF16,
    RP_ST_I8,
    RP_ST_I16,
    RP_ST_U16,
    RP_ST_U32,
    RP_ST_U64,
    RP_ST_BOOL,
    RP_ST_C64,
    RP_ST_F8_E5M2,
    RP_ST_F8_E4M3,
    RP_ST_F8_E8M0,
    RP_ST_F6_E2M3,
    RP_ST_F6_E3M2,
    RP_ST_F4,
    RP_ST_TYPES
} rp_st_type;

const char *rp_st_type_name(rp_st_type type); /* "F32", "BF16", ... as in the file */
/* Whether rp_tensor_range_of() can read the values: integers, F16, BF16, F32 and F64. */
bool rp_st_has_values(rp_st_type type);
bool rp_st_is_float(rp_st_type type); /* F16, BF16, F32, F64 */

typedef struct {
    const char *name;
    rp_st_type type;
    uint32_t dims;
    uint64_t dim[RP_ST_DIMS_MAX];
    uint64_t offset; /* of the first byte, from the end of the header */
    uint64_t bytes;
} rp_st_entry;

typedef struct rp_st_reader rp_st_reader;

/* Opens a file and checks its whole header; "-" is the standard input (base/input.h). The reader is
 * stored in `arena`; close it before the arena ends.
 * errors  IO; FORMAT naming the file and what is wrong */
rp_err rp_st_open(rp_arena *arena, const char *path, rp_st_reader **out) RP_MUST_CHECK;
/* Like rp_st_open(), from memory that the caller keeps until close (fuzzing, tests). */
rp_err rp_st_open_bytes(rp_arena *arena, const void *bytes, size_t count, const char *name,
                        rp_st_reader **out) RP_MUST_CHECK;
void rp_st_close(rp_st_reader **reader);
uint32_t rp_st_count(const rp_st_reader *reader);
const rp_st_entry *rp_st_entry_at(const rp_st_reader *reader, uint32_t index); /* header order */
const rp_st_entry *rp_st_find(const rp_st_reader *reader, const char *name);
const char *rp_st_meta(const rp_st_reader *reader, const char *key); /* NULL when absent */
/* Pair `index` of the metadata, in file order; false after the last pair. */
bool rp_st_meta_at(const rp_st_reader *reader, uint32_t index, const char **key,
                   const char **value);
/* The entry's bytes, borrowed until close (the file is mapped read-only). */
const void *rp_st_data(const rp_st_reader *reader, const rp_st_entry *entry);
/* Reads a whole file and checks its checksums. Returns OK if it was written without checksums.
 * errors  FORMAT naming the file and the damaged tensor */
rp_err rp_st_check_sums(const rp_st_reader *reader) RP_MUST_CHECK;
/* Checks only the header with the metadata.
 * errors  FORMAT: the header is damaged, or the file was written without checksums */
rp_err rp_st_check_header(const rp_st_reader *reader) RP_MUST_CHECK;
/* The header's checksum, which covers the checksum of every tensor; NULL if the file has none. */
const char *rp_st_sum(const rp_st_reader *reader);
/* Returns the values of a tensor that must have exactly this shape and only finite values; errors
 * name file and tensor. F16, BF16 and F64 are converted into the reader's arena; F32 values are
 * borrowed until close if they are aligned. */
rp_err rp_st_need_f32(const rp_st_reader *reader, const char *name, uint32_t dims,
                      const uint64_t *dim, const float **out) RP_MUST_CHECK;

/* Whether all floats are finite; they need not be aligned. If not, *at is the index of the first
 * that is not. */
bool rp_st_are_finite(const void *floats, uint64_t count, uint64_t *at);

typedef struct rp_st_writer rp_st_writer;

/* Creates a file. All tensors are declared first, in file order; their bytes may then be written in
 * any order and in pieces, with at most 8 separate stretches of one tensor at a time, because the
 * writer needs no further memory. Commit fails if a byte is missing. `meta` is a NULL-terminated
 * list key, value, key, value... If `summed`, the metadata get checksums of the header and of every
 * tensor, for rp_st_check_sums(). Nothing is visible at `path` before commit; the temporary file is
 * `path`.tmp. */
rp_err rp_st_create(rp_arena *arena, const char *path, const rp_st_entry *entries, uint32_t count,
                    const char *const *meta, bool summed, rp_st_writer **out) RP_MUST_CHECK;
rp_err rp_st_write(rp_st_writer *writer, uint32_t index, uint64_t offset_bytes, const void *bytes,
                   size_t count) RP_MUST_CHECK;
rp_err rp_st_commit(rp_st_writer **writer) RP_MUST_CHECK;
void rp_st_abandon(rp_st_writer **writer); /* Removes the temporary file; *writer may be NULL. */

#endif
