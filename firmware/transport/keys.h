/* Who may talk to whom: CURVE key pairs as files, and the list of trusted keys; Z85 text. */
#ifndef RP_TRANSPORT_KEYS_H
#define RP_TRANSPORT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { RP_KEY_BYTES = 32, RP_KEY_TEXT = 41 };

typedef struct {
    char public_text[RP_KEY_TEXT];
    char secret_text[RP_KEY_TEXT];
} rp_keypair;

/* This account's own: ~/.config/ringpipe/keys. errors  USAGE: the environment has no HOME */
rp_err rp_keys_home(rp_arena *arena, const char **dir) RP_MUST_CHECK;
/* DIR/public.key, DIR/secret.key (0600, created with it; refuses to overwrite). Folders that are
 * missing are made, for their owner only. */
rp_err rp_keys_new(const char *dir) RP_MUST_CHECK;
/* errors  REFUSED when the secret's mode lets others read it; IO: there are none, with the command
 * that makes them; FORMAT */
rp_err rp_keys_read(const char *dir, rp_keypair *out) RP_MUST_CHECK;
rp_err rp_keys_make(rp_keypair *out) RP_MUST_CHECK; /* in memory */
/* DIR/trusted: lines `name publickey`, `# comment`; adds or replaces a line (tmp + rename). */
rp_err rp_keys_trust(const char *dir, const char *name, const char *public_text) RP_MUST_CHECK;
/* The keys of DIR/trusted, in its order; none when there is no such file.
 * errors FORMAT with its line */
rp_err rp_keys_trusted(rp_arena *arena, const char *dir, const char *const **public_texts,
                       uint32_t *count) RP_MUST_CHECK;
/* The bytes of a key's text. errors FORMAT: not 40 Z85 characters */
rp_err rp_key_decode(const char *text, uint8_t out[RP_KEY_BYTES]) RP_MUST_CHECK;

#endif
