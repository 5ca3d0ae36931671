/* `ringpipe lab`: runs methods x models x seeds from one file in child processes, and reports. */
#ifndef RP_LAB_LAB_H
#define RP_LAB_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_LAB_JOBS_MAX = 64 };

typedef struct {
    const char *path; /* COMPARE.yaml */
    const char *out;  /* the comparison's folder; NULL: runs/NAME, by the file's name */
    const char *keys; /* folder of this host's keys for a roster; NULL: from the base file */
    uint32_t jobs;    /* runs at once, 1 to RP_LAB_JOBS_MAX */
    bool json;        /* print a JSON object instead of the table */
    bool quiet;       /* print only errors and the result */
    bool dry_run;     /* list the runs and start none */
    int signal_fd;    /* signalfd of SIGINT, SIGTERM, SIGCHLD, which are blocked; borrowed */
} rp_lab_options;

/* Keeps finished runs in the folder, resumes unfinished ones, makes the rest and writes the report.
 * errors  USAGE, IO; FAULT: some runs failed, all remaining ones were made; INTERRUPTED */
rp_err rp_lab(const rp_lab_options *options) RP_MUST_CHECK;

#endif
