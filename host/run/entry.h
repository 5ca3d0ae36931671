/* A board as a roster has it, and what its words are made of. */
#ifndef RP_RUN_ENTRY_H
#define RP_RUN_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_ROSTER_ADDRESS                                                                          \
    "tcp://HOST:PORT, HOST a name or an IPv4 address of at most 99 bytes, PORT from 1 to 65533"

enum {
    RP_ROSTER_NAME_MAX = 63,   /* bytes */
    RP_ROSTER_LABELS_MAX = 16, /* of a board itself, and as many of its group */
};

typedef struct {
    const char *key, *value;
} rp_roster_label;

typedef struct {
    const char *name;
    const char *endpoint;    /* tcp://HOST:PORT; "" when it dials */
    bool dials;              /* it dials this host, and nobody can dial it */
    const char *public_text; /* Z85, whatever the roster has */
    uint32_t place;          /* in the file; a spare has that of the board whose place it takes */
    const char *profile;     /* `board`, its own or its group's; NULL: not said */
    const char *group;       /* NULL: it is in none */
    const rp_roster_label *label;
    uint32_t label_count; /* its own ones, then those of its group that it has not itself */
    uint32_t line;        /* in the file */
} rp_roster_entry;

/* A key of a board that is one text. Each is read from the roster, and by its name boards are
 * chosen (where.h), listed, and written when they are enrolled. Name, address, public key and
 * labels have other forms. */
typedef struct {
    const char *name;
    size_t offset;    /* of its text in rp_roster_entry, NULL: not said */
    bool is_of_group; /* a group may say it for its boards */
    bool is_of_agent; /* the agent says it at each enrolment; else the former text is kept */
} rp_roster_key;

enum { RP_ROSTER_GROUP /* which is found before the others are read */ };
extern const rp_roster_key rp_roster_keys[]; /* in the order of a list; then one without a name */

const char *rp_roster_text(const rp_roster_entry *board, const rp_roster_key *key);
void rp_roster_set_text(rp_roster_entry *board, const rp_roster_key *key, const char *text);
/* The key of this name; NULL: it is none of the table. */
const rp_roster_key *rp_roster_find_key(const char *name);

/* What names of groups, labels and their values are made of: 1 to 63 of A-Z a-z 0-9 . _ - */
bool rp_roster_is_word(const char *text);

/* tcp://HOST:PORT as a roster takes it, HOST not an address of IPv6: two more ports follow PORT, or
 * more with a plan that lets boards share a stage. */
bool rp_roster_is_address(const char *text);

#endif
