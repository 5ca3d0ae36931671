/* ringpipe-agent: arguments, signals, exit code. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/board.h"
#include "agent/enrol.h"
#include "agent/hosts.h"
#include "agent/notify.h"
#include "agent/slot.h"
#include "agent/start_check.h"
#include "agent/trust.h"
#include "agent/warm.h"
#include "base/log.h"
#include "base/log_lines.h"
#include "base/options.h"
#include "base/process.h"
#include "base/share.h"
#include "transport/token_text.h"

typedef struct {
    const char *listen, *host, *board, *keys, *name, *roster, *warm, *sample, *slots, *install,
        *last_words, *reboot;
    char *enrol; /* a copy after take_token(), because the argument is overwritten */
    uint32_t threads, wrong_every, settle_s;
    uint32_t media; /* a descriptor, or 0 */
    bool once, revert, quiet, verbose, help, version;
    char **argv; /* a copy, for restarting */
} arguments;

static volatile sig_atomic_t stopped;

/* How long a service manager should wait after each message: during enrolment, which reports every
 * few seconds; during the self-test, because a driver compiles for minutes on the slowest
 * boards. */
enum { ENROL_WAIT_S = 60, SELFTEST_WAIT_S = 900 };

static void on_signal(int signal_number) {
    (void)signal_number;
    stopped = 1;
}

#define AT(member) offsetof(arguments, member)
#define VALUE(kind, name, value, member, most, about)                                              \
    { name, 0, RP_OPTION_##kind, value, AT(member), about, most, NULL, false, 0 }
#define TEXT(name, value, member, about) VALUE(TEXT, name, value, member, 0, about)
#define FLAG(name, member, about) VALUE(FLAG, name, NULL, member, 0, about)
enum { WHERE = 1, LOUDNESS }; /* groups whose options exclude each other */

static const rp_option options_table[] = {
    {"listen", 0, RP_OPTION_TEXT, "tcp://HOST:PORT", AT(listen),
     "Address of the control socket. PORT + 1, + 2 and (if boards share a stage) up to + 17 carry "
     "data; 0: any free port",
     0, NULL, false, WHERE},
    {"host", 0, RP_OPTION_TEXT, "[NAME@]ADDRESS:PORT", AT(host),
     "Connect to this host instead of listening, for a board without a reachable address. NAME "
     "chooses one of several trusted hosts; PORT + 1 carries data",
     0, NULL, false, WHERE},
    TEXT("board", "BOARD", board, "Board profile, or auto (default)"),
    TEXT("keys", "DIR", keys,
         "This board's keys and the hosts it trusts (default: ~/.config/ringpipe/keys)"),
    TEXT("enrol", "TOKEN@HOST:PORT", enrol,
         "Make keys if they are missing, and let `ringpipe boards enrol` on that host add this "
         "board to its roster; does nothing if that is done. @FILE reads the text from a file, so "
         "that no list of processes shows it"),
    TEXT("roster", "FILE.yaml", roster, "Also trust the hosts in this roster"),
    VALUE(NUMBER, "threads", "N", threads, 1024, "CPU threads on a CPU device; 0: all (default)"),
    TEXT("name", "TEXT", name, "Name in messages and pictures (default: the board's)"),
    /* Used by ringpipe: what emulated links of this machine share. */
    VALUE(NUMBER, "media", "FD", media, 1 << 20, NULL),
    TEXT("slots", "DIR", slots,
         "Start the software in this folder, where bundles are installed, if there is any"),
    TEXT("install", "FILE.rpb", install,
         "With --slots: check a bundle, install it on trial for the next starts, and end"),
    FLAG("revert", revert,
         "With --slots: end the trial, or return to the previous software, and end"),
    TEXT("last-words", "FILE", last_words,
         "Keep the last 16 KiB of the log in this file, so that `ringpipe boards log` shows them "
         "after a crash"),
    VALUE(CHOICE, "reboot", "allow|refuse", reboot, 0,
          "Whether `ringpipe boards reboot` may end this agent with exit code 84, after which its "
          "service reboots the board (default: refuse)"),
    /* For tests: the shortest time of a trial; one number of every N-th forward is wrong. */
    VALUE(NUMBER, "settle", "SECONDS", settle_s, 3600, NULL),
    VALUE(NUMBER, "wrong-every", "N", wrong_every, UINT32_MAX, NULL),
    FLAG("once", once, "End after one run"),
    TEXT("warm", "MODEL.yaml", warm,
         "Build the kernels of a model's layers into the kernel cache, and end"),
    TEXT("sample", "SHAPE", sample, "With --warm: shape of a sample, as in 1,28,28"),
    {"quiet", 'q', RP_OPTION_FLAG, NULL, AT(quiet), "Log only errors", 0, NULL, false, LOUDNESS},
    {"verbose", 'v', RP_OPTION_FLAG, NULL, AT(verbose), "Log details, too", 0, NULL, false,
     LOUDNESS},
    {"help", 'h', RP_OPTION_END, NULL, AT(help), "Print this list", 0, NULL, false, 0},
    {"version", 0, RP_OPTION_END, NULL, AT(version), "Print the version", 0, NULL, false, 0},
    {NULL, 0, RP_OPTION_FLAG, NULL, 0, NULL, 0, NULL, false, 0},
};

static void print_help(void) {
    (void)printf("Usage: ringpipe-agent [OPTION...]\n"
                 "Executes the layers of one stage on this board for a ringpipe controller.\n\n");
    rp_options_print(stdout, options_table);
    (void)printf("\nExit codes: 0 ended, 2 bad usage or input, 3 failed, 4 device or driver, 5 "
                 "refused, 84\nended so that the board is rebooted.\n");
}

/* The token is a secret, and every user of this machine can list arguments. */
static rp_err take_token(rp_arena *arena, arguments *args) {
    char *copy;
    rp_err err = RP_OK;
    if (args->enrol) {
        RP_TRY(rp_arena_string(arena, args->enrol, &copy));
        rp_token_hide(args->enrol);
        args->enrol = copy;
    }
fail:
    return err;
}

static rp_err read_arguments(rp_arena *arena, int argc, char **argv, arguments *args) {
    rp_option_words words = {.about = ""};
    rp_err err;
    RP_TRY(rp_options_parse(options_table, "", argc - 1, argv + 1, args, &words));
    RP_TRY(take_token(arena, args));
    if (args->help || args->version) {
        return RP_OK;
    }
    if ((args->install || args->revert) && !args->slots) {
        return rp_fail(RP_ERR_USAGE, "--install and --revert need --slots DIR");
    }
    if (!args->listen && !args->host && !args->warm && !args->install && !args->revert) {
        return rp_fail(RP_ERR_USAGE, "--listen or --host is missing");
    }
    if (args->quiet || args->verbose) {
        rp_log_choose(args->quiet ? RP_LOG_ERROR : RP_LOG_DEBUG);
    }
fail:
    return err;
}

/* The first lines of the log: what this board is, and which hosts it serves. */
static void note_board(const rp_device *device, const rp_board *board,
                       const rp_agent_options *options) {
    const rp_device_facts *facts = rp_device_facts_of(device);
    rp_log_info("ringpipe " RP_VERSION ", board %s: %s (%s, driver %s), compute units: %u, memory "
                "for runs: %u MiB; its matrix products are correct",
                board->name, facts->name, facts->platform, facts->driver, facts->compute_units,
                options->memory_mib);
    if (options->trusted_count == 0) {
        rp_log_warn("no host is trusted: add one with `ringpipe keys trust NAME KEY`");
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
        if (!rp_agent_device_hangs(agent)) { /* otherwise the manager restarts the process for it */
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

/* Finds the hosts that the board serves or dials. */
static rp_err find_hosts(rp_arena *arena, const arguments *args, rp_trust *trust,
                         rp_agent_options *options) {
    const rp_trusted *hosts;
    rp_err err;
    RP_TRY(rp_trust_read(trust, arena, &hosts, &options->trusted_count));
    RP_TRY(rp_trusted_keys(arena, hosts, options->trusted_count, &options->trusted));
    if (args->host) {
        RP_TRY(rp_hosts_find(arena, args->host, hosts, options->trusted_count, &options->dial,
                             &options->host_public));
    }
fail:
    return err;
}

/* A board may wait for days to be enrolled, which is not a start that hangs. */
static void on_waiting(void *context, const char *status) {
    rp_notify_starting(context, status, ENROL_WAIT_S);
}

static bool is_stopped(void *context) {
    (void)context;
    return stopped;
}

/* The port of "tcp://HOST:PORT"; 0 if it has no port. */
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
        return rp_fail(RP_ERR_USAGE, "--enrol: the host must know where this board listens; "
                                     "expected --listen with a port other than 0");
    }
    return rp_agent_enrol(arena, &enrolment);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The profile that a bundle must be for; NULL: any, if no profile fits this board. */
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
    (void)printf("version %llu is on trial in slot %s: the next start uses it, and at most %d "
                 "starts until it is good\n",
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

/* Our part of `bytes` of memory. */
static uint32_t share_mib(const rp_board *board, uint64_t bytes) {
    return (uint32_t)((double)bytes * board->memory_fraction / (1 << 20));
}

/* A board without space for them works without. */
static void keep_last_words(const char *path) {
    const int code = path ? rp_log_keep(path) : 0;
    if (code != 0) {
        rp_log_warn("--last-words %s: %s: the last lines before a crash will not be kept", path,
                    strerror(code));
    }
}

/* Fills in the answers for hosts (agent/questions.c). */
static void describe_self(const arguments *args, const rp_board *board, const char *keys,
                          rp_agent_options *options) {
    options->name = args->name ? args->name : board->name;
    options->profile = board->name;
    options->system_root = getenv("RINGPIPE_SYSTEM_ROOT");
    options->folder = args->slots && access(args->slots, F_OK) == 0 ? args->slots : keys;
    options->reports_energy = !args->once; /* such an agent shares its machine with others */
    options->may_reboot = strcmp(args->reboot, "allow") == 0;
    (void)!getrandom(&options->life, sizeof options->life, 0);
}

/* Closing waits for the device, which never finishes if it hangs. */
static void close_board(rp_agent **agent, rp_media **media, rp_device **device, rp_err err) {
    if (*agent && rp_agent_device_hangs(*agent)) {
        _exit(rp_err_exit_code(err));
    }
    rp_agent_close(agent);
    rp_media_close(media);
    rp_device_close(device);
}

/* *reboots: it has ended in order to reboot the board. */
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
    RP_TRY(rp_board_find(arena, args->board, args->threads, &board)); /* named by the roster */
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
    rp_log_setup_plain(""); /* the log begins */
    rp_log_setup(rp_log_level_now(), options.name);
    note_board(device, &board, &options);
    if (args->media > 0) {
        RP_TRY(rp_media_adopt(arena, (int)args->media, &clock, &media));
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

/* A process that restarts needs its original arguments. */
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
    rp_arena arena;
    rp_arena_init(&arena, "boot", 0);
    arguments args = {.board = "auto",
                      .argv = copy_arguments(&arena, argc, argv),
                      .settle_s = RP_AGENT_SETTLE_S,
                      .reboot = "refuse"};
    struct sigaction action = {.sa_handler = on_signal};
    bool reboots = false;
    rp_process_begin();
    rp_log_setup_plain("ringpipe-agent");
    rp_share_announce("RINGPIPE_BOARDS", "boards");
    rp_share_announce("RINGPIPE_MODELS", "models");
    rp_err err = read_arguments(&arena, argc, argv, &args);
    if (args.help) {
        print_help();
    } else if (args.version) {
        (void)printf("ringpipe-agent " RP_VERSION "\n");
    } else if (err == RP_OK) {
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        err = args.argv ? run_agent(&arena, &args, &reboots) : RP_ERR_MEMORY;
    }
    rp_arena_finish(&arena);
    return rp_process_end(reboots && err == RP_OK ? RP_AGENT_REBOOT_EXIT : rp_err_exit_code(err));
}
