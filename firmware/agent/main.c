/* ringpipe-agent: arguments, signals, exit code. */
#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/board.h"
#include "agent/enrol.h"
#include "agent/notify.h"
#include "agent/roster.h"
#include "agent/slot.h"
#include "agent/starts.h"
#include "agent/trust.h"
#include "agent/warm.h"
#include "base/log.h"
#include "base/log_lines.h"
#include "base/process.h"
#include "base/share.h"
#include "transport/token_text.h"

const char *argp_program_version = "ringpipe-agent " RP_VERSION;

typedef struct {
    const char *listen, *host, *board, *keys, *name, *roster, *warm, *sample, *slots, *install,
        *last_words, *reboot;
    const char *enrol; /* a copy: the argument itself is overwritten */
    uint32_t threads, wrong_every, settle_s;
    int media; /* a descriptor, or -1 */
    bool once, revert;
    char **argv; /* a copy, for starting again */
    rp_arena *arena;
} arguments;

static volatile sig_atomic_t stopped;

/* What a service manager waits from a word on: while it is enrolled, with a word every few seconds;
 * while a driver compiles, which takes minutes on the slowest boards. */
enum { ENROL_WAIT_S = 60, SELFTEST_WAIT_S = 900 };

static void on_signal(int signal_number) {
    (void)signal_number;
    stopped = 1;
}

static const struct argp_option argument_list[] = {
    {"listen", 'l', "tcp://HOST:PORT", 0,
     "Control socket; PORT + 1, + 2 and, where boards share a stage, up to + 17 carry data; 0: any",
     0},
    {"host", 'H', "[NAME@]ADDRESS:PORT", 0,
     "Dial this host in place of listening, for a board that nobody can dial; NAME: of several "
     "hosts that are trusted; PORT + 1 carries data",
     0},
    {"board", 'b', "NAME", 0, "Board profile, or auto (default)", 0},
    {"keys", 'k', "DIR", 0,
     "This board's keys and the hosts it trusts (default: ~/.config/ringpipe/keys)", 0},
    {"enrol", 'e', "TOKEN@HOST:PORT", 0,
     "Make keys if there are none, and let `ringpipe boards enrol` there put this board into its "
     "roster; nothing once that is done. @FILE: what stands in this file, which no list of "
     "processes shows",
     0},
    {"roster", 'r', "FILE", 0, "A roster: its hosts are trusted too", 0},
    {"threads", 't', "N", 0, "CPU threads on a CPU device; 0: all (default)", 0},
    {"name", 'n', "TEXT", 0, "Name in messages and pictures; default: the board's", 0},
    {"media", 'm', "FD", OPTION_HIDDEN, "Of ringpipe: what emulated links of this machine share",
     0},
    {"slots", 'S', "DIR", 0,
     "Start the software that bundles have brought into this folder, where there is some", 0},
    {"install", 'i', "BUNDLE", 0,
     "With --slots: check a bundle, put it on trial for the next starts, and end", 0},
    {"revert", 'R', NULL, 0,
     "With --slots: back from what is on trial, or to what was good before, and end", 0},
    {"last-words", 'L', "FILE", 0,
     "Keep the last lines of the journal there, 16 KiB, so that `ringpipe boards log` has them "
     "after "
     "a crash",
     0},
    {"reboot", 'B', "allow|refuse", 0,
     "Whether `ringpipe boards reboot` may end this agent with exit code 84, upon which its "
     "service "
     "reboots the board (default: refuse)",
     0},
    {"settle", 'T', "SECONDS", OPTION_HIDDEN, "For tests: how long a trial takes at least", 0},
    {"once", 'o', NULL, 0, "End after one run", 0},
    {"wrong-every", 'W', "N", OPTION_HIDDEN,
     "For tests: one number of every N-th forward of a training step is wrong", 0},
    {"warm", 'w', "MODEL", 0, "Build what a model's layers need into the kernel cache, and end", 0},
    {"sample", 's', "SHAPE", 0, "With --warm: shape of a sample, as in 1,28,28", 0},
    {"quiet", 'q', NULL, 0, "Errors only in the journal", 0},
    {"verbose", 'v', NULL, 0, "All that is known in the journal", 0},
    {0},
};

static uint32_t read_count(const struct argp_state *state, const char *option, const char *value,
                           uint32_t most) {
    char *end;
    const unsigned long count = strtoul(value, &end, 10);
    if (end == value || *end || count > most) {
        argp_error(state, "%s: expected a number from 0 to %u, found '%s'", option, most, value);
    }
    return (uint32_t)count;
}

static bool on_text(int key, const char *value, arguments *args) {
    const struct {
        int key;
        const char **to;
    } texts[] = {{'l', &args->listen},  {'H', &args->host},       {'b', &args->board},
                 {'k', &args->keys},    {'n', &args->name},       {'r', &args->roster},
                 {'w', &args->warm},    {'s', &args->sample},     {'S', &args->slots},
                 {'i', &args->install}, {'L', &args->last_words}, {'B', &args->reboot}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].key == key) {
            *texts[i].to = value;
            return true;
        }
    }
    return false;
}

/* The token is a secret, and every account of this machine can list arguments. */
static void take_token(char *value, arguments *args, const struct argp_state *state) {
    char *copy;
    if (rp_arena_string(args->arena, value, &copy) != RP_OK) {
        argp_failure(state, 3, 0, "no memory");
    }
    args->enrol = copy;
    rp_token_hide(value);
}

static error_t on_argument(int key, char *value, struct argp_state *state) {
    arguments *args = state->input;
    switch (key) {
    case 'e':
        take_token(value, args, state);
        return 0;
    case 'R':
        args->revert = true;
        return 0;
    case 'T':
        args->settle_s = read_count(state, "--settle", value, 3600);
        return 0;
    case 'm':
        args->media = (int)read_count(state, "--media", value, 1 << 20);
        return 0;
    case 'o':
        args->once = true;
        return 0;
    case 'W':
        args->wrong_every = read_count(state, "--wrong-every", value, UINT32_MAX);
        return 0;
    case 'q':
    case 'v':
        rp_log_choose(key == 'q' ? RP_LOG_ERROR : RP_LOG_DEBUG);
        return 0;
    case 't':
        args->threads = read_count(state, "--threads", value, 1024);
        return 0;
    case ARGP_KEY_END:
        if ((args->install || args->revert) && !args->slots) {
            argp_error(state, "--install and --revert need --slots DIR");
        }
        if (!args->listen && !args->host && !args->warm && !args->install && !args->revert) {
            argp_error(state, "--listen or --host is needed");
        }
        if (strcmp(args->reboot, "allow") != 0 && strcmp(args->reboot, "refuse") != 0) {
            argp_error(state, "--reboot: expected allow or refuse, found '%s'", args->reboot);
        }
        if (args->listen && args->host) {
            argp_error(state, "--listen and --host exclude each other");
        }
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected '%s'", value);
        return 0;
    default:
        return on_text(key, value, args) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

/* The first lines of the journal: what this board is, and whom it serves. */
static void note_board(const rp_device *device, const rp_board *board,
                       const rp_agent_options *options) {
    const rp_device_facts *facts = rp_device_facts_of(device);
    rp_log_info("ringpipe " RP_VERSION
                ", board %s: %s (%s, driver %s), compute units: %u, memory for runs: %u MiB; its "
                "products are right",
                board->name, facts->name, facts->platform, facts->driver, facts->compute_units,
                options->memory_mib);
    if (options->trusted_count == 0) {
        rp_log_warn("no host is trusted: `ringpipe keys trust NAME KEY` lets one in");
    }
}

static rp_err serve_host(rp_agent *agent, bool dials, rp_trust *trust, rp_agent_slot *slot,
                         rp_notify *notify, const rp_clock *clock) {
    char line[256];
    bool over = false;
    rp_err err = RP_OK;
    (void)snprintf(line, sizeof line, "%s %s", dials ? "dialling" : "listening",
                   rp_agent_endpoint(agent));
    (void)printf("%s\n", line);
    (void)fflush(stdout);
    rp_notify_ready(notify, line);
    while (!over && !stopped) {
        RP_TRY(rp_agent_step(agent, &over));
        RP_TRY(rp_agent_wait(agent));
        rp_trust_follow(trust, agent, rp_clock_now_ns(clock));
        rp_agent_slot_follow(slot, agent, rp_clock_now_ns(clock));
        if (!rp_agent_device_hangs(agent)) { /* else the manager starts a process that has it */
            rp_notify_alive(notify, rp_clock_now_ns(clock));
        }
    }
    rp_notify_stopping(notify);
fail:
    return err;
}

/* Needs no keys and no socket. */
static rp_err warm_board(rp_arena *arena, const arguments *args) {
    rp_board board;
    rp_device *device = NULL;
    rp_err err;
    RP_TRY(rp_board_find(arena, args->board, args->threads, &board));
    RP_TRY(rp_board_open_device(arena, &board, args->threads, &device));
    RP_TRY(rp_device_selftest(device));
    RP_TRY(rp_agent_warm(arena, device, args->warm, args->sample, &stopped, stdout));
fail:
    rp_device_close(&device);
    return err;
}

/* Whom the board serves, and whom it dials. */
static rp_err find_hosts(rp_arena *arena, const arguments *args, rp_trust *trust,
                         rp_agent_options *options) {
    const rp_trusted *hosts;
    rp_err err;
    RP_TRY(rp_trust_read(trust, arena, &hosts, &options->trusted_count));
    RP_TRY(rp_trusted_keys(arena, hosts, options->trusted_count, &options->trusted));
    if (args->host) {
        RP_TRY(rp_roster_find_host(arena, args->host, hosts, options->trusted_count, &options->dial,
                                   &options->host_public));
    }
fail:
    return err;
}

/* A board may wait for days until somebody enrols it: that is no start that hangs. */
static void on_waiting(void *context, const char *status) {
    rp_notify_starting(context, status, ENROL_WAIT_S);
}

static bool is_stopped(void *context) {
    (void)context;
    return stopped;
}

/* "tcp://HOST:PORT": the port; 0 where there is none. */
static uint32_t port_of(const char *endpoint) {
    const char *colon = endpoint ? strrchr(endpoint, ':') : NULL;
    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static rp_err enrol_board(rp_arena *arena, const arguments *args, const char *keys,
                          const rp_board *board, rp_notify *notify, const rp_clock *clock) {
    const rp_agent_enrolment enrolment = {.token = args->enrol,
                                          .keys = keys,
                                          .port = port_of(args->listen),
                                          .board = board->name,
                                          .clock = clock,
                                          .stopped = is_stopped,
                                          .waiting = on_waiting,
                                          .context = notify,
                                          .patient = notify->fd > 0};
    if (args->listen && enrolment.port == 0) {
        return rp_fail(RP_ERR_USAGE, "--enrol: the host has to be told where this board listens: "
                                     "--listen with a port that is not 0");
    }
    return rp_agent_enrol(arena, &enrolment);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* For which boards a bundle has to be; NULL: any, where no profile fits this one. */
static const char *profile_of(const rp_board *board) {
    return board->is_profile ? board->name : NULL;
}

static rp_err install_bundle(rp_arena *arena, const arguments *args, const char *keys) {
    const rp_clock clock = rp_clock_real();
    uint8_t key[RP_SIGNING_BYTES];
    rp_board board;
    rp_ab slots;
    rp_err err;
    RP_TRY(rp_signing_read_public(keys, key));
    RP_TRY(rp_board_find(arena, args->board, args->threads, &board));
    RP_TRY(rp_ab_install(args->slots, args->install, key, profile_of(&board), &slots));
    RP_TRY(rp_agent_check_start(args->slots, &slots, &clock));
    (void)printf("version %llu is on trial in slot %s: the next start takes it, %d starts at most "
                 "until it is good\n",
                 (unsigned long long)slots.trial_version, rp_ab_slot_name(slots.trial),
                 RP_AB_STARTS);
fail:
    return err;
}

static rp_err enter_slot(rp_agent_slot *slot, const arguments *args, const rp_clock *clock) {
    const char *system = getenv(RP_AGENT_SYSTEM_ENV);
    return args->slots ? rp_agent_slot_enter(slot, args->slots, system, args->argv, clock) : RP_OK;
}

static void find_software(const arguments *args, const char *keys, const rp_agent_slot *slot,
                          const rp_board *board, uint8_t key[RP_SIGNING_BYTES],
                          rp_agent_software *out) {
    *out = (rp_agent_software){.slots = args->slots,
                               .own = slot->slot,
                               .board = profile_of(board),
                               .system = getenv(RP_AGENT_SYSTEM_ENV)};
    char path[RP_AB_PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/update.key", keys);
    if (n < (int)sizeof path && access(path, F_OK) == 0 &&
        rp_signing_read_public(keys, key) == RP_OK) {
        out->key = key;
    }
}

static uint64_t processor_bytes(void) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Of a memory of so many bytes, what is ours. */
static uint32_t share_mib(const rp_board *board, uint64_t bytes) {
    return (uint32_t)((double)bytes * board->memory_fraction / (1 << 20));
}

/* A board without room for them works all the same. */
static void keep_last_words(const char *path) {
    const int code = path ? rp_log_keep(path) : 0;
    if (code != 0) {
        rp_log_warn("--last-words %s: %s: a crash will leave none", path, strerror(code));
    }
}

/* What is told to hosts (agent/ask.c). */
static void describe_self(const arguments *args, const rp_board *board, const char *keys,
                          rp_agent_options *options) {
    options->name = args->name ? args->name : board->name;
    options->profile = board->name;
    options->system_root = getenv("RINGPIPE_SYSTEM_ROOT");
    options->folder = args->slots && access(args->slots, F_OK) == 0 ? args->slots : keys;
    options->may_reboot = strcmp(args->reboot, "allow") == 0;
    (void)!getrandom(&options->life, sizeof options->life, 0);
}

/* Closing waits for the device, and one that hangs never ends what it was given. */
static void close_board(rp_agent **agent, rp_media **media, rp_device **device, rp_err err) {
    if (*agent && rp_agent_device_hangs(*agent)) {
        _exit(rp_err_exit_code(err));
    }
    rp_agent_close(agent);
    rp_media_close(media);
    rp_device_close(device);
}

/* *reboots: it has ended so that the board begins anew. */
static rp_err run_agent(rp_arena *arena, const arguments *args, bool *reboots) {
    rp_board board;
    rp_device *device = NULL;
    rp_agent *agent = NULL;
    rp_media *media = NULL;
    rp_clock clock = rp_clock_real();
    rp_loop loop = rp_loop_poll(&clock);
    rp_agent_options options = {
        .listen = args->listen, .journal = true, .once = args->once, .loop = &loop};
    const char *keys = args->keys;
    rp_notify notify = {0};
    bool again = false;
    rp_err err = RP_OK;
    if (args->warm) {
        return warm_board(arena, args);
    }
    if (args->revert) {
        return rp_ab_revert(args->slots);
    }
    if (!keys) {
        RP_TRY(rp_keys_home(arena, &keys));
    }
    if (args->install) {
        return install_bundle(arena, args, keys);
    }
    rp_agent_slot slot = {.settled = true};
    uint8_t update_key[RP_SIGNING_BYTES];
    rp_agent_software software;
    RP_TRY(enter_slot(&slot, args, &clock));
    keep_last_words(args->last_words);
    slot.settle_ns = (int64_t)args->settle_s * RP_NS_PER_S;
    RP_TRY(rp_notify_open(&notify));
    RP_TRY(rp_board_find(arena, args->board, args->threads, &board)); /* the roster names it */
    RP_TRY(args->enrol ? enrol_board(arena, args, keys, &board, &notify, &clock) : RP_OK);
    RP_TRY(rp_keys_read(keys, &options.keys));
    rp_trust trust = {.keys = keys, .roster = args->roster};
    RP_TRY(find_hosts(arena, args, &trust, &options));
    rp_notify_starting(&notify, "building kernels for the device's self-test", SELFTEST_WAIT_S);
    if (args->slots) {
        find_software(args, keys, &slot, &board, update_key, &software);
        options.software = &software;
    }
    RP_TRY(rp_board_open_device(arena, &board, args->threads, &device));
    RP_TRY(rp_device_selftest(device));
    options.memory_mib = share_mib(&board, rp_device_facts_of(device)->memory_bytes);
    options.processor_mib = share_mib(&board, processor_bytes());
    describe_self(args, &board, keys, &options);
    options.site.wrong_every = &args->wrong_every;
    rp_log_setup_plain(""); /* the journal begins */
    rp_log_setup(rp_log_level_now(), options.name);
    note_board(device, &board, &options);
    if (args->media >= 0) {
        RP_TRY(rp_media_adopt(arena, args->media, &clock, &media));
        options.media = media;
    }
    RP_TRY(rp_agent_open(arena, device, &clock, &options, &agent));
    RP_TRY(serve_host(agent, args->host != NULL, &trust, &slot, &notify, &clock));
    if (stopped) {
        rp_log_info("a signal ends the agent");
    }
    *reboots = rp_agent_reboots(agent);
    again = !stopped && !*reboots && rp_agent_starts_again(agent);
fail:
    close_board(&agent, &media, &device, err);
    rp_notify_close(&notify);
    rp_log_keep_end();
    return again ? rp_agent_slot_again(args->argv) : err;
}

/* A process that starts again needs the arguments as they were. */
static char **copy_arguments(rp_arena *arena, int argc, char **argv) {
    char **copy;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)argc + 1, &copy));
    for (int i = 0; i < argc; i++) {
        RP_TRY(rp_arena_string(arena, argv[i], &copy[i]));
    }
fail:
    return err == RP_OK ? copy : NULL;
}

int main(int argc, char **argv) {
    static const struct argp parser = {
        argument_list,
        on_argument,
        NULL,
        "Executes the layers of one stage on this board for a ringpipe controller.\v"
        "Exit codes: 0 ended, 2 bad usage or input, 3 failed, 4 device or driver, 5 refused, 84 "
        "ended so that the board is rebooted.",
        NULL,
        NULL,
        NULL};
    rp_arena arena;
    rp_arena_init(&arena, "boot", 0);
    arguments args = {.board = "auto",
                      .media = -1,
                      .arena = &arena,
                      .argv = copy_arguments(&arena, argc, argv),
                      .settle_s = RP_AGENT_SETTLE_S,
                      .reboot = "refuse"};
    rp_process_begin();
    rp_log_setup_plain("ringpipe-agent");
    rp_share_announce("RINGPIPE_BOARDS", "boards");
    rp_share_announce("RINGPIPE_MODELS", "models");
    argp_err_exit_status = 2;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &args);
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    bool reboots = false;
    rp_err err = args.argv ? run_agent(&arena, &args, &reboots) : RP_ERR_MEMORY;
    rp_arena_finish(&arena);
    return rp_process_end(reboots && err == RP_OK ? RP_AGENT_REBOOT_EXIT : rp_err_exit_code(err));
}
