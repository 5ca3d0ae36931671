#include "link/wire_rate.h"

#include <string.h>

#include "base/median.h"

enum { ROW = 4 };                              /* messages in flight at a time */
static const int64_t LONGEST_NS = RP_NS_PER_S; /* for one message */
/* for all messages: then one round is enough */
static const int64_t ENOUGH_NS = 300 * RP_NS_PER_MS;

rp_err rp_wire_rate_begin(rp_wire_rate *rate, const rp_clock *clock, const uint32_t *size,
                          uint32_t count, bool row) {
    rp_err err;
    rp_wire_rate_end(rate);
    if (count == 0 || count > RP_WIRE_SIZES_MAX) {
        return rp_fail(RP_ERR_USAGE, "expected 1 to %d sizes to measure a wire, found %u",
                       RP_WIRE_SIZES_MAX, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (size[i] <= (i > 0 ? size[i - 1] : 0) || size[i] > RP_WIRE_BYTES_MAX) {
            return rp_fail(RP_ERR_USAGE,
                           "sizes[%u] is %u bytes; expected ascending sizes from 1 to %d", i,
                           size[i], RP_WIRE_BYTES_MAX);
        }
    }
    rp_arena_init(&rate->arena, "wire", 0);
    RP_TRY(RP_ARENA_NEW(&rate->arena, size[count - 1], &rate->bytes));
    memcpy(rate->size, size, count * sizeof *size);
    rate->sizes = rate->sizes_asked = count;
    rate->is_row = row;
    rate->at = row ? count - 1 : 0;
    rate->began_ns = rp_clock_now_ns(clock);
    rate->clock = clock;
    return RP_OK;
fail:
    rp_wire_rate_end(rate);
    return err;
}

bool rp_wire_rate_is_on(const rp_wire_rate *rate) {
    return rate->clock != NULL;
}

static void note_turn(rp_wire_rate *rate, int64_t now_ns) {
    rate->repeat_s[rate->at][rate->round] = (double)(now_ns - rate->sent_ns) * 1e-9;
    rate->repeats[rate->at]++;
    if (++rate->at == rate->sizes) {
        rate->at = 0;
        rate->round++;
    }
}

static void on_acked(void *context) {
    rp_wire_rate *rate = context;
    const int64_t now_ns = rp_clock_now_ns(rate->clock);
    rate->on_way--;
    if (!rate->is_row) {
        note_turn(rate, now_ns);
    } else if (rate->round == RP_WIRE_ROUNDS && rate->on_way == 0) {
        rate->repeat_s[rate->at][0] = (double)(now_ns - rate->began_ns) * 1e-9 / RP_WIRE_ROUNDS;
        rate->repeats[rate->at] = 1;
    }
}

/* Estimates by the rate of the size before. */
static bool would_take_long(const rp_wire_rate *rate) {
    if (rate->round > 0 || rate->at < 2) {
        return false;
    }
    const double *last = rate->repeat_s[rate->at - 1];
    const double of_bytes_s = last[0] - rate->repeat_s[0][0];
    const double growth = (double)rate->size[rate->at] / rate->size[rate->at - 1];
    return of_bytes_s * growth > (double)LONGEST_NS * 1e-9;
}

static bool is_over(const rp_wire_rate *rate) {
    const int64_t spent_ns = rp_clock_now_ns(rate->clock) - rate->began_ns;
    return rate->round == RP_WIRE_ROUNDS || (rate->round > 0 && spent_ns > ENOUGH_NS);
}

static rp_err send_next(rp_wire_rate *rate, rp_link *link) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL_BYTES};
    const rp_part part = rp_part_of_bytes(rate->bytes, rate->size[rate->at]);
    rate->sent_ns = rp_clock_now_ns(rate->clock);
    const rp_err err = rp_link_send(link, &frame, &part, 1, false, on_acked, rate);
    rate->on_way += err == RP_OK;
    return err;
}

static rp_err step_row(rp_wire_rate *rate, rp_link *link, bool *over) {
    rp_err err = RP_OK;
    while (err == RP_OK && rate->round < RP_WIRE_ROUNDS && rate->on_way < ROW) {
        err = send_next(rate, link);
        rate->round += err == RP_OK;
    }
    *over = rate->repeats[rate->at] > 0;
    return err;
}

static rp_err step_turn(rp_wire_rate *rate, rp_link *link, bool *over) {
    if (rate->on_way > 0) {
        return RP_OK;
    }
    if (would_take_long(rate)) {
        rate->sizes = rate->at;
        rate->at = 0;
        rate->round++;
    }
    *over = is_over(rate);
    return *over ? RP_OK : send_next(rate, link);
}

rp_err rp_wire_rate_step(rp_wire_rate *rate, rp_link *link, bool *over) {
    *over = false;
    const rp_err err = rate->is_row ? step_row(rate, link, over) : step_turn(rate, link, over);
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

void rp_wire_rate_result(rp_wire_rate *rate, double *seconds, double *spread) {
    for (uint32_t i = 0; i < RP_WIRE_SIZES_MAX; i++) {
        rp_median(rate->repeat_s[i], rate->repeats[i], &seconds[i], &spread[i]);
    }
}

void rp_wire_rate_end(rp_wire_rate *rate) {
    rp_arena_finish(&rate->arena);
    *rate = (rp_wire_rate){0};
}
