/* The cache of board profiles, shared by runs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/log.h"
#include "base/replace.h"
#include "measure/measure_own.h"

enum { PATH_BYTES = 4096 };

/* FNV-1a, by G. Fowler, L. C. Noll, K.-P. Vo */
static uint64_t add_bytes(uint64_t key, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        key = (key ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return key;
}

static uint64_t add_method(uint64_t key, const rp_method *method) {
    key = add_bytes(key, method->kind->name, strlen(method->kind->name) + 1);
    return add_bytes(key, &method->weights, sizeof method->weights);
}

/* The name is that of the model; its hash covers the board's device with driver and tuning, the
 * version, the sizes, and all else that affects the duration of ops. */
static void write_path(const rp_measure *m, uint32_t board, char *out) {
    static const char version[] = RP_VERSION;
    const rp_runfile *run = m->needs.run;
    const rp_profile *profile = &m->profile;
    const char *kind = m->needs.ring->board[board].hardware.kind;
    uint32_t codec[RP_MEASURED_CODECS];
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    key = add_bytes(key, kind, strlen(kind) + 1);
    key = add_bytes(key, version, sizeof version);
    key = add_bytes(key, profile->sizes, profile->size_count * sizeof *profile->sizes);
    key = add_bytes(key, run->optim.kind->name, strlen(run->optim.kind->name) + 1);
    key = add_method(key, &run->method);
    for (uint32_t i = 1; i < run->schedules.count; i++) {
        key = add_method(key, &run->schedules.at[i].method);
    }
    key = add_bytes(key, codec, rp_measure_list_codecs(m, codec) * sizeof *codec);
    (void)snprintf(out, PATH_BYTES, "%s/%s-%016" PRIx64 ".json", m->needs.profiles, profile->digest,
                   key);
}

static bool may_keep(const rp_measure *m, uint32_t board) {
    const rp_ring *ring = m->needs.ring;
    return m->needs.profiles && ring->board[board].hardware.kind[0] &&
           (ring->features & RP_WIRE_FEATURE_SIZES);
}

/* A file that cannot be read counts as missing, and is replaced later. */
rp_err rp_profile_cache_read(rp_measure *m, uint32_t board) {
    char path[PATH_BYTES];
    rp_profile found;
    RP_ASSERT(board < m->kept.board_count && board < m->board_count);
    m->board[board].probed = true;
    if (!may_keep(m, board) || m->needs.only_profiles || rp_measure_board_for(m, board) != board) {
        return RP_OK;
    }
    write_path(m, board, path);
    if (access(path, R_OK) != 0) {
        return RP_OK;
    }
    if (rp_profile_read(&m->arena, path, m->needs.run, &found) != RP_OK) {
        rp_log_warn("controller: a cached profile is not used: %s", rp_err_message());
        return RP_OK;
    }
    rp_profile_board *kept = &m->kept.board[board];
    *kept = found.board[0];
    kept->name = kept->like = m->needs.ring->board[board].name;
    m->board[board].probed = false;
    return RP_OK;
}

void rp_profile_cache_write(const rp_measure *m, uint32_t board) {
    char path[PATH_BYTES];
    rp_profile own = m->profile;
    RP_ASSERT(board < m->profile.board_count && m->profile.board[board].known);
    if (!may_keep(m, board) || rp_folders_make(m->needs.profiles, 0700) != RP_OK) {
        return;
    }
    own.board = &m->profile.board[board];
    own.board_count = 1;
    own.wire = NULL; /* wires belong to this ring */
    write_path(m, board, path);
    FILE *file = rp_replace_begin(path);
    const rp_err written = file ? rp_profile_write(file, m->needs.run, &own) : RP_ERR_IO;
    const rp_err ended = rp_replace_end(file, path, written == RP_OK);
    if (written != RP_OK || ended != RP_OK) {
        rp_log_warn("controller: the profile of board %s cannot be cached for other runs",
                    m->needs.ring->board[board].name);
    }
}

bool rp_profile_cache_is_complete(const rp_measure *m) {
    for (uint32_t k = 0; k < m->needs.ring->count; k++) {
        if (rp_measure_board_for(m, k) == k && !m->kept.board[k].known) {
            return false;
        }
    }
    return true;
}
