#include "cli/federated_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json_values.h"
#include "cli/signals.h"
#include "link/link.h"

static rp_err drive(rp_federation *federation, const rp_clock *clock, int signal_fd) {
    rp_err err = RP_OK;
    bool asked = false;
    for (;;) {
        const int64_t due_ns = rp_federation_step(federation, rp_clock_now_ns(clock));
        rp_cli_signals signals;
        if (rp_federation_has_ended(federation)) {
            return RP_OK;
        }
        RP_TRY(rp_link_wait(NULL, 0, &signal_fd, 1, due_ns - rp_clock_now_ns(clock)));
        rp_cli_read_signals(signal_fd, &signals);
        const uint32_t first = signals.asked && !asked; /* SIGUSR1 counts once */
        asked = asked || signals.asked;
        for (uint32_t i = first + signals.interrupts; i > 0; i--) {
            rp_federation_interrupt(federation);
        }
    }
fail:
    return err;
}

static rp_err check_args(const rp_cli_args *args) {
    if (args->round.in) {
        return rp_fail(RP_ERR_USAGE, "%s: a round trains one site: remove the key `sites`",
                       args->words.item[0]);
    }
    return args->run.plan || args->run.profile || args->run.resume
               ? rp_fail(RP_ERR_USAGE,
                         "sites: --plan and --profile describe a single ring, so they exclude "
                         "`sites`; to continue a run with sites use `ringpipe resume DIR`")
               : RP_OK;
}

rp_err rp_cli_run_sites(const rp_cli_args *args, bool resume) {
    const rp_clock clock = rp_clock_real();
    const rp_federation_options options = {.run_path = args->words.item[0],
                                           .set = args->set.item,
                                           .set_count = args->set.count,
                                           .out = args->out,
                                           .resume = resume,
                                           .keys = args->keys,
                                           .program = args->program,
                                           .json = rp_cli_is_json(args),
                                           .progress = args->quiet ? NULL : stderr,
                                           .result = stdout};
    rp_federation *federation = NULL;
    int signal_fd = -1;
    rp_err err;
    RP_TRY(check_args(args));
    RP_TRY(rp_cli_open_signals(&signal_fd));
    RP_TRY(rp_federation_open(&clock, &options, &federation));
    err = drive(federation, &clock, signal_fd);
fail:
    if (federation) {
        const rp_err result = rp_federation_close(&federation);
        err = err == RP_OK ? result : err;
    }
    if (signal_fd >= 0) {
        (void)close(signal_fd);
    }
    return err;
}

void rp_cli_print_cost(const rp_runfile *run, const rp_federation_cost *cost) {
    const double down = (double)cost->weights_bytes * cost->members / 1e6;
    const double up = (double)cost->update_bytes * cost->members / 1e6;
    const rp_federated_keys *keys = &run->federated;
    (void)printf(
        "sites: %u of %u in a round of %u %s, rule %s; a round moves %.1f MB to them and %.1f MB "
        "back, %" PRIu64 " and %" PRIu64 " bytes for each; %u rounds: %.1f MB and %.1f MB\n",
        cost->members, cost->sites, keys->steps > 0 ? keys->steps : keys->epochs,
        keys->steps > 0 ? "steps" : "epochs", rp_rule_name(keys->rule.kind), down, up,
        cost->weights_bytes, cost->update_bytes, keys->rounds, down * keys->rounds,
        up * keys->rounds);
}

json_t *rp_cli_describe_cost(const rp_federation_cost *cost) {
    const uint64_t down = cost->weights_bytes * cost->members;
    const uint64_t up = cost->update_bytes * cost->members;
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "sites", (json_int_t)cost->sites, "members",
                     (json_int_t)cost->members, "site_bytes", (json_int_t)cost->weights_bytes,
                     "down_bytes", (json_int_t)down, "up_bytes", (json_int_t)up);
}
