/* `ringpipe lab`: methods x models x seeds from one file, made by child processes, kept, resumed,
 * reported. */
#ifndef RP_LAB_LAB_H
#define RP_LAB_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_LAB_JOBS_MAX = 64 };

typedef struct {
    const char *path; /* COMPARE.yaml */
    const char *out;  /* the comparison's folder; NULL: runs/ and the file's name */
    const char *keys; /* folder of this host's keys for a roster; NULL: as the base file says */
    uint32_t jobs;    /* runs at once, 1 to RP_LAB_JOBS_MAX */
    bool json;        /* one object on standard output in place of the table */
    bool quiet;       /* nothing but errors and the result */
    bool dry_run;     /* list the runs, start nothing */
    int signal_fd;    /* signalfd of SIGINT, SIGTERM, SIGCHLD, which are blocked; borrowed */
} rp_lab_options;

/* Keeps finished runs of the folder, resumes those that were begun, makes the rest, and then writes
 * the report. errors  as their exit codes say: FAULT when runs failed (the others were made),
 * INTERRUPTED */
rp_err rp_lab(const rp_lab_options *options) RP_MUST_CHECK;

#endif
