#include "link/flood.h"

#include "base/clock.h"

enum { BYTES_A_UNIT = 64 << 10, PAYS_FOR = 5 };
#define UNIT_NS (RP_NS_PER_S / 4096)
#define AT_ONCE_NS (8 * RP_NS_PER_S)
#define TELL_NS (10 * RP_NS_PER_S)

static int64_t cost_ns(size_t bytes) {
    return (int64_t)(1 + bytes / BYTES_A_UNIT) * UNIT_NS;
}

bool rp_flood_admits(rp_flood *flood, size_t bytes, int64_t now_ns) {
    const int64_t from_ns = flood->paid_until_ns > now_ns ? flood->paid_until_ns : now_ns;
    if (from_ns - now_ns > AT_ONCE_NS) {
        flood->dropped++;
        return false;
    }
    flood->paid_until_ns = from_ns + cost_ns(bytes);
    return true;
}

void rp_flood_pay(rp_flood *flood, size_t bytes) {
    flood->paid_until_ns -= PAYS_FOR * cost_ns(bytes);
}

bool rp_flood_is_news(rp_flood *flood, int64_t now_ns) {
    if (flood->dropped == 0 || (flood->told_ns != 0 && now_ns - flood->told_ns < TELL_NS)) {
        return false;
    }
    flood->told_ns = now_ns;
    return true;
}
