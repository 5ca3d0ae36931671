/* Software that a host sends to a board without a run.
 *
 * Received data are stored in SLOTS/incoming-ID, so that an interrupted push continues where it
 * was. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_own.h"
#include "agent/start_check.h"
#include "base/folders.h"
#include "base/log.h"

enum { PATH_BYTES = RP_AB_PATH_BYTES + 64 };

static const uint64_t BYTES_MAX = RP_BUNDLE_BYTES_MAX + RP_BUNDLE_MANIFEST_MAX + 4096;
static const int64_t LEAVE_NS = 3 * RP_NS_PER_S; /* time for the answer before the restart */
static const char incoming[] = "incoming-";

static void name_incoming(const rp_agent *agent, char out[PATH_BYTES]) {
    (void)snprintf(out, PATH_BYTES, "%s/%s%016" PRIx64, agent->options.software->slots, incoming,
                   agent->push.id);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void note_system(rp_agent *agent, rp_Pushed *said) {
    const bool writes = rp_agent_system_writes(agent);
    agent->system.read_ns = 0; /* read again, because writing continues after the answer */
    const rp_system *system = rp_agent_system(agent);
    if (rp_agent_note_system(agent, said->system, &said->system_slot)) {
        said->system_count = 2;
        said->system_writes = writes;
        (void)snprintf(said->system_text, sizeof said->system_text, "%s", system->error);
    }
}

static rp_err send_pushed(rp_agent *agent, rp_push_outcome outcome, const char *text) {
    const rp_agent_software *software = agent->options.software;
    rp_Frame frame = {.which_body = RP_KIND_PUSHED,
                      .body.pushed = {.outcome = (uint32_t)outcome, .bytes = agent->push.got}};
    rp_Pushed *said = &frame.body.pushed;
    rp_ab ab = {0};
    if (software && rp_ab_read(software->slots, &ab) == RP_OK) {
        said->release = ab.version;
        said->trial_release = ab.trial_version;
        said->starts = ab.starts;
        said->former = ab.former;
        said->failed = ab.failed;
        said->is_trial = ab.trial != RP_AB_NONE && ab.trial == software->own;
    }
    note_system(agent, said);
    (void)snprintf(said->text, sizeof said->text, "%s", text);
    const rp_err err = rp_link_send(agent->control, &frame, NULL, 0, true, NULL, NULL);
    return err == RP_ERR_AGAIN ? RP_OK : err; /* the host has a timeout */
}

static rp_err refuse_push(rp_agent *agent, const char *why) {
    rp_agent_end_push(agent);
    return send_pushed(agent, RP_PUSHED_REFUSED, why);
}

/* Deletes what has arrived, which is useless and may fill the disk. */
static rp_err refuse_all(rp_agent *agent, const char *why) {
    char path[PATH_BYTES];
    char text[RP_ERR_MESSAGE_BYTES];
    (void)snprintf(text, sizeof text, "%s", why);
    name_incoming(agent, path);
    (void)unlink(path);
    return refuse_push(agent, text);
}

static void start_again(rp_agent *agent) {
    agent->push.starts_again = true;
    agent->push.since_ns = rp_clock_now_ns(agent->clock);
}

/* ---- a bundle -------------------------------------------------------------------------------- */

void rp_agent_end_push(rp_agent *agent) {
    if (agent->push.file) {
        (void)fclose(agent->push.file);
    }
    agent->push.file = NULL;
}

/* Deletes bundles that are no longer wanted. */
static void drop_others(const char *slots, uint64_t id) {
    char path[2 * PATH_BYTES];
    char own[64];
    DIR *dir = opendir(slots);
    (void)snprintf(own, sizeof own, "%s%016" PRIx64, incoming, id);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, incoming, sizeof incoming - 1) == 0 &&
            strcmp(entry->d_name, own) != 0 &&
            snprintf(path, sizeof path, "%s/%s", slots, entry->d_name) < (int)sizeof path) {
            (void)unlink(path);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}

/* Installs a complete bundle. */
static rp_err install_bundle(rp_agent *agent) {
    const rp_agent_software *software = agent->options.software;
    char path[PATH_BYTES];
    bool is_system;
    rp_ab ab;
    name_incoming(agent, path);
    rp_agent_end_push(agent);
    rp_err err = rp_agent_hand_over_system(agent, path, &is_system);
    if (err == RP_OK && is_system) {
        return send_pushed(agent, RP_PUSHED_WRITES, "");
    }
    err = err == RP_OK ? rp_ab_install(software->slots, path, software->key, software->board, &ab)
                       : err;
    err = err == RP_OK ? rp_agent_check_start(software->slots, &ab, agent->clock) : err;
    if (err != RP_OK) {
        return refuse_all(agent, rp_err_message());
    }
    (void)unlink(path);
    rp_log_info("push: release %" PRIu64 " is on trial", ab.trial_version);
    start_again(agent);
    return send_pushed(agent, RP_PUSHED_INSTALLED, "");
}

/* Checks the space for the rest of the bundle and for its files. Only a board with system slots
 * accepts bundles that are not unpacked; there install() checks the files. */
static rp_err check_space(rp_agent *agent) {
    const agent_push *push = &agent->push;
    const uint64_t unpacked = rp_agent_system(agent) ? 0 : push->bytes;
    return rp_ab_check_space(agent->options.software->slots, push->bytes - push->got, unpacked);
}

static rp_err begin_bundle(rp_agent *agent, const rp_Push *push) {
    const char *slots = agent->options.software->slots;
    char path[PATH_BYTES];
    if (push->bytes == 0 || push->bytes > BYTES_MAX) {
        return refuse_push(agent, "the bundle is empty or too large");
    }
    rp_agent_end_push(agent);
    agent->push = (agent_push){.id = push->id, .bytes = push->bytes};
    if (rp_folders_make(slots, 0755) != RP_OK) {
        return refuse_push(agent, rp_err_message());
    }
    drop_others(slots, push->id);
    name_incoming(agent, path);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const off_t got = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    agent->push.file = got >= 0 ? fdopen(fd, "r+b") : NULL;
    if (!agent->push.file || fseek(agent->push.file, 0, SEEK_END) != 0) {
        char why[PATH_BYTES + 128];
        (void)snprintf(why, sizeof why, "%s: %s", path, strerror(errno));
        return refuse_push(agent, why);
    }
    agent->push.got = (uint64_t)got <= push->bytes ? (uint64_t)got : 0;
    if (agent->push.got == 0 &&
        (ftruncate(fd, 0) != 0 || fseek(agent->push.file, 0, SEEK_SET) != 0)) {
        return refuse_push(agent, "the file for the bundle cannot be emptied");
    }
    if (push->bytes > agent->push.got && check_space(agent) != RP_OK) {
        return refuse_all(agent, rp_err_message());
    }
    rp_log_info("push: receiving a bundle of %" PRIu64 " bytes, of which %" PRIu64
                " are already stored",
                push->bytes, agent->push.got);
    return agent->push.got < push->bytes ? send_pushed(agent, RP_PUSHED_GOES_ON, "")
                                         : install_bundle(agent);
}

rp_err rp_agent_on_push_piece(rp_agent *agent, const rp_message *message) {
    const rp_part piece = message->part[0];
    agent_push *push = &agent->push;
    if (!push->file || message->frame.body.push_piece.first != push->got) {
        return RP_OK; /* of a push that has ended here, or a piece that arrived before */
    }
    if (piece.bytes > push->bytes - push->got) {
        return refuse_all(agent, "the bundle is longer than announced");
    }
    if (fwrite(piece.data, 1, piece.bytes, push->file) != piece.bytes || fflush(push->file) != 0) {
        char why[128];
        (void)snprintf(why, sizeof why, "the bundle cannot be stored on this board: %s",
                       strerror(errno));
        return refuse_all(agent, why);
    }
    push->got += piece.bytes;
    return push->got == push->bytes ? install_bundle(agent) : RP_OK;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static rp_err validate_software(rp_agent *agent) {
    const rp_agent_software *software = agent->options.software;
    const rp_system *system = rp_agent_system(agent);
    rp_err err = rp_ab_validate(software->slots, software->own);
    if (err == RP_OK && system && system->slot[system->own].state == RP_SYSTEM_TRIAL) {
        err = rp_agent_wish_system(agent, "validate");
    }
    return err == RP_OK ? send_pushed(agent, RP_PUSHED_STATE, "")
                        : refuse_push(agent, rp_err_message());
}

static rp_err revert_system(rp_agent *agent) {
    if (rp_agent_wish_system(agent, "revert") != RP_OK) {
        return refuse_push(agent, rp_err_message());
    }
    agent->system.good = true; /* no further wish is needed */
    return send_pushed(agent, RP_PUSHED_STATE, "");
}

static rp_err revert_software(rp_agent *agent) {
    if (rp_ab_revert(agent->options.software->slots) != RP_OK) {
        return refuse_push(agent, rp_err_message());
    }
    start_again(agent);
    return send_pushed(agent, RP_PUSHED_STATE, "");
}

rp_err rp_agent_on_push(rp_agent *agent, const rp_message *message) {
    const rp_Push *push = &message->frame.body.push;
    const rp_agent_software *software = agent->options.software;
    if (!software) {
        return refuse_push(agent, "the agent runs without --slots, so its software belongs to the "
                                  "system: update the system's package");
    }
    if (push->action == RP_PUSH_STATE) {
        return send_pushed(agent, RP_PUSHED_STATE, "");
    }
    if (agent->state != RP_AGENT_HELLO) {
        return refuse_push(agent, "the board has a run");
    }
    switch (push->action) {
    case RP_PUSH_BUNDLE:
        return software->key
                   ? begin_bundle(agent, push)
                   : refuse_push(agent, "the board has no update.key, so it cannot check bundles");
    case RP_PUSH_VALIDATE:
        return validate_software(agent);
    case RP_PUSH_REVERT:
        return revert_software(agent);
    case RP_PUSH_REVERT_SYSTEM:
        return revert_system(agent);
    default:
        return refuse_push(agent, "this board's ringpipe does not know this request: update it");
    }
}

void rp_agent_step_push(rp_agent *agent) {
    rp_link_stats stats;
    if (!agent->push.starts_again) {
        return;
    }
    rp_link_stats_of(agent->control, &stats);
    if (stats.unacked == 0 || rp_clock_now_ns(agent->clock) - agent->push.since_ns > LEAVE_NS) {
        agent->over = true;
    }
}
