#include "cli/system_slots.h"

#include <inttypes.h>
#include <stdio.h>

#include "update/system.h"

enum { SLOTS = 2 };
static const char *const names[SLOTS] = {"a", "b"};

static void say_slot(const rp_SystemSlot *at, char *out, size_t bytes) {
    switch (at->state) {
    case RP_SYSTEM_GOOD:
        (void)snprintf(out, bytes, "has release %" PRIu64 ", which is good", at->release);
        return;
    case RP_SYSTEM_TRIAL:
        (void)snprintf(out, bytes, "has release %" PRIu64 " on trial, %u starts left", at->release,
                       at->starts);
        return;
    case RP_SYSTEM_FAILED:
        (void)snprintf(out, bytes, "has release %" PRIu64 ", which failed its trial", at->release);
        return;
    default:
        (void)snprintf(out, bytes, "is empty");
    }
}

bool rp_cli_say_system(const rp_SystemSlot *slot, uint32_t count, uint32_t own, char *out,
                       size_t bytes) {
    char text[SLOTS][96];
    if (count != SLOTS || own < 1 || own > SLOTS) {
        return false;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        say_slot(&slot[i], text[i], sizeof text[i]);
    }
    (void)snprintf(out, bytes, "%s runs; a %s; b %s", names[own - 1], text[0], text[1]);
    return true;
}

json_t *rp_cli_system_json(const rp_SystemSlot *slot, uint32_t count, uint32_t own) {
    if (count != SLOTS || own < 1 || own > SLOTS) {
        return json_null();
    }
    json_t *all = json_pack("{s:s}", "runs", names[own - 1]);
    for (uint32_t i = 0; i < SLOTS; i++) {
        const rp_system_state state =
            slot[i].state < RP_SYSTEM_STATES ? (rp_system_state)slot[i].state : RP_SYSTEM_EMPTY;
        (void)json_object_set_new(all, names[i],
                                  json_pack("{s:s, s:I, s:I}", "state", rp_system_state_name(state),
                                            "release", (json_int_t)slot[i].release, "starts",
                                            (json_int_t)slot[i].starts));
    }
    return all;
}
