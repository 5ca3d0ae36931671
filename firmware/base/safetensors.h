/* Weights and checkpoints as safetensors: 8-byte little-endian header length, JSON header, bytes.
 *
 * source  huggingface/safetensors format description: contiguous, no holes, no duplicate keys,
 *         header starts with '{'
 * Reading checks every offset against the file size before anything is mapped or allocated; writing
 * goes to a temporary beside the target, fsync, rename, fsync of the folder, so a reader sees the
 * old file or the new one. */
#ifndef RP_BASE_SAFETENSORS_H
#define RP_BASE_SAFETENSORS_H

#include "base/arena.h"

enum {
    RP_ST_DIMS_MAX = 6,
    RP_ST_NAME_MAX = 200,
    RP_ST_TENSORS_MAX = 65536,
    RP_ST_HEADER_BYTES_MAX = 16 << 20
};

/* All types of the format. Ringpipe writes and uses F32, F64, U8 and I64; a file may also contain
 * tensors of all types. */
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
/* Plain numbers that rp_tensor_range_of() reads: integers, F16, BF16, F32 and F64. */
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

/* Opens and checks the whole header; "-" is the standard input, a file (base/input.h). The
 * reader lives in `arena`; close it before the arena ends.
 * errors  IO; FORMAT naming the file and what is wrong */
rp_err rp_st_open(rp_arena *arena, const char *path, rp_st_reader **out) RP_MUST_CHECK;
/* The same from memory that stays the caller's (fuzzing, tests). */
rp_err rp_st_open_bytes(rp_arena *arena, const void *bytes, size_t count, const char *name,
                        rp_st_reader **out) RP_MUST_CHECK;
void rp_st_close(rp_st_reader **reader);
uint32_t rp_st_count(const rp_st_reader *reader);
const rp_st_entry *rp_st_entry_at(const rp_st_reader *reader, uint32_t index); /* header order */
const rp_st_entry *rp_st_find(const rp_st_reader *reader, const char *name);
const char *rp_st_meta(const rp_st_reader *reader, const char *key); /* NULL when absent */
/* Pair `index` of the metadata, in the file's order; false behind the last. */
bool rp_st_meta_at(const rp_st_reader *reader, uint32_t index, const char **key,
                   const char **value);
/* The entry's bytes, borrowed until close (the file is mapped read-only). */
const void *rp_st_data(const rp_st_reader *reader, const rp_st_entry *entry);
/* Reads all of a file that was written with checksums; OK for one without. errors FORMAT naming the
 * file, and the tensor that is not what was written */
rp_err rp_st_check_sums(const rp_st_reader *reader) RP_MUST_CHECK;
/* Only its header with the metadata. errors FORMAT: another one, or written without checksums */
rp_err rp_st_check_header(const rp_st_reader *reader) RP_MUST_CHECK;
/* The checksum of such a file, over its header and with it over every tensor; NULL: it has none. */
const char *rp_st_sum(const rp_st_reader *reader);
/* Exactly this shape and only finite values, or an error that names file and tensor. F16, BF16 and
 * F64 are cast: the values then live in the reader's arena, else they are borrowed until close. */
rp_err rp_st_need_f32(const rp_st_reader *reader, const char *name, uint32_t dims,
                      const uint64_t *dim, const float **out) RP_MUST_CHECK;

/* Floats from anywhere, which need not be aligned. false: *at is the first that is not finite. */
bool rp_st_are_finite(const void *floats, uint64_t count, uint64_t *at);

typedef struct rp_st_writer rp_st_writer;

/* Declares all tensors first (order = order in the file), then the bytes may come in any order and
 * in pieces (of one tensor at most 8 separate stretches at a time: writing needs no memory); commit
 * refuses when a byte is missing. `meta` is a NULL-terminated list key, value, key, value... .
 * `summed`: the metadata get checksums of the header and of every tensor, for rp_st_check_sums().
 * Nothing is visible at `path` before commit; the temporary is `path`.tmp. */
rp_err rp_st_create(rp_arena *arena, const char *path, const rp_st_entry *entries, uint32_t count,
                    const char *const *meta, bool summed, rp_st_writer **out) RP_MUST_CHECK;
rp_err rp_st_write(rp_st_writer *writer, uint32_t index, uint64_t offset_bytes, const void *bytes,
                   size_t count) RP_MUST_CHECK;
rp_err rp_st_commit(rp_st_writer **writer) RP_MUST_CHECK;
void rp_st_abandon(rp_st_writer **writer); /* removes the temporary; accepts NULL inside */

#endif
