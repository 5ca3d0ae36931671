/* Boards that come with a token get their line of the roster. */
#ifndef RP_ENROL_ENROL_H
#define RP_ENROL_ENROL_H

#include "enrol/pending.h"
#include "link/link.h"

enum { RP_ENROL_BOARDS_MAX = 64, RP_ENROL_HOURS = 24 };
/* Where tokens are taken, if nobody says otherwise. */
#define RP_ENROL_ADDRESS "tcp://0.0.0.0:7900"

/* What happened; texts are borrowed for the call. */
typedef struct {
    const char *name;     /* the board's */
    const char *key;      /* Z85 */
    const char *endpoint; /* tcp://HOST:PORT; "": it dials */
    const char *software;
    bool again; /* it asks once more, and had its line already */
} rp_enrol_event;

typedef struct {
    const char *keys_folder; /* where `tokens` lies */
    const char *roster;      /* the file */
    const char *group;  /* of the roster, that the boards belong to; NULL: what their lines say */
    const char *listen; /* tcp://HOST:PORT */
    const char *host;   /* this host's name in the boards' lists */
    const rp_keypair *keys;
    const rp_clock *clock;
    int64_t (*now_s)(void);         /* seconds since 1970 */
    int64_t wait_ns;                /* for this long at most */
    bool (*stopped)(void *context); /* asked all the time */
    void (*told)(void *context, const rp_enrol_event *event);
    void *context;
} rp_enrol_options;

/* Waits for the boards of `name`, whose tokens are in the list; returns when all have come.
 * errors  TIMEOUT: some have not, INTERRUPTED; USAGE: no token of a name is open; those of the
 * roster and of rp_link_open() */
rp_err rp_enrol_wait(const rp_enrol_options *options, const char *const *name,
                     uint32_t count) RP_MUST_CHECK;

#endif
