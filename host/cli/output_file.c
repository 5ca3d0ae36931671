#include "cli/output_file.h"

#include <sys/stat.h>

rp_err rp_cli_check_output(const rp_cli_args *args, const char *path) {
    struct stat facts;
    if (lstat(path, &facts) != 0) {
        return RP_OK; /* missing, or writing it reports the reason */
    }
    if (!S_ISREG(facts.st_mode)) {
        return rp_fail(RP_ERR_USAGE, "%s: is %s, expected a file that can be replaced", path,
                       S_ISLNK(facts.st_mode)   ? "a symbolic link"
                       : S_ISDIR(facts.st_mode) ? "a folder"
                                                : "not a regular file");
    }
    return args->yes ? RP_OK
                     : rp_fail(RP_ERR_USAGE, "%s exists already; replace it with --yes", path);
}

rp_err rp_cli_check_input(const char *in, const char *path) {
    struct stat out;
    struct stat facts;
    const bool same = in && stat(path, &out) == 0 && stat(in, &facts) == 0 &&
                      facts.st_dev == out.st_dev && facts.st_ino == out.st_ino;
    return same ? rp_fail(RP_ERR_USAGE,
                          "%s: is one of the files that are read; choose another "
                          "name for the result",
                          path)
                : RP_OK;
}

rp_err rp_cli_check_inputs(const rp_cli_args *args, const char *path) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < args->words.count && err == RP_OK; i++) {
        err = rp_cli_check_input(args->words.item[i], path);
    }
    return err;
}
