/* A disk of the run folder that is full for a while. Nothing is lost but time: what could not be
 * written is tried again, and a run stops only where that fails for long. */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"
#include "ring/identity.h"

enum { TRIES = 10 };

/* Between two tries. */
static const int64_t REST_NS = RP_NS_PER_S;

bool rp_disk_rests(const rp_controller *c) {
    return c->keep.disk.tries > 0 && c->ring.now_ns < c->keep.disk.retry_ns;
}

int64_t rp_disk_deadline_ns(const rp_controller *c) {
    return rp_disk_rests(c) ? c->keep.disk.retry_ns : INT64_MAX;
}

rp_err rp_disk_fault(rp_controller *c, rp_err err) {
    if (err == RP_ERR_IO && c->machine.begun) {
        c->machine.reported = RP_FAULT_TRANSIENT;
    }
    return err;
}

rp_err rp_disk_failed(rp_controller *c) {
    rp_disk *disk = &c->keep.disk;
    const int64_t wait_ns = c->run.wait_s * RP_NS_PER_S;
    char text[RP_FAULT_TEXT];
    disk->since_ns = disk->tries == 0 ? c->ring.now_ns : disk->since_ns;
    disk->retry_ns = c->ring.now_ns + REST_NS;
    disk->tries++;
    if (wait_ns == 0 || (disk->tries >= TRIES && c->ring.now_ns - disk->since_ns >= wait_ns)) {
        return rp_controller_final(c, RP_ERR_IO);
    }
    (void)snprintf(text, sizeof text,
                   "%.300s; the run goes on and tries again (for ring.wait, %" PRIu32
                   " s, and %d times at least)",
                   rp_err_message(), c->run.wait_s, TRIES);
    return disk->tries == 1 ? rp_record_event(rp_folder_record(c->folder), "unsaved",
                                              c->train.position.step, text)
                            : rp_record_note(rp_folder_record(c->folder), "unsaved",
                                             c->train.position.step, text);
}

rp_err rp_disk_worked(rp_controller *c) {
    const rp_disk before = c->keep.disk;
    char text[160];
    c->keep.disk = (rp_disk){0};
    if (before.tries == 0) {
        return RP_OK;
    }
    (void)snprintf(text, sizeof text,
                   "the run folder can be written again, after %.1f s and %" PRIu32
                   " failed tries; there is a checkpoint of step %" PRIu64,
                   (double)(c->ring.now_ns - before.since_ns) * 1e-9, before.tries,
                   c->keep.save.kept_step);
    return rp_record_event(rp_folder_record(c->folder), "saved", c->train.position.step, text);
}

/* identity.json is written with what it has. That another controller has it is found elsewhere. */
bool rp_disk_is_writable(const rp_controller *c) {
    return rp_identity_check(rp_folder_paths_of(c->folder)->folder, &c->ring.identity) != RP_OK ||
           rp_identity_keep(rp_folder_paths_of(c->folder)->folder, &c->ring.identity) != RP_ERR_IO;
}

rp_err rp_disk_begin_term(rp_controller *c) {
    return rp_disk_fault(c, rp_identity_begin_term(rp_folder_paths_of(c->folder)->folder,
                                                   c->env.run_id, &c->ring.identity));
}
