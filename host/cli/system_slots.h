/* System slots of boards as text and JSON. */
#ifndef RP_CLI_SYSTEM_SLOTS_H
#define RP_CLI_SYSTEM_SLOTS_H

#include <jansson.h>

#include "wire/frame.h"

/* Writes "a runs; a has release 7, which is good; b is empty". own: the running slot, 1 = a, 2 = b.
 * false: the board has no system slots. */
bool rp_cli_say_system(const rp_SystemSlot *slot, uint32_t count, uint32_t own, char *out,
                       size_t bytes);
/* {"runs": "a", "a": {"state": "good", "release": 7, "starts": 0}, "b": {...}}; null: the board has
 * no system slots. */
json_t *rp_cli_system_json(const rp_SystemSlot *slot, uint32_t count, uint32_t own);

#endif
