#include "link/pace.h"

#include <math.h>

#include "base/clock.h"

/* Smaller samples describe the machine rather than the wire. */
#define SAMPLE_LEAST_NS (RP_NS_PER_MS / 10)
#define SAMPLE_LEAST_BYTES 16384
enum { SAMPLES_LEAST = 3, SAMPLES_PART = 50 };

#define DELAY_LEAST_NS 10000.0
#define RATE_LEAST 100.0

/* Bucket i contains values up to `least` * 2^(i / 4). */
static uint32_t bucket_of(double value, double least) {
    const double at = value > least ? ceil(4 * log2(value / least)) : 0;
    return at < RP_PACE_BUCKETS - 1 ? (uint32_t)at : RP_PACE_BUCKETS - 1;
}

static void add_rate(rp_pace_rates *rates, double rate) {
    const uint32_t bucket = bucket_of(rate, RATE_LEAST);
    rates->rate[bucket]++;
    rates->rate_sum[bucket] += rate;
    rates->rates++;
}

static void count_rate(rp_pace *pace, double bytes, int64_t took_ns) {
    if (took_ns >= SAMPLE_LEAST_NS && bytes >= SAMPLE_LEAST_BYTES) {
        const double rate = bytes * (double)RP_NS_PER_S / (double)took_ns;
        add_rate(&pace->all, rate);
        add_rate(&pace->late, rate);
    }
}

void rp_pace_sent(rp_pace *pace, rp_pace_mark *mark, bool idle, int64_t now) {
    if (idle) {
        pace->first_sent_ns = pace->delivered_ns = now;
    }
    *mark = (rp_pace_mark){now, pace->first_sent_ns, pace->delivered_ns, pace->delivered};
}

void rp_pace_acked(rp_pace *pace, const rp_pace_mark *mark, uint64_t bytes, bool alone,
                   int64_t now) {
    pace->delivered += bytes;
    pace->delivered_ns = now;
    if (!alone) {
        return;
    }
    const int64_t sending_ns = mark->sent_ns - mark->first_sent_ns;
    const int64_t acking_ns = now - mark->delivered_ns;
    const int64_t took_ns = sending_ns > acking_ns ? sending_ns : acking_ns;
    pace->first_sent_ns = mark->sent_ns;
    count_rate(pace, (double)(pace->delivered - mark->delivered), took_ns);
    pace->delay[bucket_of((double)(now - mark->sent_ns), DELAY_LEAST_NS)]++;
    pace->delays++;
}

static double fastest_rate(const rp_pace_rates *rates) {
    const uint64_t part = rates->rates / SAMPLES_PART;
    const uint64_t wanted = part > SAMPLES_LEAST ? part : SAMPLES_LEAST;
    uint64_t count = 0;
    double sum = 0;
    for (uint32_t i = RP_PACE_BUCKETS; i-- > 0 && count < wanted;) {
        count += rates->rate[i];
        sum += rates->rate_sum[i];
    }
    return count >= wanted ? sum / (double)count : 0;
}

void rp_pace_begin(rp_pace *pace) {
    pace->late = (rp_pace_rates){.rates = 0};
}

double rp_pace_rate(const rp_pace *pace) {
    return fastest_rate(&pace->all);
}

double rp_pace_late_rate(const rp_pace *pace) {
    return fastest_rate(&pace->late);
}

int64_t rp_pace_delay_ns(const rp_pace *pace, double share) {
    const double wanted = share * (double)pace->delays;
    uint64_t so_far = 0;
    for (uint32_t i = 0; pace->delays > 0 && i < RP_PACE_BUCKETS; i++) {
        so_far += pace->delay[i];
        if ((double)so_far >= wanted) {
            return (int64_t)(DELAY_LEAST_NS * exp2((double)i / 4));
        }
    }
    return 0;
}
