#include "agent/slot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "update/system.h"

/* The slot named in the environment; RP_AB_NONE if none is. */
static rp_ab_slot own_slot(void) {
    const char *name = getenv(RP_AGENT_SLOT_ENV);
    for (rp_ab_slot slot = RP_AB_A; name && slot <= RP_AB_B; slot++) {
        if (strcmp(name, rp_ab_slot_name(slot)) == 0) {
            return slot;
        }
    }
    return RP_AB_NONE;
}

static rp_err start_slot(const char *dir, rp_ab_slot slot, char **argv) {
    char path[RP_AB_PATH_BYTES];
    const int n =
        snprintf(path, sizeof path, "%s/%s/bin/ringpipe-agent", dir, rp_ab_slot_name(slot));
    if (n < (int)sizeof path && setenv(RP_AGENT_SLOT_ENV, rp_ab_slot_name(slot), 1) == 0) {
        (void)execv(path, argv);
    }
    const rp_err err = rp_fail(RP_ERR_IO, "%s: does not start: %s", path, strerror(errno));
    (void)unsetenv(RP_AGENT_SLOT_ENV);
    return err;
}

/* Whether the running system is newer than the slots' software: it then brings its own agent. */
static bool has_older(const char *dir, const char *system_path) {
    rp_system system;
    rp_ab slots;
    if (!system_path || access(system_path, F_OK) != 0 ||
        rp_system_read(system_path, &system) != RP_OK || rp_ab_read(dir, &slots) != RP_OK) {
        return false;
    }
    const uint64_t newest =
        slots.version > slots.trial_version ? slots.version : slots.trial_version;
    return newest > 0 && newest <= system.slot[system.own].release;
}

rp_err rp_agent_slot_enter(rp_agent_slot *slot, const char *dir, const char *system_path,
                           char **argv, const rp_clock *clock) {
    rp_ab slots;
    rp_ab_slot due = RP_AB_NONE;
    *slot = (rp_agent_slot){.dir = dir, .slot = own_slot(), .since_ns = rp_clock_now_ns(clock)};
    slot->settled = slot->slot == RP_AB_NONE;
    if (slot->slot != RP_AB_NONE) {
        return RP_OK;
    }
    if (has_older(dir, system_path)) {
        rp_log_info("slots: the system has a newer agent than the software pushed before");
        return RP_OK;
    }
    if (rp_ab_start(dir, &due) != RP_OK || due == RP_AB_NONE) {
        return RP_OK; /* the error is in the log */
    }
    const rp_err err = start_slot(dir, due, argv);
    const bool is_trial = rp_ab_read(dir, &slots) == RP_OK && slots.trial == due;
    return is_trial ? err : RP_OK;
}

rp_err rp_agent_slot_again(char **argv) {
    (void)unsetenv(RP_AGENT_SLOT_ENV);
    (void)execv("/proc/self/exe", argv);
    return rp_fail(RP_ERR_IO, "the agent cannot restart: %s", strerror(errno));
}

void rp_agent_slot_follow(rp_agent_slot *slot, rp_agent *agent, int64_t now_ns) {
    if (now_ns - slot->since_ns < slot->settle_ns || !rp_agent_has_met_host(agent)) {
        return;
    }
    rp_agent_has_settled(agent);
    if (slot->settled) {
        return;
    }
    /* Only once: if it cannot be written now, the next start tries again. */
    slot->settled = true;
    if (rp_ab_validate(slot->dir, slot->slot) != RP_OK) {
        rp_log_warn("slots: could not record that this software is good");
    }
}
