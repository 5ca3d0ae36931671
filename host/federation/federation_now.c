/* now.json of a federated run: which sites train in the open round. */
#include <math.h>

#include "federation/federation_own.h"

static const int64_t EVERY_NS = RP_NS_PER_S;

rp_err rp_federation_begin_now(rp_federation *f) {
    rp_err err;
    if (f->options.engine.kind) {
        return RP_OK; /* a simulation has ended before a program could show it */
    }
    RP_TRY(RP_ARENA_NEW(&f->arena, (size_t)f->sites + 1, &f->now_site));
    RP_TRY(rp_now_open(&f->arena, f->folder, f->seed, &f->now_file));
fail:
    return err;
}

static const char *state_of(const rp_federation *f, uint32_t i) {
    switch (f->site[i].condition) {
    case RP_SITE_QUEUED:
        return "waiting";
    case RP_SITE_TRAINS:
        return "training";
    case RP_SITE_RESTS:
        return "starting again";
    case RP_SITE_DONE:
        return "finished";
    case RP_SITE_GIVEN_UP:
        return "failed";
    default:
        return f->trace && !rp_trace_is_there(&f->trace[i], f->virtual_s) ? "away" : "not drawn";
    }
}

static rp_now present_of(rp_federation *f) {
    static const char *const phases[] = {"train", "evaluate", "stop", "ended"};
    for (uint32_t i = 0; i < f->sites; i++) {
        f->now_site[i] = (rp_now_site){f->site[i].name, state_of(f, i)};
    }
    return (rp_now){.state = phases[f->phase],
                    .step = f->round,
                    .steps = f->keys.rounds,
                    .samples = rp_federation_samples(f),
                    .loss = f->loss,
                    .learning_rate = (double)NAN,
                    .samples_per_s = (double)NAN,
                    .left_s = rp_federation_left_s(f),
                    .site = f->now_site,
                    .site_count = f->sites};
}

void rp_federation_write_now(rp_federation *f) {
    if (f->now_file && (f->now_file_ns == 0 || f->now_ns - f->now_file_ns >= EVERY_NS)) {
        const rp_now now = present_of(f);
        rp_now_write(f->now_file, &now);
        f->now_file_ns = f->now_ns;
    }
}

void rp_federation_end_now(rp_federation *f) {
    if (f->now_file) {
        const rp_now now = present_of(f);
        rp_now_end(f->now_file, &now);
    }
}
