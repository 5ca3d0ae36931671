/* What goes wrong with a file that has no name: found among the process's own. */
#ifndef RP_TESTS_DEVICE_FLASH_FAULTS_H
#define RP_TESTS_DEVICE_FLASH_FAULTS_H

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"

/* Of the one open file without a name; -1: there is none. */
static inline int find_nameless(void) {
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int found = -1;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        struct stat about;
        char *end;
        const int fd = (int)strtol(entry->d_name, &end, 10);
        if (!*end && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 0) {
            assert_int_equal(found, -1);
            found = fd;
        }
    }
    (void)closedir(folder);
    return found;
}

/* From here on no file may grow, nor be written at all. */
static inline void refuse_writes(bool yes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = yes ? 0 : limit.rlim_max;
    (void)signal(SIGXFSZ, yes ? SIG_IGN : SIG_DFL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#endif
