#include "agent/trust.h"

#include <stdio.h>
#include <sys/stat.h>

#include "agent/hosts.h"
#include "base/log.h"

#define LOOK_NS RP_NS_PER_S

static rp_trust_file read_identity(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return (rp_trust_file){0};
    }
    return (rp_trust_file){.number = facts.st_ino,
                           .bytes = (uint64_t)facts.st_size,
                           .changed_ns =
                               facts.st_mtim.tv_sec * RP_NS_PER_S + facts.st_mtim.tv_nsec};
}

static void read_identities(const rp_trust *trust, rp_trust_file out[2]) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/trusted", trust->keys);
    out[0] = read_identity(path);
    out[1] = trust->roster ? read_identity(trust->roster) : (rp_trust_file){0};
}

/* A missing file is no change: a host removes its local agents' keys once they are read. */
static bool is_other(const rp_trust_file *now, const rp_trust_file *before) {
    return now->number != 0 && (now->number != before->number || now->bytes != before->bytes ||
                                now->changed_ns != before->changed_ns);
}

rp_err rp_trust_read(rp_trust *trust, rp_arena *arena, const rp_trusted **hosts, uint32_t *count) {
    rp_err err;
    read_identities(
        trust, trust->seen); /* stat() before reading, so that a change in between is noticed */
    RP_TRY(rp_trusted_read(arena, trust->keys, hosts, count));
    if (trust->roster) {
        RP_TRY(rp_hosts_read(arena, trust->roster, hosts, count));
    }
fail:
    return err;
}

static void read_again(rp_trust *trust, rp_agent *agent) {
    rp_arena arena;
    const rp_trusted *hosts;
    const char *const *keys;
    uint32_t count;
    rp_err err;
    rp_arena_init(&arena, "trusted", 0);
    RP_TRY(rp_trust_read(trust, &arena, &hosts, &count));
    RP_TRY(rp_trusted_keys(&arena, hosts, count, &keys));
    RP_TRY(rp_agent_trust(agent, keys, count));
    rp_log_info("the list of trusted hosts has changed; number of hosts: %u", count);
fail:
    if (err != RP_OK) {
        rp_log_warn("the changed list of trusted hosts has an error and is ignored: the previous "
                    "one stays in force");
    }
    rp_arena_finish(&arena);
}

void rp_trust_follow(rp_trust *trust, rp_agent *agent, int64_t now_ns) {
    rp_trust_file now[2];
    if (now_ns - trust->looked_ns < LOOK_NS) {
        return;
    }
    trust->looked_ns = now_ns;
    read_identities(trust, now);
    if (is_other(&now[0], &trust->seen[0]) || is_other(&now[1], &trust->seen[1])) {
        read_again(trust, agent);
    }
}
