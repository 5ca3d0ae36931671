#include "flash/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool is_there(const char *name) {
    char path[PATH_BYTES];
    char folders[PATH_BYTES];
    const char *own = getenv("PATH");
    (void)snprintf(folders, sizeof folders, "%s:/usr/sbin:/sbin", own ? own : "/usr/bin:/bin");
    for (const char *at = folders; *at;) {
        const size_t length = strcspn(at, ":");
        const int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (n < (int)sizeof path && access(path, X_OK) == 0) {
            return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

rp_err rp_tools_need(const rp_tool *tool, size_t count) {
    char names[512] = "";
    char packages[512] = "";
    for (size_t i = 0; i < count; i++) {
        if (!is_there(tool[i].name)) {
            const size_t n = strlen(names);
            const size_t p = strlen(packages);
            (void)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", tool[i].name);
            if (!strstr(packages, tool[i].package)) {
                (void)snprintf(packages + p, sizeof packages - p, " %s", tool[i].package);
            }
        }
    }
    return names[0] ? rp_fail(RP_ERR_USAGE,
                              "missing programs: %s; on Debian install them with `apt-get "
                              "install%s`",
                              names, packages)
                    : RP_OK;
}

rp_err rp_tool_run(char *const *argv, int *code) {
    int status = 0;
    (void)fflush(NULL); /* else the child would print buffered text again */
    const pid_t child = fork();
    if (child == 0) {
        (void)execvp(argv[0], argv);
        _exit(127);
    }
    if (child < 0) {
        return rp_fail(RP_ERR_IO, "fork: %s", strerror(errno));
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return rp_fail(RP_ERR_IO, "%s: %s", argv[0], strerror(errno));
        }
    }
    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return *code == 127 ? rp_fail(RP_ERR_IO, "%s cannot be started", argv[0]) : RP_OK;
}
