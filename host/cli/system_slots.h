/* What boards say of the slots of their whole systems. */
#ifndef RP_CLI_SYSTEM_SLOTS_H
#define RP_CLI_SYSTEM_SLOTS_H

#include <jansson.h>

#include "wire/frame.h"

/* "a (release 7) runs and is good; b (release 8) is empty"; false: the board has none. `own`: 1 =
 * a, 2 = b. */
bool rp_cli_say_system(const rp_SystemSlot *slot, uint32_t count, uint32_t own, char *out,
                       size_t bytes);
/* {"runs": "a", "a": {"state": "good", "release": 7, "starts": 0}, "b": {...}}; null: it has none.
 */
json_t *rp_cli_system_json(const rp_SystemSlot *slot, uint32_t count, uint32_t own);

#endif
