/* One board of a roster, and the form of its names and addresses. */
#ifndef RP_RUN_ENTRY_H
#define RP_RUN_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_ROSTER_ADDRESS                                                                          \
    "tcp://HOST:PORT, HOST a name or an IPv4 address of at most 99 bytes, PORT from 1 to 65533"

enum {
    RP_ROSTER_NAME_MAX = 63,   /* bytes */
    RP_ROSTER_LABELS_MAX = 16, /* own labels of a board; its group may add as many */
};

typedef struct {
    const char *key, *value;
} rp_roster_label;

typedef struct {
    const char *name;
    const char *endpoint;    /* tcp://HOST:PORT; "" if it dials */
    bool dials;              /* the board dials this host, and cannot be dialled itself */
    const char *public_text; /* public key in Z85, in whatever form the roster has it */
    uint32_t place;      /* position in the file; a spare inherits that of the board it replaces */
    const char *profile; /* `board`, its own or its group's; NULL: not set */
    const char *group;   /* NULL: it is in no group */
    const rp_roster_label *label;
    uint32_t label_count; /* own labels, then those labels of its group that it does not override */
    uint32_t line;        /* in the file */
} rp_roster_entry;

/* A key of a board with one text as its value. The table below drives reading a roster, choosing
 * boards by the key's name (where.h), listing them, and writing them at an enrolment. Name,
 * address, public key and labels are not in it, because they have other forms. */
typedef struct {
    const char *name;
    size_t offset;    /* of the text in rp_roster_entry; the text is NULL if the key is not set */
    bool is_of_group; /* a group may set it for its boards */
    bool is_of_agent; /* the agent reports it at each enrolment; else the former text is kept */
} rp_roster_key;

enum { RP_ROSTER_GROUP /* index of `group`, which is read before all further keys */ };
extern const rp_roster_key rp_roster_keys[]; /* in the order of a list; ends with a NULL name */

const char *rp_roster_text(const rp_roster_entry *board, const rp_roster_key *key);
void rp_roster_set_text(rp_roster_entry *board, const rp_roster_key *key, const char *text);
/* The key of this name; NULL: unknown. */
const rp_roster_key *rp_roster_find_key(const char *name);

/* Is it a valid name of a group or label, or value of a label: 1 to 63 of A-Z a-z 0-9 . _ - ? */
bool rp_roster_is_word(const char *text);

/* Is it tcp://HOST:PORT with a name or an IPv4 address? PORT is at most 65533, because the agent
 * also listens at the two ports after it (more if boards share a stage). */
bool rp_roster_is_address(const char *text);

#endif
