#include "draw.h"

#include <string.h>

#include "sched/split.h"
#include "stage/layout.h"

/* A lane of the picture is a node. With one chunk it holds a stage, or one half of a split stage.
 */
typedef struct {
    const rp_sched_kind *kind;
    uint32_t lanes, chunks, micro;
    uint32_t stages, whole; /* of a kind that splits: number of stages, and bits of whole ones */
    rp_sched_slot *slot;
    uint32_t slot_count, slot_count_max;
    rp_sched_facts facts;
    uint32_t *copies; /* of the weights, by lane */
    uint32_t batch;   /* microbatches in a step */
    bool steady;      /* a window of a long run; times count from its beginning */
    uint32_t lead;    /* microbatches before and after the window */
} drawing;

static uint32_t stages_of(const drawing *d) {
    return d->kind->splits ? d->stages : d->lanes * d->chunks;
}

static void collect_slot(void *context, const rp_sched_slot *slot) {
    drawing *d = context;
    RP_ASSERT(d->slot_count < d->slot_count_max);
    d->slot[d->slot_count++] = *slot;
}

/* Makes a job for the schedule with its defaults; a step has one microbatch unless the method
 * accumulates. */
static rp_err make_job(rp_arena *arena, drawing *d, rp_job *out) {
    rp_node *root;
    char *text;
    rp_err err;
    d->batch = d->kind->flushed ? d->micro : 1;
    if (d->kind->accumulates) {
        d->batch = d->lanes < d->micro ? d->lanes : d->micro;
    }
    if (d->steady) { /* long enough for the effects of filling the pipes to end */
        d->lead = d->batch * (4 * d->lanes * d->chunks / d->batch + 1);
    }
    *out = (rp_job){.cut = {.stage_count = stages_of(d)},
                    .epoch_samples = d->micro + 2 * d->lead,
                    .batch = d->batch,
                    .micro = 1,
                    .steps = (d->micro + 2 * d->lead - 1) / d->batch + 1};
    RP_TRY(rp_arena_printf(arena, &text, "schedule: %s", d->kind->name));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "draw", &root));
    RP_TRY(rp_method_parse(root, stages_of(d), &out->method));
    out->method.kind = d->kind;
    out->method.chunks = d->chunks;
    out->method.whole = d->whole;
    out->method.split_count = d->whole ? d->stages : 0;
fail:
    return err;
}

/* Index of the op's microbatch in the whole run. */
static uint32_t micro_number(const drawing *d, const rp_op *op) {
    return (uint32_t)op->step * d->batch + op->micro;
}

/* Start of the forward of microbatch `number` on the first stage. */
static double find_start(const drawing *d, uint32_t number) {
    for (uint32_t i = 0; i < d->slot_count; i++) {
        const rp_sched_slot *slot = &d->slot[i];
        if (slot->stage == 0 && slot->op.kind == RP_OP_FORWARD &&
            micro_number(d, &slot->op) == number) {
            return slot->start;
        }
    }
    return 0;
}

/* Keeps only ops between the starts of two microbatches on the first stage, and computes the bubble
 * of this window. */
static void cut_window(drawing *d) {
    const double from = find_start(d, d->lead);
    const double span = find_start(d, d->lead + d->micro) - from;
    double busy = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->slot_count; i++) {
        rp_sched_slot slot = d->slot[i];
        slot.start -= from;
        slot.end -= from;
        const bool update = slot.op.kind == RP_OP_UPDATE;
        if (slot.start < span && (update ? slot.start >= 0 : slot.end > 0)) {
            d->slot[count++] = slot;
            busy += (slot.end < span ? slot.end : span) - (slot.start > 0 ? slot.start : 0);
        }
    }
    d->slot_count = count;
    d->facts.makespan = span;
    d->facts.bubble = span > 0 ? 1 - busy / (span * d->lanes) : 0;
}

/* Replays the schedule: F, B and W of a stage take `unit` each, an undivided backward `backward` *
 * `unit`. */
static rp_err play_schedule(rp_arena *arena, drawing *d, double unit, double backward) {
    rp_err err = RP_OK;
    double *cost;
    const bool split = d->kind->split_backward;
    const uint32_t stages = stages_of(d);
    const uint32_t holds = d->lanes * d->chunks;
    RP_TRY(RP_ARENA_NEW(arena, 3 * (size_t)holds, &cost));
    for (uint32_t k = 0; k < holds; k++) {
        cost[k] = cost[holds + k] = unit;
        cost[2 * holds + k] = split ? unit : unit * (backward - 1);
    }
    const rp_sched_costs costs = {.forward = cost,
                                  .backward_input = cost + holds,
                                  .backward_weight = cost + 2 * (size_t)holds};
    rp_job job;
    RP_TRY(make_job(arena, d, &job));
    const rp_sched_shape shape = rp_job_sched_shape(&job, 0, job.steps);
    d->slot_count_max = 4 * stages * (d->micro + 2 * d->lead); /* F, B, W, U */
    RP_TRY(RP_ARENA_NEW(arena, d->slot_count_max, &d->slot));
    RP_TRY(rp_sched_replay(arena, d->kind, &shape, &costs, collect_slot, d, &d->facts));
    if (d->steady) {
        cut_window(d);
    }
    RP_TRY(RP_ARENA_NEW(arena, d->lanes, &d->copies));
    for (uint32_t k = 0; d->kind->splits && k < d->lanes; k++) {
        d->copies[k] = d->facts.stage[k].versions_max;
    }
    for (job.stage = 0; job.stage < stages && !d->kind->splits; job.stage++) {
        rp_layout layout = {0};
        uint32_t *copies = &d->copies[job.stage % d->lanes];
        RP_TRY(rp_layout_count(&job, &layout));
        const uint32_t own = rp_layout_weight_copies(&layout);
        *copies = own > *copies ? own : *copies;
    }
fail:
    return err;
}

/* Largest staleness of the lane's stages. */
static uint32_t staleness_of(const drawing *d, uint32_t lane) {
    uint32_t staleness = 0;
    for (uint32_t k = lane; k < d->lanes * d->chunks; k += d->lanes) { /* holds */
        staleness = d->facts.stage[k].staleness_max > staleness ? d->facts.stage[k].staleness_max
                                                                : staleness;
    }
    return staleness;
}

static const char *lane_word(const drawing *d) {
    return d->chunks > 1 ? "node" : "stage";
}

/* Name of a lane: "stage 3"; with a kind that splits: "stage 3 F", "stage 3 B", or "stage 3 FB". */
static void lane_text(const drawing *d, uint32_t k, char *out, size_t bytes) {
    const int digits = snprintf(NULL, 0, "%u", d->lanes * d->chunks);
    if (d->kind->splits) {
        static const char *const letter[] = {
            [RP_ROLE_BOTH] = "FB", [RP_ROLE_FORWARD] = "F", [RP_ROLE_BACKWARD] = "B"};
        (void)snprintf(out, bytes, "stage %-*u %s", digits,
                       rp_sched_split_stage(d->stages, d->whole, k),
                       letter[rp_sched_split_role(d->stages, d->whole, k)]);
    } else {
        (void)snprintf(out, bytes, "%s %-*u", lane_word(d), digits, k);
    }
}

/* Letter of the op's chunk: "a", "b", ..; "" if there is only one chunk. */
static const char *chunk_letter(const drawing *d, const rp_sched_slot *slot) {
    static const char *const letters[RP_CHUNKS_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    return d->chunks > 1 ? letters[slot->stage / d->lanes] : "";
}

/* "4 stages", "1 stage", "4 nodes of 2 stages" */
static void size_text(const drawing *d, char *out, size_t bytes) {
    const uint32_t count = d->kind->splits ? stages_of(d) : d->lanes;
    const int used = snprintf(out, bytes, "%u %s%s", count, lane_word(d), count == 1 ? "" : "s");
    if (d->kind->splits) {
        (void)snprintf(out + used, bytes - (size_t)used, " on %u boards", d->lanes);
    }
    if (d->chunks > 1) {
        (void)snprintf(out + used, bytes - (size_t)used, " of %u stages", d->chunks);
    }
}

static int label_digits(const drawing *d) {
    return snprintf(NULL, 0, "%u", d->lead + d->micro - 1);
}

static const char *steady_text(const drawing *d) {
    return d->steady ? " of the steady state" : "";
}

/* In percent; rounding errors around 0 become 0. */
static double positive_bubble(const drawing *d) {
    return d->facts.bubble > 1e-9 ? 100 * d->facts.bubble : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static rp_err draw_text(FILE *out, rp_arena *arena, const drawing *d) {
    rp_err err = RP_OK;
    const uint32_t columns = (uint32_t)(d->facts.makespan + 0.5);
    const int width = 1 + (d->chunks > 1) + label_digits(d);
    char size[64];
    char lane[32];
    const rp_sched_slot **cell;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)d->lanes * columns, &cell));
    for (uint32_t i = 0; i < d->slot_count; i++) {
        const rp_sched_slot *slot = &d->slot[i];
        if (slot->end > slot->start && slot->start > -0.5) { /* updates have no column */
            cell[slot->node * columns + (uint32_t)(slot->start + 0.5)] = slot;
        }
    }
    size_text(d, size, sizeof size);
    fprintf(out, "%s, %s, %u microbatch%s%s: %u columns, bubble %.1f %%\n", d->kind->name, size,
            d->micro, d->micro == 1 ? "" : "es", steady_text(d), columns, positive_bubble(d));
    for (uint32_t k = 0; k < d->lanes; k++) {
        for (uint32_t column = 0; column < columns; column++) {
            const rp_sched_slot *slot = cell[k * columns + column];
            char text[16] = ".";
            if (slot) {
                (void)snprintf(text, sizeof text, "%s%u%s", rp_op_letter(slot->op.kind),
                               micro_number(d, &slot->op), chunk_letter(d, slot));
            }
            fprintf(out, "%-*s ", width, text);
        }
        const rp_sched_node_facts *facts = &d->facts.node[k];
        const int digits = snprintf(NULL, 0, "%u", d->lanes * d->chunks);
        lane_text(d, k, lane, sizeof lane);
        fprintf(out, "  %s  in flight %-*u", lane, digits, facts->in_flight_max);
        if (d->kind->split_backward) {
            fprintf(out, "  stashes %-*u", digits, facts->stash_max);
        }
        fprintf(out, "  versions %u  gap %u\n", d->copies[k], staleness_of(d, k));
    }
fail:
    return err;
}

/* ---- SVG ------------------------------------------------------------------------------------- */

enum { LEFT = 92, TOP = 84, LANE = 30, LANE_PITCH = 38, FACTS = 230, LEGEND = 74 };

/* Only system fonts. Colours of cells differ in lightness, and not only in red and green. */
static const char style[] =
    "<style>\n"
    "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px;"
    "fill:#24292f}\n"
    ".paper{fill:#ffffff}.lane{fill:#eef1f5}.tick{stroke:#d5dbe3;stroke-width:1}\n"
    ".title{font-size:20px;font-weight:600}.soft{fill:#65707c;font-size:12px}\n"
    ".F{fill:#2f6db3}.B{fill:#f2a33a}.I{fill:#f2a33a}.W{fill:#5bbfa8}.U{fill:#7b3f99}\n"
    ".cell text{text-anchor:middle}\n"
    ".onF{fill:#ffffff}.onB,.onI{fill:#3a2200}.onW{fill:#06291f}\n"
    "@media (prefers-color-scheme:dark){text{fill:#dfe5ec}.paper{fill:#14181d}.lane{fill:#232a32}"
    ".tick{stroke:#39424d}.soft{fill:#96a2af}.U{fill:#c58be0}.onF{fill:#ffffff}"
    ".onB,.onI{fill:#3a2200}.onW{fill:#06291f}}\n"
    "</style>\n";

static void put_escaped(FILE *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static char op_colour(rp_op_kind kind) {
    return kind == RP_OP_BACKWARD_INPUT ? 'I' : rp_op_letter(kind)[0];
}

static void put_cell(FILE *out, const drawing *d, const rp_sched_slot *slot, double unit) {
    const double start = slot->start > 0 ? slot->start : 0; /* clipped to the window */
    const double end = slot->end < d->facts.makespan ? slot->end : d->facts.makespan;
    const double x = LEFT + start * unit;
    const uint32_t y = TOP + slot->node * LANE_PITCH;
    const char kind = op_colour(slot->op.kind);
    if (slot->op.kind == RP_OP_UPDATE) { /* takes no time: a bar */
        fprintf(out, "<rect class=\"U\" x=\"%.1f\" y=\"%u\" width=\"4\" height=\"%u\" rx=\"1.5\">",
                x - 2, y - 3, LANE + 6);
        fprintf(out, "<title>stage %u: update %llu at %g</title></rect>\n", slot->stage,
                (unsigned long long)slot->op.step, slot->start);
        return;
    }
    const double wide = (end - start) * unit;
    const uint32_t label = micro_number(d, &slot->op);
    const double digits = label_digits(d);
    const double fits = (unit - 4) / (digits * 0.62); /* width of a digit: about 0.62 em */
    const double size = fits < 13 ? fits : 13;
    fprintf(out, "<g class=\"cell\"><title>stage %u: %s%u, %g to %g</title>", slot->stage,
            rp_op_letter(slot->op.kind), label, slot->start, slot->end);
    const double shade = slot->stage / d->lanes * (0.5 / d->chunks); /* later chunks are paler */
    fprintf(out, "<rect class=\"%c\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\" rx=\"3\"",
            kind, x + 0.75, y, wide - 1.5, LANE);
    if (d->chunks > 1) {
        fprintf(out, " style=\"fill-opacity:%.2f\"", 1 - shade);
    }
    fprintf(out, "/>");
    fprintf(out,
            "<text class=\"on%c\" x=\"%.1f\" y=\"%.1f\" style=\"font-size:%.1fpx\">%u</text></g>\n",
            kind, x + wide / 2, y + LANE / 2.0 + 0.36 * size, size, label);
}

static void put_lane(FILE *out, const drawing *d, uint32_t k, double wide) {
    const rp_sched_node_facts *facts = &d->facts.node[k];
    const uint32_t y = TOP + k * LANE_PITCH;
    char lane[32];
    lane_text(d, k, lane, sizeof lane);
    for (size_t end = strlen(lane); end > 0 && lane[end - 1] == ' '; end--) {
        lane[end - 1] = '\0';
    }
    fprintf(out, "<text x=\"20\" y=\"%u\">%s</text>\n", y + 20, lane);
    fprintf(out, "<rect class=\"lane\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%u\" rx=\"4\"/>\n",
            LEFT, y, wide, LANE);
    fprintf(out, "<text class=\"soft\" x=\"%.1f\" y=\"%u\">in flight %u", LEFT + wide + 18, y + 20,
            facts->in_flight_max);
    if (d->kind->split_backward) {
        fprintf(out, " \302\267 stashes %u", facts->stash_max);
    }
    fprintf(out, " \302\267 versions %u \302\267 gap %u</text>\n", d->copies[k],
            staleness_of(d, k));
}

static void put_time_axis(FILE *out, const drawing *d, double unit) {
    static const uint32_t steps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
    uint32_t step = steps[0];
    for (size_t i = 1; i < sizeof steps / sizeof steps[0] && step * unit < 60; i++) {
        step = steps[i];
    }
    const uint32_t bottom = TOP + d->lanes * LANE_PITCH;
    for (uint32_t t = 0; t <= d->facts.makespan; t += step) {
        const double x = LEFT + t * unit;
        fprintf(out, "<path class=\"tick\" d=\"M%.1f %d V%u\"/>", x, TOP - 6, bottom);
        fprintf(out, "<text class=\"soft\" x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%u</text>\n",
                x, bottom + 14, t);
    }
}

static void put_legend(FILE *out, const drawing *d) {
    const struct {
        char kind;
        const char *text;
        bool shown;
    } entry[] = {{'F', "forward", true},
                 {'B', "backward", !d->kind->split_backward},
                 {'I', "backward, input gradient", d->kind->split_backward},
                 {'W', "backward, weight gradient", d->kind->split_backward},
                 {'U', "update", true}};
    const uint32_t y = TOP + d->lanes * LANE_PITCH + 34;
    uint32_t x = LEFT;
    for (size_t i = 0; i < sizeof entry / sizeof entry[0]; i++) {
        if (entry[i].shown) {
            const uint32_t wide = entry[i].kind == 'U' ? 4 : 16;
            fprintf(out,
                    "<rect class=\"%c\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"16\" rx=\"3\"/>",
                    entry[i].kind, x + (16 - wide) / 2, y, wide);
            fprintf(out, "<text class=\"soft\" x=\"%u\" y=\"%u\">%s</text>\n", x + 24, y + 12,
                    entry[i].text);
            x += 48 + 7 * (uint32_t)strlen(entry[i].text);
        }
    }
}

static void draw_svg(FILE *out, const drawing *d) {
    const double span = d->facts.makespan;
    char size[64];
    const double unit = span <= 40 ? 28 : span >= 160 ? 14 : 28 - (span - 40) * 14 / 120;
    const double lanes = span * unit;
    const double width =
        LEFT + (lanes > 420 ? lanes : 420) + FACTS + (d->kind->split_backward ? 75 : 0);
    const uint32_t height = TOP + d->lanes * LANE_PITCH + LEGEND;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%u\" "
            "viewBox=\"0 0 %.0f %u\" role=\"img\" aria-labelledby=\"t\">\n",
            width, height, width, height);
    size_text(d, size, sizeof size);
    fprintf(out, "<title id=\"t\">Schedule %s, %s, %u microbatches</title>\n%s", d->kind->name,
            size, d->micro, style);
    fprintf(out, "<rect class=\"paper\" width=\"%.0f\" height=\"%u\" rx=\"8\"/>\n", width, height);
    fprintf(out, "<text class=\"title\" x=\"20\" y=\"36\">%s</text>\n", d->kind->name);
    fprintf(out,
            "<text x=\"%u\" y=\"36\">%s \302\267 %u microbatch%s%s \302\267 time %g \302\267 "
            "bubble %.1f %%</text>\n",
            36 + 13 * (uint32_t)strlen(d->kind->name), size, d->micro, d->micro == 1 ? "" : "es",
            steady_text(d), span, positive_bubble(d));
    fprintf(out, "<text class=\"soft\" x=\"20\" y=\"58\">");
    put_escaped(out, d->kind->source);
    fprintf(out, "</text>\n");
    for (uint32_t k = 0; k < d->lanes; k++) {
        put_lane(out, d, k, lanes);
    }
    put_time_axis(out, d, unit);
    for (uint32_t i = 0; i < d->slot_count; i++) {
        put_cell(out, d, &d->slot[i], unit);
    }
    put_legend(out, d);
    fprintf(out, "</svg>\n");
}

/* ---- entry points ---------------------------------------------------------------------------- */

static rp_err check_sizes(const drawing *d) {
    if (d->chunks > 1 && !d->kind->interleaves) {
        return rp_fail(RP_ERR_USAGE,
                       "draw: --chunks %u: schedule %s has one stage on each board; expected "
                       "interleaved-1f1b, or no --chunks",
                       d->chunks, d->kind->name);
    }
    if (d->chunks < 1 || d->chunks > RP_CHUNKS_MAX || d->lanes > RP_DRAW_STAGES_MAX / d->chunks) {
        return rp_fail(RP_ERR_USAGE,
                       "draw: expected 1 to %d chunks and at most %d stages, found %u chunks on %u "
                       "boards",
                       RP_CHUNKS_MAX, RP_DRAW_STAGES_MAX, d->chunks, d->lanes);
    }
    if (d->lanes < 1) {
        return rp_fail(RP_ERR_USAGE, "draw: expected 1 to %d stages, found %u", RP_DRAW_STAGES_MAX,
                       d->lanes);
    }
    if (d->micro < 1 || d->micro > RP_DRAW_MICRO_MAX) {
        return rp_fail(RP_ERR_USAGE, "draw: expected 1 to %d microbatches, found %u",
                       RP_DRAW_MICRO_MAX, d->micro);
    }
    if (d->steady && d->kind->flushed) {
        return rp_fail(RP_ERR_USAGE,
                       "draw: schedule %s flushes at every step, so it has no steady state",
                       d->kind->name);
    }
    return RP_OK;
}

static drawing drawing_of(const rp_draw_options *options) {
    const rp_sched_kind *kind = options->kind;
    uint32_t lanes = options->stages;
    if (kind->splits && lanes <= RP_SPLIT_STAGES_MAX) {
        lanes = rp_sched_split_nodes(lanes, options->whole);
    } else if (kind->splits && lanes <= UINT32_MAX / 2) {
        lanes *= 2; /* invalid: check_sizes() reports too many stages */
    }
    return (drawing){.kind = kind,
                     .lanes = lanes,
                     .stages = options->stages,
                     .whole = options->whole,
                     .chunks = options->chunks ? options->chunks : 1,
                     .micro = options->micro,
                     .steady = options->steady};
}

rp_err rp_draw_schedule(FILE *out, const rp_draw_options *options) {
    drawing d = drawing_of(options);
    rp_err err;
    rp_arena arena;
    rp_arena_init(&arena, "draw", 0);
    RP_TRY(check_sizes(&d));
    RP_TRY(play_schedule(&arena, &d, 1, options->svg ? 2 : 1));
    if (options->svg) {
        draw_svg(out, &d);
    } else {
        RP_TRY(draw_text(out, &arena, &d));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

typedef enum { STASHES, VERSIONS, GAP, COLUMNS } column;

static void put_by_stage(FILE *out, const drawing *d, column what) {
    for (uint32_t k = 0; k < d->lanes; k++) {
        fprintf(out, " %u",
                what == STASHES    ? d->facts.node[k].stash_max
                : what == VERSIONS ? d->copies[k]
                                   : staleness_of(d, k));
    }
    fprintf(out, " |");
}

static rp_err put_row(FILE *out, const rp_sched_kind *kind, uint32_t stages, uint32_t micro) {
    rp_err err = RP_OK;
    rp_arena arena;
    rp_arena_init(&arena, "draw", 0);
    drawing d = drawing_of(&(rp_draw_options){.kind = kind,
                                              .stages = stages,
                                              .chunks = kind->interleaves ? 2 : 1,
                                              .micro = micro,
                                              .steady = !kind->flushed});
    RP_TRY(play_schedule(&arena, &d, 1.0 / d.chunks, 2));
    fprintf(out, "| `%s` | %u x %u | %g | %.1f %% |", kind->name, stages, micro, d.facts.makespan,
            positive_bubble(&d));
    for (column what = STASHES; what < COLUMNS; what++) {
        put_by_stage(out, &d, what);
    }
    fprintf(out, "\n");
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_draw_table(FILE *out) {
    static const uint32_t sizes[][2] = {{2, 4}, {4, 4}, {4, 8}, {4, 16}, {8, 16}};
    rp_err err = RP_OK;
    fprintf(out, "| schedule | stages x microbatches | time | bubble | stashes by stage | "
                 "weight versions | gap |\n");
    fprintf(out, "|---|---|---|---|---|---|---|\n");
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            RP_TRY(put_row(out, *kind, sizes[i][0], sizes[i][1]));
        }
    }
    fprintf(out, "\nTime in units of one forward = one input gradient = one weight gradient of a "
                 "microbatch on a board; updates and sends take no time.\n"
                 "Of one step if the schedule flushes; else of as many microbatches in the steady "
                 "state, without filling and draining.\n");
fail:
    return err;
}
