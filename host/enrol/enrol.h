/* Adds boards that connect with a token to a roster. */
#ifndef RP_ENROL_ENROL_H
#define RP_ENROL_ENROL_H

#include "enrol/pending.h"
#include "link/link.h"

enum { RP_ENROL_BOARDS_MAX = 64, RP_ENROL_HOURS = 24 };
/* Default address at which boards enrol. */
#define RP_ENROL_ADDRESS "tcp://0.0.0.0:7900"

/* A board has enrolled. Texts are borrowed for the call. */
typedef struct {
    const char *name;     /* the board's */
    const char *key;      /* Z85 */
    const char *endpoint; /* tcp://HOST:PORT; "": it dials */
    const char *software;
    bool again; /* the board repeated its request, and was in the roster already */
} rp_enrol_event;

typedef struct {
    const char *keys_folder; /* folder with the file `tokens` */
    const char *roster;      /* path of the roster */
    const char *group;       /* group of the boards; NULL: that of their former lines, if any */
    const char *listen;      /* tcp://HOST:PORT */
    const char *host;        /* this host's name in the boards' lists of keys */
    const rp_keypair *keys;
    const rp_clock *clock;
    int64_t (*now_s)(void);         /* seconds since 1970 */
    int64_t wait_ns;                /* timeout */
    bool (*stopped)(void *context); /* is polled; true ends the wait */
    void (*told)(void *context, const rp_enrol_event *event);
    void *context;
} rp_enrol_options;

/* Waits until all boards of `name`, which need open tokens, have enrolled.
 * errors  TIMEOUT: some boards have not; INTERRUPTED; USAGE: a name has no open token; those of the
 * roster and of rp_link_open() */
rp_err rp_enrol_wait(const rp_enrol_options *options, const char *const *name,
                     uint32_t count) RP_MUST_CHECK;

#endif
