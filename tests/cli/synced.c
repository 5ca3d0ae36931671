/* Between a program and the C library (LD_PRELOAD): a file has to be synced before it is renamed,
 * or a loss of power leaves an empty one under a good name. Each rename becomes a line of the file
 * that RP_SYNCED names: "synced" or "NOT", and the new name. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 4096 };

static struct {
    pthread_mutex_t lock;
    ino_t inode[FILES_MAX]; /* of the newest files that were synced */
    unsigned count;
} synced = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The same function of the library below. ISO C has no way from an object to a function. */
static void find_below(const char *name, void *function, size_t bytes) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        abort();
    }
    memcpy(function, &found, bytes);
}

int fsync(int fd) {
    int (*below)(int);
    struct stat about;
    find_below("fsync", &below, sizeof below);
    if (fstat(fd, &about) == 0) {
        (void)pthread_mutex_lock(&synced.lock);
        synced.inode[synced.count++ % FILES_MAX] = about.st_ino;
        (void)pthread_mutex_unlock(&synced.lock);
    }
    return below(fd);
}

static bool is_synced(const char *path) {
    struct stat about;
    bool found = false;
    if (stat(path, &about) != 0) {
        return true;
    }
    (void)pthread_mutex_lock(&synced.lock);
    for (unsigned i = 0; i < synced.count && i < FILES_MAX; i++) {
        found |= synced.inode[i] == about.st_ino;
    }
    (void)pthread_mutex_unlock(&synced.lock);
    return found;
}

int rename(const char *from, const char *to) {
    int (*below)(const char *, const char *);
    const char *told = getenv("RP_SYNCED");
    FILE *file = told ? fopen(told, "ae") : NULL;
    find_below("rename", &below, sizeof below);
    if (file) {
        (void)fprintf(file, "%s %s\n", is_synced(from) ? "synced" : "NOT", to);
        (void)fclose(file);
    }
    return below(from, to);
}
