/* round.json of a site: whatever its bytes, an error or an answer whose numbers the run can add up.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "federation/federation_own.h"

static char folder[] = "/dev/shm/rp-fuzz-XXXXXX";
static const char weights[] = "the weights";

static uint64_t no_bytes(void *context, const char *path) {
    (void)context;
    return path[0] ? 1 : 0;
}

static const char *in_folder(const char *name) {
    static char path[96];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t count) {
    const int file = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    RP_ASSERT(file >= 0 && write(file, bytes, count) == (ssize_t)count && close(file) == 0);
}

static void remove_folder(void) {
    (void)unlink(in_folder("rounds/7/a/weights.safetensors"));
    (void)unlink(in_folder("rounds/7/a/round.json"));
    (void)rmdir(in_folder("rounds/7/a"));
    (void)rmdir(in_folder("rounds/7"));
    (void)rmdir(in_folder("rounds"));
    (void)rmdir(folder);
}

/* The inputs of the corpus have the digest of these weights. */
static void make_folder(void) {
    static bool made;
    if (!made) {
        RP_ASSERT(mkdtemp(folder) && mkdir(in_folder("rounds"), 0700) == 0);
        RP_ASSERT(mkdir(in_folder("rounds/7"), 0700) == 0);
        RP_ASSERT(mkdir(in_folder("rounds/7/a"), 0700) == 0);
        put("rounds/7/a/weights.safetensors", weights, strlen(weights));
        made = atexit(remove_folder) == 0;
    }
}

static bool is_real(double value) {
    return isnan(value) || isfinite(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static const rp_site_engine_kind kind = {.file_bytes = no_bytes};
    rp_federation *federation = calloc(1, sizeof *federation);
    rp_site site = {.name = "a", .trains = 7};
    RP_ASSERT(federation);
    make_folder();
    federation->folder = folder;
    federation->engine.kind = &kind;
    federation->keys.options.drift = count % 2 > 0;
    federation->keys.rule.kind = count % 3 > 0 ? RP_RULE_FEDAVG : RP_RULE_FEDNOVA;
    put("rounds/7/a/round.json", bytes, count);
    if (rp_member_read_answer(federation, &site) == RP_OK) {
        const rp_site_answer *answer = &site.answer;
        RP_ASSERT(answer->held > 0 && answer->held <= RP_SITE_COUNT_MAX);
        RP_ASSERT(answer->samples <= RP_SITE_COUNT_MAX && answer->steps <= RP_SITE_COUNT_MAX);
        RP_ASSERT(is_real(answer->loss) && is_real(answer->seconds) && is_real(answer->accuracy));
        RP_ASSERT(is_real(answer->before_loss) && is_real(answer->delta_norm));
        RP_ASSERT(federation->keys.rule.kind != RP_RULE_FEDNOVA ||
                  (isfinite(answer->steps_weight) && answer->steps_weight >= 0));
    }
    free(federation);
    return 0;
}
