/* Private to system*.c: the entries of the boot loader. */
#ifndef RP_UPDATE_SYSTEM_OWN_H
#define RP_UPDATE_SYSTEM_OWN_H

#include "update/system.h"

enum { RP_ENTRY_NAME = 64, RP_ENTRY_TEXT = 2048, RP_ENTRIES_MAX = 16, RP_ENTRY_UNCOUNTED = -1 };

typedef struct {
    char name[RP_ENTRY_NAME];
    rp_ab_slot slot;
    int32_t left; /* starts left; RP_ENTRY_UNCOUNTED: it is good */
    bool whole;
    uint64_t release;            /* of a complete entry */
    char options[RP_ENTRY_TEXT]; /* kernel options except the slot */
} rp_entry;

typedef struct {
    rp_entry entry[RP_ENTRIES_MAX];
    uint32_t count;
} rp_entries;

/* Reads our entries and skips others. errors IO; LIMIT: too many */
rp_err rp_entries_read(const char *boot, rp_entries *out) RP_MUST_CHECK;
/* The decisive entry of a slot: complete, a good one before others, or the one with most starts;
 * NULL: the slot has no entry. */
const rp_entry *rp_entries_of(const rp_entries *entries, rp_ab_slot slot);
/* Creates a file under its own name, synced to the disk when this returns OK. `left` as above.
 * errors  IO */
rp_err rp_entry_write(const char *boot, rp_ab_slot slot, int32_t left, uint64_t release,
                      const char *options) RP_MUST_CHECK;
/* Removes all entries of a slot except those with `left` starts (or good); RP_ENTRY_NONE: all.
 * errors  IO */
enum { RP_ENTRY_NONE = -2 };
rp_err rp_entries_remove(const char *boot, const rp_entries *entries, rp_ab_slot slot,
                         int32_t left) RP_MUST_CHECK;

#endif
