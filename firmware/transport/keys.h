/* CURVE key pairs, in memory and as files. In memory a key is Z85 text; in a file it is a word
 * (keytext.h), or Z85 in files of former versions. */
#ifndef RP_TRANSPORT_KEYS_H
#define RP_TRANSPORT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "transport/keytext.h"

typedef struct {
    char public_text[RP_KEY_TEXT];
    char secret_text[RP_KEY_TEXT];
} rp_keypair;

/* The user's key folder: ~/.config/ringpipe/keys. errors USAGE: the environment has no HOME */
rp_err rp_keys_home(rp_arena *arena, const char **dir) RP_MUST_CHECK;
/* Creates DIR/public.key and DIR/secret.key (mode 0600 from the beginning; never overwritten).
 * Creates missing folders, accessible only to their owner. If a process was killed after it wrote
 * the secret key, this adds the missing public key. */
rp_err rp_keys_new(const char *dir) RP_MUST_CHECK;
/* errors  REFUSED when the secret's mode lets others read it; IO: the files are missing, with the
 *         command that creates them; FORMAT */
rp_err rp_keys_read(const char *dir, rp_keypair *out) RP_MUST_CHECK;
rp_err rp_keys_make(rp_keypair *out) RP_MUST_CHECK; /* makes a pair in memory only */
#endif
