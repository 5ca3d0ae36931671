/* A full disk in the run folder costs only time: failed writes are retried, and the run stops only
 * if they fail for long. */
#include "keep/keep_own.h"
#include "ring/identity.h"

enum { TRIES = 10 };

/* Time between two retries. */
static const int64_t REST_NS = RP_NS_PER_S;

bool rp_keep_disk_rests(const rp_keep *keep) {
    return keep->disk.tries > 0 && keep->needs.ring->now_ns < keep->disk.retry_ns;
}

int64_t rp_keep_disk_deadline_ns(const rp_keep *keep) {
    return rp_keep_disk_rests(keep) ? keep->disk.retry_ns : INT64_MAX;
}

rp_err rp_keep_disk_failed(rp_keep *keep, uint64_t step, rp_keep_outcome *out) {
    rp_keep_disk *disk = &keep->disk;
    const uint32_t wait_s = keep->needs.run->safety.wait_s;
    const int64_t now_ns = keep->needs.ring->now_ns;
    const bool is_first = disk->tries == 0;
    RP_ASSERT(is_first || disk->since_ns <= now_ns);
    disk->since_ns = is_first ? now_ns : disk->since_ns;
    disk->retry_ns = now_ns + REST_NS;
    disk->tries++;
    if (wait_s == 0 || (disk->tries >= TRIES && now_ns - disk->since_ns >= wait_s * RP_NS_PER_S)) {
        *out = RP_KEEP_OVER;
        return RP_ERR_IO;
    }
    *out = RP_KEEP_AGAIN;
    return rp_record_event(
        rp_keep_record(keep),
        &(rp_run_event){.kind = is_first ? RP_EVENT_UNSAVED : RP_EVENT_UNSAVED_AGAIN,
                        .step = step,
                        .error = rp_err_message(),
                        .wait_s = wait_s,
                        .tries = TRIES});
}

rp_err rp_disk_note_worked(rp_keep *keep) {
    const rp_keep_disk before = keep->disk;
    RP_ASSERT(keep->save.writer == NULL);
    keep->disk = (rp_keep_disk){0};
    if (before.tries == 0) {
        return RP_OK;
    }
    const int64_t lasted_ns = keep->needs.ring->now_ns - before.since_ns;
    return rp_record_event(rp_keep_record(keep),
                           &(rp_run_event){.kind = RP_EVENT_SAVED,
                                           .step = keep->save.step,
                                           .seconds = (double)lasted_ns * 1e-9,
                                           .tries = before.tries,
                                           .checkpoint_step = keep->save.kept_step});
}

/* Rewrites identity.json unchanged. A newer term in it is not an error here; it is detected
 * elsewhere. */
bool rp_keep_disk_is_writable(const rp_keep *keep) {
    const rp_run_identity *identity = &keep->needs.ring->identity;
    return rp_identity_check(rp_keep_paths(keep)->folder, identity) != RP_OK ||
           rp_identity_keep(rp_keep_paths(keep)->folder, identity) != RP_ERR_IO;
}
