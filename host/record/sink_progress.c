#include "record/sink_progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"

enum {
    FRAME_BYTES = 8192,
    COLUMNS_MIN = 20,
    COLUMNS_MAX = 160, /* limit of the width, for readability */
    BAR_MIN = 8,
    BAR_MAX = 40,
    CELL_BAR_MAX = 6,
    STAGES_MAX = 64,
    PHASE_BYTES = 128,
    OUTAGES_MAX = 3 /* this many slow steps in a row mean a slower ring */
};

static const int64_t live_every_ns = RP_NS_PER_S / 10;
static const int64_t plain_every_ns = 2 * RP_NS_PER_S;
static const int64_t plain_part_every_ns = 10 * RP_NS_PER_S;
static const double smoothing_s = 8.0; /* time constant of the speed for the time left */
/* A step of this multiple of the mean duration is an outage, which the time left ignores, unless
 * OUTAGES_MAX of them follow each other. */
static const double outage_times = 5.0;

typedef struct {
    FILE *file;
    rp_progress_mode mode;
    const rp_clock *clock;
    rp_clock own_clock;
    bool color, unicode;
    bool without_losses;
    rp_targets targets;
    uint64_t step_total;
    uint32_t epochs, stages;

    rp_sink_step state; /* newest state; step counts from 1; `busy` points to the array below */
    double busy[STAGES_MAX];
    bool have_state, printed; /* printed: the newest state has been shown */
    int64_t shown_ns;         /* time of the last output; 0: none yet */
    char phase[PHASE_BYTES];
    bool part;           /* the phase reports its progress, in the members below */
    int64_t part_ns;     /* start of the part */
    uint64_t part_first; /* `part_done` at the start */
    uint64_t part_done, part_total;
    char part_unit[32];
    uint32_t lines; /* lines on the screen; the cursor is in the last */

    uint64_t speed_step; /* step and time of the last update of step_s */
    int64_t speed_ns;
    double step_s;    /* smoothed duration of a step; 0: unknown yet */
    uint32_t outages; /* consecutive slow steps that step_s ignores */
    rp_log_hook hook; /* clears the lines before a log line */
} progress;

/* Text with a count of columns, limited to a width. */
typedef struct {
    char text[FRAME_BYTES];
    size_t used;
    uint32_t columns, columns_max;
} frame;

static int64_t now_ns(const progress *p) {
    return rp_clock_now_ns(p->clock);
}

/* ---- text ---- */

static void add_raw(frame *f, const char *text) {
    const size_t bytes = strlen(text);
    if (bytes < FRAME_BYTES - f->used) {
        memcpy(f->text + f->used, text, bytes + 1);
        f->used += bytes;
    }
}

/* Adds UTF-8 text; each byte that begins a character counts as a column. */
static void add_text(frame *f, const char *given) {
    char safe[FRAME_BYTES];
    const char *text = safe;
    rp_printable(given, false, safe, sizeof safe);
    while (*text) {
        size_t bytes = 1;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80) {
            bytes++;
        }
        if (f->columns == f->columns_max || bytes >= FRAME_BYTES - f->used) {
            return;
        }
        memcpy(f->text + f->used, text, bytes);
        f->used += bytes;
        f->text[f->used] = '\0';
        f->columns++;
        text += bytes;
    }
}

static void add_format(frame *f, const char *format, ...) RP_PRINTF(2, 3);

static void add_format(frame *f, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_text(f, text);
}

static void add_color(const progress *p, frame *f, const char *code) {
    if (p->color) {
        add_raw(f, code);
    }
}

/* Adds a bar in eighths of a column, padded with spaces. */
static void add_blocks(const progress *p, frame *f, double share, uint32_t columns) {
    const double clamped = share > 0 ? (share < 1 ? share : 1) : 0; /* NaN: 0 */
    uint32_t eighths = (uint32_t)(clamped * 8 * columns + 0.5);
    for (uint32_t i = 0; i < columns; i++) {
        const uint32_t here = eighths < 8 ? eighths : 8;
        eighths -= here;
        if (!p->unicode) {
            add_text(f, here >= 4 ? "#" : " ");
        } else if (here == 0) {
            add_text(f, " ");
        } else { /* U+2588 full block ... U+258F one eighth */
            const char block[4] = {(char)0xe2, (char)0x96, (char)(0x90 - here), '\0'};
            add_text(f, block);
        }
    }
}

static void add_duration(frame *f, double seconds) {
    const uint64_t s = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 0;
    if (s >= 3600) {
        add_format(f, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " left", s / 3600, s / 60 % 60,
                   s % 60);
    } else {
        add_format(f, "%" PRIu64 ":%02" PRIu64 " left", s / 60, s % 60);
    }
}

static void add_speed(const progress *p, frame *f) {
    const bool tokens = rp_targets_are_tokens(p->targets);
    const double speed = tokens ? p->state.tokens_per_s : p->state.samples_per_s;
    add_format(f, speed < 100 ? "  %.1f %s/s" : "  %.0f %s/s", speed,
               tokens ? "tokens" : "samples");
}

static void add_loss(const progress *p, frame *f) {
    const double loss = p->state.loss;
    if (!isfinite(loss)) {
        add_text(f, "  loss not finite");
        return;
    }
    add_format(f, fabs(loss) < 1000 ? "  loss %.4f" : "  loss %.4g", loss);
    if (p->targets == RP_TARGETS_TEXT) {
        add_format(f, "  %.3f bits", p->state.bits);
    } else if (p->targets == RP_TARGETS_TOKENS) {
        add_format(f, "  perplexity %.4g", rp_perplexity(loss));
    }
}

/* Parts that a narrow line may omit. */
enum { NUMBER_SPEED = 1, NUMBER_EPOCH = 2, NUMBER_LOSS = 4, NUMBER_ALL = 7 };

static void add_numbers(const progress *p, frame *f, unsigned shown) {
    const rp_sink_step *s = &p->state;
    add_format(f, "step %" PRIu64 "/%" PRIu64, s->step, p->step_total);
    if (!p->without_losses && (shown & NUMBER_LOSS)) {
        add_loss(p, f);
    }
    if (s->samples_per_s > 0 && (shown & NUMBER_SPEED)) {
        add_speed(p, f);
    }
    if (p->step_s > 0 && s->step < p->step_total) {
        add_text(f, "  ");
        add_duration(f, p->step_s * (double)(p->step_total - s->step));
    }
}

/* ---- the picture ---- */

/* Adds a bar that leaves `other` columns of the line free, and the share. */
static void add_bar(const progress *p, frame *f, double share, uint32_t other) {
    uint32_t bar = f->columns_max > other ? f->columns_max - other : 0;
    bar = bar > BAR_MAX ? BAR_MAX : bar;
    if (bar >= BAR_MIN) {
        const uint32_t full = (uint32_t)(share * bar + 0.5);
        add_color(p, f, "\033[32m");
        for (uint32_t i = 0; i < bar; i++) {
            if (i == full) {
                add_color(p, f, "\033[90m");
            }
            add_text(f, i < full ? (p->unicode ? "━" : "=") : (p->unicode ? "─" : "-"));
        }
        add_color(p, f, "\033[0m");
        add_text(f, " ");
    }
    add_format(f, "%3.0f%%  ", floor(share * 100));
}

enum { SHARE_COLUMNS = 7 }; /* " 100%" and blanks */

static void draw_bar(const progress *p, frame *f) {
    static const unsigned tries[] = {NUMBER_ALL, NUMBER_ALL & ~NUMBER_SPEED, NUMBER_LOSS, 0};
    const double share = p->step_total ? (double)p->state.step / (double)p->step_total : 1.0;
    char epoch[64];
    const int length =
        snprintf(epoch, sizeof epoch, "epoch %u/%u  ", p->state.epoch + 1, p->epochs);
    frame numbers;
    uint32_t other = 0;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        numbers = (frame){.columns_max = COLUMNS_MAX};
        add_numbers(p, &numbers, tries[i]);
        epoch[tries[i] & NUMBER_EPOCH ? length : 0] = '\0';
        other = numbers.columns + (uint32_t)strlen(epoch) + SHARE_COLUMNS;
        if (other <= f->columns_max + 1) { /* without a bar there is no blank before the share */
            break;
        }
    }
    add_text(f, epoch);
    add_bar(p, f, share, other);
    add_text(f, numbers.text);
}

/* ---- a part outside of training ---- */

/* Adds a spinner that turns ten times a second. */
static void add_sign(const progress *p, frame *f) {
    static const char *const dots[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    static const char *const lines[] = {"|", "/", "-", "\\"};
    const uint64_t turn = (uint64_t)((now_ns(p) - p->part_ns) / live_every_ns);
    add_text(f, p->unicode ? dots[turn % 10] : lines[turn % 4]);
}

/* Adds "3/8 boards  0:12 left", or the time so far if the rest cannot be estimated yet. */
static void add_part_numbers(const progress *p, frame *f) {
    const double seconds = (double)(now_ns(p) - p->part_ns) * 1e-9;
    const uint64_t since = p->part_done - p->part_first;
    if (p->part_total > 0) {
        add_format(f, "%" PRIu64 "/%" PRIu64 " %s  ", p->part_done, p->part_total, p->part_unit);
    }
    if (p->part_total > 0 && since > 0 && seconds >= 1) {
        add_duration(f, seconds * (double)(p->part_total - p->part_done) / (double)since);
    } else {
        add_format(f, "%.0f s", floor(seconds));
    }
}

static void draw_part(const progress *p, frame *f) {
    frame numbers = {.columns_max = COLUMNS_MAX};
    add_part_numbers(p, &numbers);
    add_sign(p, f);
    add_text(f, " ");
    const uint32_t room = f->columns_max - f->columns; /* for text and numbers */
    const uint32_t needed = numbers.columns + 2 + (p->part_total > 0 ? SHARE_COLUMNS : 0);
    frame text = {.columns_max = room > needed ? room - needed : 0};
    add_text(&text, p->phase);
    add_text(f, text.text);
    add_text(f, "  ");
    if (p->part_total > 0) {
        const double share = (double)p->part_done / (double)p->part_total;
        add_bar(p, f, share, f->columns + numbers.columns + SHARE_COLUMNS);
    }
    add_text(f, numbers.text);
}

static const char *shade_of(double busy) {
    return busy >= 0.8 ? "\033[32m" : busy >= 0.5 ? "\033[33m" : "\033[31m";
}

/* Draws [0 ████▌ 92%]→[1 ███▉  79%], with as much detail as the width allows. */
static void draw_ring(const progress *p, frame *f) {
    const uint32_t stages = p->stages;
    const uint32_t fixed = 6 + stages * (stages > 10 ? 11 : 10); /* "ring  ", "[0  100%]→" */
    const uint32_t spare = f->columns_max > fixed ? (f->columns_max - fixed) / stages : 0;
    const uint32_t cell = spare > CELL_BAR_MAX ? CELL_BAR_MAX : spare;
    double low = 1;
    double sum = 0;
    for (uint32_t k = 0; k < stages; k++) {
        low = p->busy[k] < low ? p->busy[k] : low;
        sum += p->busy[k];
    }
    add_text(f, "ring  ");
    if (cell == 0) { /* many boards: one column each, U+2581 one eighth ... U+2588 full */
        for (uint32_t k = 0; p->unicode && k < stages; k++) {
            const int level = (int)(p->busy[k] * 7 + 0.5);
            const char block[4] = {(char)0xe2, (char)0x96, (char)(0x81 + level), '\0'};
            add_color(p, f, shade_of(p->busy[k]));
            add_text(f, block);
        }
        add_color(p, f, "\033[0m");
        add_format(f, "%s%u boards, busy %.0f%%, the least %.0f%%", p->unicode ? "  " : "", stages,
                   100 * sum / stages, 100 * low);
        return;
    }
    for (uint32_t k = 0; k < stages; k++) {
        if (k > 0) {
            add_text(f, p->unicode ? "→" : ">");
        }
        add_format(f, "[%u ", k);
        add_color(p, f, shade_of(p->busy[k]));
        add_blocks(p, f, p->busy[k], cell);
        add_color(p, f, "\033[0m");
        add_format(f, " %3.0f%%]", 100 * p->busy[k]);
    }
}

static uint32_t width_of(const progress *p) {
    struct winsize size;
    uint32_t columns = 80;
    if (ioctl(fileno(p->file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    }
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    return columns - 1; /* the last column would make some terminals wrap */
}

/* Moves to the first column of the first line, and clears from there. */
static void add_clear(const progress *p, frame *f) {
    if (p->lines > 0) {
        add_raw(f, "\r");
        for (uint32_t i = 1; i < p->lines; i++) {
            add_raw(f, "\033[A");
        }
        add_raw(f, "\033[J");
    }
}

static void put_frame(const progress *p, const frame *f) {
    (void)fwrite(f->text, 1, f->used, p->file);
    (void)fflush(p->file);
}

static void clear_lines(progress *p) {
    frame f = {.columns_max = 0};
    if (p->lines > 0) {
        add_clear(p, &f);
        put_frame(p, &f);
        p->lines = 0;
    }
}

/* Draws the lines. Each clears only its own rest, so that no line is empty at any time and nothing
 * flickers. */
static void draw_live(progress *p) {
    frame f = {.columns_max = width_of(p)};
    const bool ring = p->phase[0] == '\0' && p->stages > 0 && p->state.busy;
    if (p->lines > (ring ? 2u : 1u)) {
        add_clear(p, &f);
    } else if (p->lines > 0) {
        add_raw(&f, p->lines == 2 ? "\r\033[A" : "\r");
    }
    if (p->part) {
        draw_part(p, &f);
    } else if (p->phase[0]) {
        add_text(&f, p->phase);
    } else {
        draw_bar(p, &f);
    }
    add_raw(&f, "\033[K");
    if (ring) {
        add_raw(&f, "\n");
        f.columns = 0;
        draw_ring(p, &f);
        add_raw(&f, "\033[K");
    }
    put_frame(p, &f);
    p->lines = ring ? 2 : 1;
}

static void print_plain(progress *p) {
    frame f = {.columns_max = COLUMNS_MAX};
    add_format(&f, "epoch %u/%u  ", p->state.epoch + 1, p->epochs);
    add_numbers(p, &f, NUMBER_ALL);
    if (p->state.busy && p->stages > 0) {
        add_text(&f, "  busy");
        for (uint32_t k = 0; k < p->stages; k++) {
            add_format(&f, " %.0f%%", 100 * p->busy[k]);
        }
    }
    add_raw(&f, "\n");
    put_frame(p, &f);
}

static void show_lines(progress *p) {
    if (p->mode == RP_PROGRESS_LIVE) {
        draw_live(p);
    } else {
        print_plain(p);
    }
    p->shown_ns = now_ns(p);
    p->printed = true;
}

static void before_log_line(void *context) {
    progress *p = context;
    clear_lines(p);
    p->shown_ns = 0; /* makes the next update draw at once */
}

/* ---- life ---- */

static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0]) {
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
    }
    return false;
}

rp_err rp_progress_open(rp_arena *arena, const rp_sink_run *run, rp_progress_mode mode,
                        void **sink) {
    progress *p = NULL;
    if (!run->progress) {
        return RP_OK;
    }
    rp_err err = RP_ARENA_NEW(arena, 1, &p);
    if (err != RP_OK) {
        return err;
    }
    const char *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    const bool dumb = !terminal || strcmp(terminal, "dumb") == 0;
    p->file = run->progress;
    p->mode = mode;
    if (mode == RP_PROGRESS_AUTO) {
        p->mode = isatty(fileno(p->file)) && !dumb ? RP_PROGRESS_LIVE : RP_PROGRESS_PLAIN;
    }
    p->own_clock = rp_clock_real();
    p->clock = run->clock ? run->clock : &p->own_clock;
    p->color = !(no_color && no_color[0]);
    p->unicode = is_utf8();
    p->step_total = run->step_total;
    p->epochs = run->epochs;
    p->without_losses = run->without_losses;
    p->targets = run->targets;
    p->stages = run->stages < STAGES_MAX ? run->stages : STAGES_MAX;
    p->speed_step = run->step_first;
    p->state.step = run->step_first;
    if (p->mode == RP_PROGRESS_LIVE) {
        p->hook = (rp_log_hook){.before_line = before_log_line, .context = p};
        rp_log_add_hook(&p->hook);
    }
    *sink = p;
    return RP_OK;
}

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    return rp_progress_open(arena, run, RP_PROGRESS_AUTO, sink);
}

/* In plain mode: prints the newest state if it was not printed. */
static void print_rest(progress *p) {
    if (p->mode == RP_PROGRESS_PLAIN && p->have_state && !p->printed) {
        show_lines(p);
    }
}

/* Updates step_s, an exponential mean over the last seconds, independent of the length of steps. */
static void measure_speed(progress *p, uint64_t step) {
    const int64_t now = now_ns(p);
    if (p->speed_ns == 0 || step < p->speed_step) {
        p->speed_ns = now;
        p->speed_step = step;
        return;
    }
    const double seconds = (double)(now - p->speed_ns) * 1e-9;
    if (step == p->speed_step || seconds < 0.05) {
        return;
    }
    const double newest = seconds / (double)(step - p->speed_step);
    p->speed_ns = now;
    p->speed_step = step;
    if (p->step_s > 0 && newest > outage_times * p->step_s && ++p->outages < OUTAGES_MAX) {
        return;
    }
    const double keep = p->step_s > 0 ? exp(-seconds / smoothing_s) : 0;
    p->step_s = keep * p->step_s + (1 - keep) * newest;
    p->outages = 0;
}

static rp_err on_step(void *sink, const rp_sink_step *step) {
    progress *p = sink;
    if (p->have_state && step->epoch != p->state.epoch) {
        print_rest(p); /* the last state of the epoch that ended */
    }
    p->state = *step;
    p->state.step++;
    if (step->busy) {
        for (uint32_t k = 0; k < p->stages; k++) {
            const double busy = step->busy[k];
            p->busy[k] = busy > 0 ? (busy < 1 ? busy : 1) : 0; /* NaN: 0 */
        }
        p->state.busy = p->busy;
    }
    p->have_state = true;
    p->printed = false;
    const bool first = p->shown_ns == 0 || p->phase[0];
    p->phase[0] = '\0';
    p->part = false;
    measure_speed(p, p->state.step);
    const int64_t every = p->mode == RP_PROGRESS_LIVE ? live_every_ns : plain_every_ns;
    if (first || now_ns(p) - p->shown_ns >= every) {
        show_lines(p);
    }
    return RP_OK;
}

static rp_err on_phase(void *sink, const char *text) {
    progress *p = sink;
    p->part = false;
    p->phase[0] = '\0';
    if (p->mode == RP_PROGRESS_PLAIN) {
        print_rest(p);
        rp_print(p->file, "%s\n", text);
        (void)fflush(p->file);
    } else {
        (void)snprintf(p->phase, sizeof p->phase, "%s ...", text);
        draw_live(p);
    }
    p->speed_ns = 0; /* the pause does not count as part of a step */
    return RP_OK;
}

static void print_part(progress *p) {
    frame f = {.columns_max = COLUMNS_MAX};
    add_format(&f, "%s: ", p->phase);
    add_part_numbers(p, &f);
    add_raw(&f, "\n");
    put_frame(p, &f);
}

static rp_err on_part(void *sink, const rp_sink_part *part) {
    progress *p = sink;
    const char *text = part->text;
    const bool goes_on =
        p->part && strcmp(p->phase, text) == 0 && strcmp(p->part_unit, part->unit) == 0;
    const bool after_phase = strncmp(p->phase, text, strlen(text)) == 0; /* printed already */
    if (!goes_on) {
        print_rest(p);
        p->part_ns = now_ns(p);
        p->part_first = part->done < part->total ? part->done : 0;
        p->shown_ns = p->mode == RP_PROGRESS_PLAIN ? p->part_ns : after_phase ? p->shown_ns : 0;
        (void)snprintf(p->phase, sizeof p->phase, "%s", text);
        (void)snprintf(p->part_unit, sizeof p->part_unit, "%s", part->unit);
    }
    p->part = true;
    p->part_total = part->total;
    p->part_done = part->total > 0 && part->done > part->total ? part->total : part->done;
    p->part_first = p->part_first < p->part_done ? p->part_first : p->part_done;
    p->speed_ns = 0; /* the pause does not count as part of a step */
    const bool live = p->mode == RP_PROGRESS_LIVE;
    if (p->shown_ns == 0 ||
        now_ns(p) - p->shown_ns >= (live ? live_every_ns : plain_part_every_ns)) {
        (live ? draw_live : print_part)(p);
        p->shown_ns = now_ns(p);
    }
    return RP_OK;
}

/* Prints a line that stays on the screen. */
static void put_line(progress *p, const char *text) {
    print_rest(p);
    clear_lines(p);
    p->phase[0] = '\0';
    p->part = false;
    rp_print(p->file, "%s\n", text);
    (void)fflush(p->file);
    if (p->mode == RP_PROGRESS_LIVE && p->have_state) {
        draw_live(p);
    }
}

static rp_err on_eval(void *sink, const rp_sink_eval *eval) {
    const progress *p = sink;
    const bool classes = eval->accuracy >= 0;
    char loss[32] = "not finite";
    char accuracy[32] = "";
    char mean_iou[32] = "";
    char text[160];
    if (p->without_losses) {
        (void)snprintf(text, sizeof text, "step %" PRIu64 ": evaluated", eval->step);
        put_line(sink, text);
        return RP_OK;
    }
    if (isfinite(eval->loss)) {
        (void)snprintf(loss, sizeof loss, classes ? "%.4f" : "%.6g", eval->loss);
    }
    if (classes) {
        (void)snprintf(accuracy, sizeof accuracy, ", accuracy %.2f %%", 100 * eval->accuracy);
    }
    if (p->targets == RP_TARGETS_PIXELS && isfinite(eval->mean_iou)) {
        (void)snprintf(mean_iou, sizeof mean_iou, ", mean IoU %.2f %%", 100 * eval->mean_iou);
    }
    (void)snprintf(text, sizeof text, "step %" PRIu64 ": %s loss %s%s%s", eval->step, eval->split,
                   loss, accuracy, mean_iou);
    put_line(sink, text);
    return RP_OK;
}

static rp_err on_event(void *sink, const rp_sink_event *said) {
    char line[RP_WORDS_BYTES + 32];
    if (rp_event_rows[said->event->kind].flags & RP_EVENT_SHOWN) {
        (void)snprintf(line, sizeof line, "step %" PRIu64 ": %s", said->event->step, said->text);
        put_line(sink, line);
    }
    return RP_OK;
}

static rp_err rewind_sink(void *sink, uint64_t step) {
    progress *p = sink;
    p->state.step = step;
    return RP_OK;
}

static void crash_sink(void *sink) {
    progress *p = sink;
    rp_log_remove_hook(&p->hook);
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    (void)summary;
    print_rest(sink);
    clear_lines(sink);
    crash_sink(sink);
    return RP_OK;
}

const rp_sink_kind rp_sink_progress = {.name = "progress",
                                       .open = open_sink,
                                       .on_step = on_step,
                                       .on_eval = on_eval,
                                       .on_event = on_event,
                                       .on_phase = on_phase,
                                       .on_part = on_part,
                                       .rewind = rewind_sink,
                                       .close = close_sink,
                                       .crash = crash_sink};
