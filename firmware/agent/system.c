/* The system slots. The agent has no right to write them, nor to read the boot partition:
 * `ringpipe-system` reports their state, and finds the agent's wishes in SLOTS. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_own.h"
#include "base/log.h"
#include "base/replace.h"

enum { PATH_BYTES = RP_AB_PATH_BYTES + 64 };

static const int64_t FRESH_NS = RP_NS_PER_S;     /* what was read is reused for this long */
static const int64_t AGAIN_NS = 5 * RP_NS_PER_S; /* interval between two wishes */

static void name_file(const rp_agent *agent, const char *name, char out[PATH_BYTES]) {
    (void)snprintf(out, PATH_BYTES, "%.1000s/%s", agent->options.software->slots, name);
}

const rp_system *rp_agent_system(rp_agent *agent) {
    const rp_agent_software *software = agent->options.software;
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    agent_system *system = &agent->system;
    if (!software || !software->system) {
        return NULL;
    }
    if (system->read_ns == 0 || now_ns - system->read_ns >= FRESH_NS) {
        system->read_ns = now_ns;
        system->known = access(software->system, R_OK) == 0 &&
                        rp_system_read(software->system, &system->now) == RP_OK &&
                        system->now.own != RP_AB_NONE;
    }
    return system->known ? &system->now : NULL;
}

bool rp_agent_system_writes(const rp_agent *agent) {
    char path[PATH_BYTES];
    if (!agent->options.software) {
        return false;
    }
    name_file(agent, RP_SYSTEM_BUNDLE, path);
    return access(path, F_OK) == 0;
}

bool rp_agent_note_system(rp_agent *agent, rp_SystemSlot slot[2], uint32_t *own) {
    const rp_system *system = rp_agent_system(agent);
    for (uint32_t i = 0; system && i < 2; i++) {
        const rp_system_slot *at = &system->slot[RP_AB_A + i];
        slot[i] = (rp_SystemSlot){
            .state = (uint32_t)at->state, .release = at->release, .starts = at->starts};
    }
    *own = system ? (uint32_t)system->own : 0;
    return system != NULL;
}

/* ---- a bundle -------------------------------------------------------------------------------- */

/* The writer checks again; this check gives the sender an answer at once. */
static rp_err check_bundle(rp_agent *agent, const rp_bundle *bundle, bool is_system) {
    const rp_system *system = rp_agent_system(agent);
    const char *board = agent->options.software->board;
    if (!system) {
        return is_system ? rp_fail(RP_ERR_REFUSED, "this board has no system slots, which only a "
                                                   "card from `ringpipe image` has")
                         : RP_OK;
    }
    const rp_system_slot *own = &system->slot[system->own];
    if (own->state != RP_SYSTEM_GOOD) {
        return rp_fail(RP_ERR_REFUSED,
                       "the running system is still on trial: wait until it is good");
    }
    if (rp_agent_system_writes(agent) || system->due) {
        return rp_fail(RP_ERR_REFUSED, "another system is being written to this board");
    }
    if (is_system && board && strcmp(board, bundle->board) != 0) {
        return rp_fail(RP_ERR_REFUSED, "it is for boards of the profile %s, and this is a %s",
                       bundle->board, board);
    }
    return bundle->version > own->release
               ? RP_OK
               : rp_fail(RP_ERR_REFUSED,
                         "it has release %" PRIu64 ", but the running system has %" PRIu64
                         ": expected a newer one",
                         bundle->version, own->release);
}

static rp_err look_at(rp_agent *agent, const char *path, FILE *file, bool *is_system) {
    rp_arena arena;
    rp_bundle bundle;
    rp_err err;
    rp_arena_init(&arena, "bundle", 0);
    RP_TRY(rp_bundle_read(&arena, file, path, agent->options.software->key, &bundle));
    *is_system = rp_bundle_is_system(&bundle);
    RP_TRY(check_bundle(agent, &bundle, *is_system));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_agent_hand_over_system(rp_agent *agent, const char *path, bool *is_system) {
    char to[PATH_BYTES];
    FILE *file = fopen(path, "rbe");
    rp_err err;
    *is_system = false;
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    RP_TRY(look_at(agent, path, file, is_system));
    if (*is_system) {
        name_file(agent, RP_SYSTEM_BUNDLE, to);
        if (fsync(fileno(file)) != 0 || rename(path, to) != 0) {
            RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", to, strerror(errno)));
        }
        RP_TRY(rp_replace_sync_folder(to));
        rp_log_info("push: received a whole system, which will now be written");
    }
fail:
    (void)fclose(file);
    return err;
}

/* ---- wishes ---------------------------------------------------------------------------------- */

rp_err rp_agent_wish_system(rp_agent *agent, const char *wish) {
    const rp_system *system = rp_agent_system(agent);
    char path[PATH_BYTES];
    if (!system) {
        return rp_fail(RP_ERR_USAGE, "this board has no system slots");
    }
    name_file(agent, RP_SYSTEM_WISH, path);
    FILE *file = rp_replace_begin(path);
    return rp_replace_end(file, path, file && fprintf(file, "%s %s\n", wish, system->boot) > 0);
}

/* Repeats the wish during the trial, because `ringpipe-system` may be absent for a moment. */
void rp_agent_has_settled(rp_agent *agent) {
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    if (agent->system.good ||
        (agent->system.wished_ns > 0 && now_ns - agent->system.wished_ns < AGAIN_NS)) {
        return;
    }
    const rp_system *system = rp_agent_system(agent);
    agent->system.wished_ns = now_ns;
    agent->system.good = !system || system->slot[system->own].state != RP_SYSTEM_TRIAL;
    if (!agent->system.good && rp_agent_wish_system(agent, "validate") == RP_OK) {
        rp_log_info("system: the system on trial works");
    }
}

void rp_agent_step_system(rp_agent *agent) {
    if (agent->state != RP_AGENT_HELLO || agent->push.file || agent->reboot_ns != 0 ||
        !agent->options.may_reboot) {
        return;
    }
    const rp_system *system = rp_agent_system(agent);
    if (system && system->due && !rp_agent_system_writes(agent)) {
        rp_log_warn("system: the board reboots into the system of the second slot");
        agent->reboot_ns = rp_clock_now_ns(agent->clock);
    }
}
