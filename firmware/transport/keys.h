/* CURVE key pairs, in memory and as files. In memory a key is Z85 text; in a file it is a word
 * (keytext.h), or Z85 in those of before. */
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

/* This account's own: ~/.config/ringpipe/keys. errors  USAGE: the environment has no HOME */
rp_err rp_keys_home(rp_arena *arena, const char **dir) RP_MUST_CHECK;
/* DIR/public.key, DIR/secret.key (0600, created with it; refuses to overwrite). Folders that are
 * missing are made, for their owner only. A secret key without a public one, of a process that was
 * killed here, gets that. */
rp_err rp_keys_new(const char *dir) RP_MUST_CHECK;
/* errors  REFUSED when the secret's mode lets others read it; IO: there are none, with the command
 * that makes them; FORMAT */
rp_err rp_keys_read(const char *dir, rp_keypair *out) RP_MUST_CHECK;
rp_err rp_keys_make(rp_keypair *out) RP_MUST_CHECK; /* in memory */
#endif
