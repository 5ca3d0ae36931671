#include "agent/assignment.h"

#include <stdio.h>
#include <string.h>

enum { TEXTS = 3 };

typedef struct {
    const char *at;
    size_t bytes;
} text;

typedef struct book book;

struct book {
    book *next;
    rp_arena arena; /* holds everything, including this struct */
    text text[TEXTS];
    rp_agent_reading reading;
    uint32_t borrowers;
};

struct rp_agent_library {
    book *first; /* the one that was lent last */
};

/* ---- reading --------------------------------------------------------------------------------- */

static rp_err check_ties(rp_arena *arena, const rp_plan *plan, const rp_job *job) {
    rp_cut cut;
    rp_err err = rp_plan_cut(arena, plan, job->model, &cut);
    return err == RP_OK ? rp_method_fit_ties(&plan->method, &job->optim, job->model, &cut) : err;
}

static rp_err read_texts(rp_arena *arena, const text *texts, rp_agent_reading *out) {
    rp_node *model;
    rp_plan *plan;
    rp_err err;
    *out = (rp_agent_reading){0};
    RP_TRY(rp_config_read_text(arena, texts[0].at, texts[0].bytes, "assignment", &out->root));
    RP_TRY(rp_config_read_text(arena, texts[1].at, texts[1].bytes, "model", &model));
    RP_TRY(rp_job_parse(arena, out->root, model, &out->job));
    out->own = out->root;
    if (texts[2].at) {
        RP_TRY(rp_plan_parse(arena, texts[2].at, texts[2].bytes, "plan", &plan));
        RP_TRY(rp_plan_check(plan, out->job.model));
        RP_TRY(rp_plan_check_training(plan, out->job.model));
        RP_TRY(check_ties(arena, plan, &out->job));
        out->plan = plan;
    }
fail:
    return err;
}

/* ---- own lines ------------------------------------------------------------------------------- */

/* Splits a job's text, which begins with a board's own line, `stage`, and ends with its own lines,
 * `peers` and `throttle`, as rp_runfile_assignment() writes it. Returns false for any other
 * form. */
static bool split_job(text job, text *common, text *stage, text *peers) {
    static const char key[] = "\npeers:\n";
    const char *line = memchr(job.at, '\n', job.bytes);
    const char *tail = memmem(job.at, job.bytes, key, sizeof key - 1);
    if (job.bytes < 6 || memcmp(job.at, "stage:", 6) != 0 || !line || !tail || tail <= line) {
        return false;
    }
    *stage = (text){job.at, (size_t)(line + 1 - job.at)};
    *common = (text){line + 1, (size_t)(tail - line)};
    *peers = (text){tail + 1, job.bytes - (size_t)(tail + 1 - job.at)};
    return true;
}

static rp_err read_own(rp_arena *arena, text stage, text peers, rp_node **out) {
    char *lines;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, stage.bytes + peers.bytes + 1, &lines));
    memcpy(lines, stage.at, stage.bytes);
    memcpy(lines + stage.bytes, peers.at, peers.bytes);
    RP_TRY(rp_config_read_text(arena, lines, stage.bytes + peers.bytes, "assignment", out));
fail:
    return err;
}

/* ---- books ----------------------------------------------------------------------------------- */

static void free_book(book *b) {
    rp_arena arena = b->arena;
    rp_arena_finish(&arena);
}

/* Frees all books that are not lent, except the first. */
static void free_unused(rp_agent_library *library) {
    for (book **at = library->first ? &library->first->next : &library->first; *at;) {
        book *b = *at;
        if (b->borrowers > 0) {
            at = &b->next;
        } else {
            *at = b->next;
            free_book(b);
        }
    }
}

static rp_err copy_text(rp_arena *arena, text from, text *out) {
    char *copy;
    rp_err err = rp_arena_text(arena, from.at, from.bytes, &copy);
    *out = (text){copy, from.bytes};
    return err;
}

static rp_err add_book(rp_agent_library *library, const text *texts) {
    static const char any_stage[] = "stage: 0\n";
    rp_arena arena;
    text read[TEXTS];
    char *job;
    book *b;
    rp_err err;
    rp_arena_init(&arena, "assignment in common", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &b));
    for (uint32_t i = 0; i < TEXTS; i++) {
        RP_TRY(copy_text(&arena, texts[i], &b->text[i]));
        read[i] = b->text[i];
    }
    RP_TRY(rp_arena_printf(&arena, &job, "%s%s", any_stage, b->text[0].at));
    read[0] = (text){job, strlen(job)};
    RP_TRY(read_texts(&arena, read, &b->reading));
    b->reading.library = library;
    b->reading.loan = b;
    b->arena = arena;
    b->next = library->first;
    library->first = b;
    return RP_OK;
fail:
    rp_arena_finish(&arena);
    return err;
}

static bool is_of(const book *b, const text *texts) {
    for (uint32_t i = 0; i < TEXTS; i++) {
        if (b->text[i].bytes != texts[i].bytes ||
            memcmp(b->text[i].at, texts[i].at, texts[i].bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* Moves the book with these texts to the front. */
static bool find_book(rp_agent_library *library, const text *texts) {
    for (book **at = &library->first; *at; at = &(*at)->next) {
        book *b = *at;
        if (is_of(b, texts)) {
            *at = b->next;
            b->next = library->first;
            library->first = b;
            return true;
        }
    }
    return false;
}

rp_err rp_agent_library_open(rp_arena *arena, rp_agent_library **out) {
    return RP_ARENA_NEW(arena, 1, out);
}

void rp_agent_library_close(rp_agent_library **taken) {
    rp_agent_library *library = *taken;
    *taken = NULL;
    while (library && library->first) {
        book *b = library->first;
        RP_ASSERT(b->borrowers == 0);
        library->first = b->next;
        free_book(b);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

rp_err rp_agent_read(rp_arena *arena, rp_agent_library *library, const rp_part *parts,
                     uint32_t count, rp_agent_reading *out) {
    text texts[TEXTS] = {{NULL, 0}};
    text stage;
    text peers;
    rp_node *own;
    rp_err err;
    for (uint32_t i = 0; i < count && i < TEXTS; i++) {
        texts[i] = (text){parts[i].data, parts[i].bytes};
    }
    if (!library || count < TEXTS || !split_job(texts[0], &texts[0], &stage, &peers)) {
        return read_texts(arena, texts, out);
    }
    RP_TRY(read_own(arena, stage, peers, &own));
    if (!find_book(library, texts)) {
        RP_TRY(add_book(library, texts));
    }
    library->first->borrowers++;
    *out = library->first->reading;
    out->own = own;
    RP_TRY(rp_throttle_parse(own, &out->job.throttle));
fail:
    free_unused(library);
    return err;
}

void rp_agent_end_reading(rp_agent_reading *reading) {
    for (book *b = reading->library ? reading->library->first : NULL; b; b = b->next) {
        b->borrowers -= b == reading->loan;
    }
    if (reading->library) {
        free_unused(reading->library);
    }
    *reading = (rp_agent_reading){0};
}
