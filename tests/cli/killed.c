/* Between a program and the C library (LD_PRELOAD): kills the process at a call. RP_KILL_AT has
 * "before" or "after", then rename, unlink or fork, the number of the call, and how its path ends:
 * the new name of a rename, "-" for fork. Calls count after the first rename to federation.json,
 * with which a federated run is open. Processes that it starts are not killed. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
    bool opened;
    char when[8], call[8], end[256];
    unsigned left; /* calls until the process is killed; 0: it is not killed */
} plan;

/* The same function of the library below. ISO C has no way from an object to a function. */
static void find_below(const char *name, void *function, size_t bytes) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        abort();
    }
    memcpy(function, &found, bytes);
}

__attribute__((constructor)) static void read_plan(void) {
    const char *text = getenv("RP_KILL_AT");
    if (text && sscanf(text, "%7s %7s %u %255s", plan.when, plan.call, &plan.left, plan.end) != 4) {
        (void)fprintf(stderr, "RP_KILL_AT: expected WHEN CALL NUMBER PATH\n");
        abort();
    }
    (void)unsetenv("LD_PRELOAD");
}

static bool ends_with(const char *path, const char *end) {
    const size_t length = strlen(path);
    return length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

/* Whether this call is the one; kills the process if it shall not be made. */
static bool is_planned(const char *call, const char *path) {
    const bool counts = plan.opened && plan.left > 0 && strcmp(plan.call, call) == 0 &&
                        ends_with(path, plan.end) && --plan.left == 0;
    if (counts && strcmp(plan.when, "before") == 0) {
        (void)raise(SIGKILL);
    }
    return counts;
}

int rename(const char *from, const char *to) {
    int (*below)(const char *, const char *);
    find_below("rename", &below, sizeof below);
    const bool planned = is_planned("rename", to);
    const int result = below(from, to);
    if (planned) {
        (void)raise(SIGKILL);
    }
    plan.opened = plan.opened || ends_with(to, "/federation.json");
    return result;
}

int unlink(const char *path) {
    int (*below)(const char *);
    find_below("unlink", &below, sizeof below);
    const bool planned = is_planned("unlink", path);
    const int result = below(path);
    if (planned) {
        (void)raise(SIGKILL);
    }
    return result;
}

pid_t fork(void) {
    pid_t (*below)(void);
    find_below("fork", &below, sizeof below);
    (void)is_planned("fork", "-");
    return below();
}
