#include "lab/report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "lab/markdown.h"
#include "lab/tablejson.h"

rp_err rp_lab_replace(const rp_lab_table *table, const rp_lab_report_options *options,
                      const char *name, rp_lab_writer write) {
    char path[1024];
    char temporary[1040];
    rp_err err;
    int length = snprintf(path, sizeof path, "%s/%s", table->plan->folder, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return rp_fail(RP_ERR_USAGE, "%s: path too long", table->plan->folder);
    }
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = fopen(temporary, "we");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: can not be written: %s", temporary, strerror(errno));
    }
    err = write(table, options, file);
    bool good = fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
    good = fclose(file) == 0 && good;
    if (err == RP_OK && (!good || rename(temporary, path) != 0)) {
        err = rp_fail(RP_ERR_IO, "%s: can not be written: %s", path, strerror(errno));
    }
    if (err != RP_OK) {
        (void)unlink(temporary);
    }
    return err;
}

static rp_err write_json(const rp_lab_table *table, const rp_lab_report_options *options,
                         FILE *file) {
    return rp_lab_json(table, options, file, JSON_INDENT(1));
}

rp_err rp_lab_report_write(const rp_lab_table *table, const rp_lab_report_options *options) {
    rp_err err;
    RP_TRY(rp_lab_replace(table, options, "table.md", rp_lab_markdown));
    RP_TRY(rp_lab_replace(table, options, "table.json", write_json));
fail:
    return err;
}

static rp_err check_written(FILE *file) {
    return fflush(file) == 0 && !ferror(file)
               ? RP_OK
               : rp_fail(RP_ERR_IO, "standard output: %s", strerror(errno));
}

rp_err rp_lab_report_print(const rp_lab_table *table, FILE *file) {
    const rp_labfile *lab = table->plan->lab;
    rp_err err = RP_OK;
    for (uint32_t model = 0; err == RP_OK && model < lab->model_count; model++) {
        (void)fprintf(file, "%s%s\n\n", model ? "\n" : "", lab->folder[model]);
        err = rp_lab_markdown_methods(table, model, file);
    }
    return err == RP_OK ? check_written(file) : err;
}

rp_err rp_lab_report_print_json(const rp_lab_table *table, const rp_lab_report_options *options,
                                FILE *file) {
    rp_err err = rp_lab_json(table, options, file, 0);
    return err == RP_OK ? check_written(file) : err;
}
