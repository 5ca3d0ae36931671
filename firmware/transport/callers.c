#include "transport/callers.h"

#include <string.h>

#include "base/clock.h"

#define HANDSHAKE_NS (RP_NS_PER_S / RP_CALLER_A_SECOND)
#define TELL_NS (10 * RP_NS_PER_S)

static rp_caller *find_caller(rp_callers *callers, const uint8_t key[RP_KEY_BYTES]) {
    for (uint32_t i = 0; i < callers->count && i < RP_CALLERS_MAX; i++) {
        if (memcmp(callers->caller[i].key, key, RP_KEY_BYTES) == 0) {
            return &callers->caller[i];
        }
    }
    return NULL;
}

static rp_caller *find_or_add(rp_callers *callers, const uint8_t key[RP_KEY_BYTES]) {
    rp_caller *caller = find_caller(callers, key);
    if (!caller) {
        caller = &callers->caller[callers->count++ % RP_CALLERS_MAX];
        *caller = (rp_caller){0};
        memcpy(caller->key, key, RP_KEY_BYTES);
    }
    return caller;
}

static bool is_too_fast(rp_caller *caller, int64_t now_ns) {
    const int64_t from_ns = caller->paid_until_ns > now_ns ? caller->paid_until_ns : now_ns;
    if (from_ns - now_ns >= RP_CALLER_AT_ONCE * HANDSHAKE_NS) {
        return true;
    }
    caller->paid_until_ns = from_ns + HANDSHAKE_NS;
    return false;
}

bool rp_callers_admit(rp_callers *callers, const uint8_t key[RP_KEY_BYTES], int64_t now_ns,
                      uint32_t (*connections)(const void *context), const void *context) {
    rp_caller *caller = find_or_add(callers, key);
    if (is_too_fast(caller, now_ns)) {
        callers->refused++;
        return false;
    }
    if (caller->connections >= RP_CALLER_CONNECTIONS) {
        const uint32_t there = connections(context);
        caller->connections = there < caller->connections ? there : caller->connections;
    }
    if (caller->connections >= RP_CALLER_CONNECTIONS) {
        callers->refused++;
        return false;
    }
    caller->connections++;
    return true;
}

bool rp_callers_is_news(rp_callers *callers, const uint8_t key[RP_KEY_BYTES], int64_t now_ns) {
    rp_caller *caller = find_caller(callers, key);
    if (!caller || (caller->told_ns != 0 && now_ns - caller->told_ns < TELL_NS)) {
        return false;
    }
    caller->told_ns = now_ns;
    return true;
}
