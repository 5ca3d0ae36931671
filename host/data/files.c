/* The files of a set: one for training, and maybe one for the test part. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"

rp_err rp_data_find_files(rp_arena *arena, rp_node *keys, const char *end, rp_data *data,
                          const char **train, const char **test) {
    struct stat facts;
    const char *path = NULL;
    char *text;
    rp_err err;
    *test = NULL;
    RP_TRY(rp_data_find_path(keys, &path));
    *train = path;
    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        err = rp_node_string(keys, "test", test);
        data->test_path = *test ? NULL : "data.test";
        return err;
    }
    RP_TRY(rp_arena_printf(arena, &text, "%s/train%s", path, end));
    *train = text;
    RP_TRY(rp_arena_printf(arena, &text, "%s/test%s", path, end));
    *test = access(text, F_OK) == 0 || errno != ENOENT ? text : NULL;
    data->test_path = *test ? NULL : text;
fail:
    return err;
}
