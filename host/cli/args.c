#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "lab/lab.h"
#include "push/several.h"

/* One row an option; the letter is its key here and in rp_cli_verb.options. */
static const struct argp_option all_options[] = {
    {"set", 's', "KEY.PATH=VALUE", 0, "Change one key of the run file; may be repeated", 0},
    {"out", 'o', "PATH", 0, "Where to write (default: see the manual)", 0},
    {"resume", 'r', "DIR", 0, "Go on in a run folder, from its newest checkpoint", 0},
    {"format", 'f', "text|json", 0, "json: one object on standard output at the end", 0},
    {"format", 'F', "text|svg", 0, "How to draw", 0},
    {"format", 'C', "text|csv|json", 0, "How to write the answers (default: text)", 0},
    {"top", 'K', "N", 0, "So many classes of each answer, the likeliest first (default: 1)", 0},
    {"dry-run", 'n', NULL, 0, "Read and check everything, start nothing", 0},
    {"input", ')', "SHAPE", 0, "Shape of a sample of a model file, as in 3,32,32", 0},
    {"classes", '(', "N", 0, "Number of classes, for a model file", 0},
    {"weights", 'w', "FILE", 0, "A safetensors file of the whole model", 0},
    {"confusion", 'X', NULL, 0, "Each class and the table of answers; on this machine's device", 0},
    {"split", 'p', "test|validation|train", 0, "Which samples (default: test)", 0},
    {"keys", 'k', "DIR", 0, "This host's keys, for a roster (default: ~/.config/ringpipe/keys)", 0},
    {"board", 'b', "NAME", 0, "Board profile, or auto (default)", 0},
    {"stages", 'd', "D", 0, "Stages of the pipeline", 0},
    {"micro", 'm', "M", 0, "Microbatches of a step", 0},
    {"chunks", 'c', "N", 0, "Stages of a board, for interleaved schedules (default: 2)", 0},
    {"whole", 'W', NULL, 0, "Without a flush: the run from its beginning to its end", 0},
    {"minutes", 'M', "N", 0, "Time to spend (default: 5)", 0},
    {"yes", 'y', NULL, 0, "Replace what is there without asking", 0},
    {"system", 'Y', NULL, 0, "For all users: in /etc/ringpipe/tuning", 0},
    {"threads", 't', "N", 0, "CPU threads on a CPU device; 0: all (default)", 0},
    {"jobs", 'j', "N", 0, "Runs at the same time (default: 1)", 0},
    {"dir", 'D', "DIR", 0, "Folder of the keys (default: ~/.config/ringpipe/keys)", 0},
    {"roster", 'R', NULL, 0, "show: as a line of a roster", 0},
    {"roster", 'O', "FILE", 0, "The boards of a ring, and of doctor their links", 0},
    {"where", '@', "KEY=VALUE[,VALUE...]", 0,
     "Boards that have this name, group, board or label; may be repeated: all have to fit", 0},
    {"ask", '%', NULL, 0, "Say which of them are there; --wait: how long each has", 0},
    {"group", '^', "NAME", 0, "Of the roster, that these boards belong to", 0},
    {"listen", 'I', "tcp://HOST:PORT", 0, "Where boards find this host", 0},
    {"hours", 'e', "N", 0, "How long a token lasts (default: 24)", 0},
    {"token", 'E', NULL, 0, "Make the tokens and do not wait for the boards", 0},
    {"open", 'B', NULL, 0, "Make no tokens: wait for boards that have one already", 0},
    {"list", '$', NULL, 0, "List the tokens, and nothing else", 0},
    {"withdraw", '_', NULL, 0, "Withdraw the tokens of these names or ids, and nothing else", 0},
    {"release", 'G', "N", 0, "Which bundle this is: boards take larger ones only", 0},
    {"new-key", 'g', NULL, 0, "Make the pair of keys that signs bundles", 0},
    {"mbit", 'J', "N", 0, "At most so many Mbit/s (default: as fast as the way is)", 0},
    {"at-once", '*', "N", 0, "Boards that get it at the same time (default: 1)", 0},
    {"no-wait", 'z', NULL, 0,
     "Do not wait until the board is back, or its software has shown that it is good", 0},
    {"to", 'T', "DIR", 0, "Folder to put the files in", 0},
    {"from", 'H', "ADDRESS", 0, "A mirror: https, http or file (default: the official place)", 0},
    {"executor", 'x', "digest|timed", 0, "What computes in place of devices (default: digest)", 0},
    {"plan", 'N', "PLAN.json", 0, "Run by this plan (default: one is made)", 0},
    {"profile", 'P', "PROFILE.json", 0, "What layers cost on each board", 0},
    {"seed", 'S', "N", 0, "Seed of interleavings and faults (default: 1)", 0},
    {"seeds", 'A', "A..B", 0, "Many runs, one a seed", 0},
    {"faults", 'L', "none|all|FILE", 0, "all: drawn from the seed (default: none)", 0},
    {"trace", 'V', NULL, 0, "Print every event of the run", 0},
    {"once", ';', NULL, 0, "Do not resume a run that stops: exit as its controller does", 0},
    {"follow", 'Z', NULL, 0, "Go on as long as the run does", 0},
    {"all", 'U', NULL, 0, "Every step; otherwise some 40 of them", 0},
    {"wait", 'Q', "SECONDS", 0, "How long to wait (default: 600)", 0},
    {"node", '1', "NAME[,NAME...]", 0, "What the board is called", 0},
    {"host", '2', "ADDRESS[:PORT]", 0, "Where the board finds this host (port: 7900)", 0},
    {"ssh-key", '3', "FILE", 0, "Public key that may log in as root (default: nobody may)", 0},
    {"wifi", '4', "FILE", 0, "ssid, passphrase and country of a wireless network (YAML)", 0},
    {"overlay", '5', NULL, 0, "A folder for a vendor's system in place of an image", 0},
    {"system", '~', NULL, 0, "The whole system, in place of one board's image or of its software",
     0},
    {"packages", '6', "DIR", 0, "The agent's package (default: build-package)", 0},
    {"cache", '7', "DIR", 0, "Where systems are kept (default: ~/.cache/ringpipe/images)", 0},
    {"enrol", '9', "TOKEN|@FILE", 0, "Take this token (default: a new one is made)", 0},
    {"dial", '0', "ADDRESS:PORT", 0, "The board dials this host for its runs: nobody can dial it",
     0},
    {"listen", 'a', "tcp://HOST:PORT", 0, "Where the board listens (default: tcp://0.0.0.0:7000)",
     0},
    {"lines", '=', "N", 0, "So many of its last lines (default: 30)", 0},
    {"follow", '+', NULL, 0, "Go on with the lines that come", 0},
    {"force", '!', NULL, 0, "Also while the board has a run", 0},
    {"run", '#', "RUN.yaml", 0, "Then warm the boards for this run", 0},
    {"within", '&', "SECONDS", 0, "How long boards may take to warm (default: 1800)", 0},
    {"runner", '8', "bmaptool|dd|qemu", 0, "What writes it, or starts it (default: dd)", 0},
    {"lane", 'l', NULL, 0, "For the lanes of a run, which starts them itself", 0},
    {"quiet", 'q', NULL, 0, "Errors and the result, nothing else", -1},
    {"verbose", 'v', NULL, 0, "All that is known, with time and place", -1},
};
enum { OPTIONS = sizeof all_options / sizeof *all_options };

typedef struct {
    const rp_cli_verb *verb;
    rp_cli_args *args;
} parsing;

static uint32_t read_number(struct argp_state *state, const char *value, uint32_t max) {
    char *end;
    unsigned long n = strtoul(value, &end, 10);
    if (end == value || *end || n > max) {
        argp_error(state, "expected a number from 0 to %u, found '%s'", max, value);
    }
    return (uint32_t)n;
}

static double read_minutes(struct argp_state *state, const char *value) {
    char *end;
    const double minutes = strtod(value, &end);
    if (end == value || *end || !(minutes >= 0 && minutes <= 1440)) {
        argp_error(state, "--minutes: expected a number from 0 to 1440, found '%s'", value);
    }
    return minutes;
}

static const char *one_of(struct argp_state *state, const char *value, const char *a,
                          const char *b) {
    if (strcmp(value, a) != 0 && strcmp(value, b) != 0) {
        argp_error(state, "expected %s or %s, found '%s'", a, b, value);
    }
    return value;
}

static void add_set(struct argp_state *state, rp_cli_args *args, const char *value) {
    if (args->set_count == RP_CLI_SETS_MAX) {
        argp_error(state, "more than %d --set", RP_CLI_SETS_MAX);
    } else {
        args->set[args->set_count++] = value;
    }
}

static void add_where(struct argp_state *state, rp_cli_args *args, const char *value) {
    if (args->where_count == RP_CLI_WHERE_MAX) {
        argp_error(state, "more than %d --where", RP_CLI_WHERE_MAX);
    } else {
        args->where[args->where_count++] = value;
    }
}

static void add_word(struct argp_state *state, const rp_cli_verb *verb, rp_cli_args *args,
                     const char *value) {
    if (args->word_count == verb->words_max) {
        argp_error(state, "unexpected '%s'", value);
    } else {
        args->word[args->word_count++] = value;
    }
}

/* "A..B", both in it. */
static void read_seeds(struct argp_state *state, const char *value, rp_cli_args *args) {
    char *end;
    args->seed_first = strtoull(value, &end, 10);
    const bool has_last = end != value && strncmp(end, "..", 2) == 0;
    const char *last = has_last ? end + 2 : "";
    args->seed_last = strtoull(last, &end, 10);
    if (!has_last || end == last || *end || args->seed_last < args->seed_first ||
        args->seed_last > INT64_MAX) {
        argp_error(state, "--seeds: expected A..B with A no larger than B, found '%s'", value);
    }
}

static bool on_flag(int key, rp_cli_args *args) {
    const struct {
        int key;
        bool *to;
    } flags[] = {{'n', &args->dry_run},      {'W', &args->whole},        {'V', &args->trace},
                 {'R', &args->roster},       {'y', &args->yes},          {'Y', &args->system},
                 {'U', &args->all},          {'X', &args->confusion},    {'q', &args->quiet},
                 {'v', &args->verbose},      {'l', &args->lane},         {'E', &args->token},
                 {'B', &args->open},         {'g', &args->new_key},      {'z', &args->no_wait},
                 {'+', &args->follow_board}, {'!', &args->force},        {'5', &args->overlay},
                 {'%', &args->ask},          {'~', &args->whole_system}, {'$', &args->list_tokens},
                 {'_', &args->withdraw},     {';', &args->once}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (flags[i].key == key) {
            *flags[i].to = true;
            return true;
        }
    }
    return false;
}

static error_t on_text(int key, const char *value, rp_cli_args *args) {
    const struct {
        int key;
        const char **to;
    } texts[] = {
        {'o', &args->out},   {'r', &args->resume},   {'w', &args->weights}, {')', &args->input},
        {'k', &args->keys},  {'b', &args->board},    {'D', &args->dir},     {'T', &args->to},
        {'H', &args->from},  {'x', &args->executor}, {'L', &args->faults},  {'P', &args->profile},
        {'N', &args->plan},  {'O', &args->ring},     {'I', &args->listen},  {'1', &args->node},
        {'2', &args->host},  {'3', &args->ssh_key},  {'4', &args->wifi},    {'6', &args->packages},
        {'7', &args->cache}, {'0', &args->dial},     {'a', &args->at},      {'8', &args->runner},
        {'^', &args->group}, {'#', &args->run}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].key == key) {
            *texts[i].to = value;
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

static bool on_number(int key, const char *value, struct argp_state *state, rp_cli_args *args) {
    const struct {
        int key;
        uint32_t max, *to;
    } numbers[] = {{'d', 1024, &args->stages},
                   {'m', 65536, &args->micro},
                   {'c', 1024, &args->chunks},
                   {'t', 1024, &args->threads},
                   {'Q', 1000000, &args->wait_s},
                   {'K', 65536, &args->top},
                   {'(', 65536, &args->classes},
                   {'j', RP_LAB_JOBS_MAX, &args->jobs},
                   {'e', 8760, &args->hours},
                   {'=', 128, &args->lines},
                   {'G', UINT32_MAX, &args->release},
                   {'J', 1000000, &args->mbit},
                   {'*', RP_PUSH_AT_ONCE_MAX, &args->at_once},
                   {'&', 86400, &args->within_s}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].key == key) {
            *numbers[i].to = read_number(state, value, numbers[i].max);
            return true;
        }
    }
    return false;
}

static error_t on_option(int key, char *value, struct argp_state *state) {
    const parsing *input = state->input;
    rp_cli_args *args = input->args;
    switch (key) {
    case 's':
        add_set(state, args, value);
        return 0;
    case 'f':
        args->follow = !value;
        args->format = value ? one_of(state, value, "text", "json") : args->format;
        return 0;
    case '@':
        add_where(state, args, value);
        return 0;
    case 'F':
        args->format = one_of(state, value, "text", "svg");
        return 0;
    case 'C':
        if (strcmp(value, "csv") != 0 && strcmp(value, "text") != 0 && strcmp(value, "json") != 0) {
            argp_error(state, "expected text, csv or json, found '%s'", value);
        }
        args->format = value;
        return 0;
    case '9':
        args->enrol = value;
        return 0;
    case 'p':
        if (strcmp(value, "validation") != 0) {
            (void)one_of(state, value, "test", "train");
        }
        args->split = value;
        return 0;
    case 'M':
        args->minutes = read_minutes(state, value);
        return 0;
    case 'S':
        args->seed_first = args->seed_last = read_number(state, value, UINT32_MAX);
        return 0;
    case 'A':
        read_seeds(state, value, args);
        return 0;
    case ARGP_KEY_ARG:
        add_word(state, input->verb, args, value);
        return 0;
    case ARGP_KEY_END:
        if (args->word_count < input->verb->words_min) {
            argp_error(state, "expected %s", input->verb->words);
        }
        return 0;
    default:
        return on_flag(key, args) || on_number(key, value, state, args) ? 0
                                                                        : on_text(key, value, args);
    }
}

static bool takes_option(const rp_cli_verb *verb, int key) {
    return strchr("qv", key) || strchr(verb->options, key);
}

const char *rp_cli_option(const rp_cli_verb *verb, uint32_t index) {
    for (uint32_t i = 0; i < OPTIONS; i++) {
        if (takes_option(verb, all_options[i].key) && index-- == 0) {
            return all_options[i].name;
        }
    }
    return NULL;
}

/* Whether `text` is an option of these, or the only one that begins so; counts those that do. */
static const struct argp_option *find_option(const struct argp_option *own, uint32_t count,
                                             const char *text, size_t length, uint32_t *begins) {
    const struct argp_option *found = NULL;
    *begins = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strncmp(own[i].name, text, length) == 0) {
            found = &own[i];
            if (own[i].name[length] == '\0') {
                *begins = 1;
                return found;
            }
            ++*begins;
        }
    }
    return found;
}

/* Leaves the process when there is no option `--text`: argp names none that may have been meant. */
static const struct argp_option *need_option(const struct argp_option *own, uint32_t count,
                                             const char *program, const char *text) {
    static const struct argp_option common[] = {{"help", '?', NULL, 0, NULL, 0},
                                                {"usage", 0, NULL, 0, NULL, 0}};
    const size_t length = strcspn(text, "=");
    uint32_t begins;
    const struct argp_option *found = find_option(own, count, text, length, &begins);
    if (begins == 0) {
        found = find_option(common, 2, text, length, &begins);
    }
    if (begins > 0) { /* of several argp says that */
        return found;
    }
    char word[64];
    (void)snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), text);
    rp_nearest nearest = {.word = word};
    for (uint32_t i = 0; i < count; i++) {
        rp_nearest_offer(&nearest, own[i].name);
    }
    (void)fprintf(stderr, "%s: no option '--%s'", program, word);
    if (nearest.best) {
        (void)fprintf(stderr, "; did you mean '--%s'?\n", nearest.best);
    } else {
        (void)fprintf(stderr, "; there are:");
        for (uint32_t i = 0; i < count; i++) {
            (void)fprintf(stderr, " --%s", own[i].name);
        }
        (void)fprintf(stderr, "\n");
    }
    _exit(2);
}

/* Words behind "--" and the values of options are none. */
static void check_options(const struct argp_option *own, uint32_t count, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            const struct argp_option *option = need_option(own, count, argv[0], argv[i] + 2);
            i += option->arg && !strchr(argv[i], '=');
        } else if (argv[i][0] == '-' && argv[i][1] && !argv[i][2]) {
            for (uint32_t k = 0; k < count; k++) {
                i += own[k].key == argv[i][1] && own[k].arg;
            }
        }
    }
}

void rp_cli_parse(const rp_cli_verb *verb, int argc, char **argv, rp_cli_args *out) {
    struct argp_option own[OPTIONS + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < OPTIONS; i++) {
        if (takes_option(verb, all_options[i].key)) {
            own[count] = all_options[i];
            own[count].key = own[count].key == 'Z' ? 'f' : own[count].key; /* as of tail */
            count++;
        }
    }
    own[count] = (struct argp_option){0};
    char text[2048];
    (void)snprintf(text, sizeof text, "%s%s%s", verb->summary, verb->details ? "\v" : "",
                   verb->details ? verb->details : "");
    struct argp parser = {own, on_option, verb->words, text, NULL, NULL, NULL};
    parsing input = {verb, out};
    check_options(own, count, argc, argv);
    argp_err_exit_status = 2;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &input);
}
