#include "run/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { PIECE_FLOATS = 65536, KEEP = 2, NAME_BYTES = 64, PATH_BYTES = 512 };
static const int64_t SAVE_NS = 600 * RP_NS_PER_S;

/* ---- the list of tensors --------------------------------------------------------------------- */

/* All exported parameters in model order, then the optimiser's states of the trained ones. */
static rp_err list_tensors(rp_arena *arena, const rp_runfile *run, bool states,
                           rp_st_entry **entries, uint32_t *count) {
    const rp_model *model = run->model;
    uint32_t state_count = states ? run->optim.kind->state_count(&run->optim) : 0;
    uint32_t n = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)model->param_count * (1 + state_count) + 1, entries));
    for (uint32_t s = 0; s <= state_count; s++) {
        for (uint32_t p = 0; p < model->param_count; p++) {
            const rp_model_param *param = &model->param[p];
            if (param->role == RP_PARAM_SCRATCH || (s > 0 && param->role != RP_PARAM_TRAINED)) {
                continue;
            }
            rp_st_entry *entry = &(*entries)[n++];
            char *name;
            RP_TRY(rp_arena_printf(arena, &name, "%s%s%s%s", s ? "optim." : "",
                                   s ? run->optim.kind->state_names[s - 1] : "", s ? "." : "",
                                   param->name));
            *entry = (rp_st_entry){.name = name,
                                   .type = RP_ST_F32,
                                   .dims = param->shape.dims,
                                   .bytes = param->count * sizeof(float)};
            for (uint32_t d = 0; d < entry->dims; d++) {
                entry->dim[d] = param->shape.dim[d];
            }
        }
    }
    *count = n;
fail:
    return err;
}

static uint32_t find_entry(const rp_st_entry *entries, uint32_t count, const char *name) {
    uint32_t i = 0;
    while (i < count && strcmp(entries[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* ---- saving ---------------------------------------------------------------------------------- */

struct rp_saving {
    rp_st_entry *entries;
    uint32_t count;
    uint32_t weight_count; /* the first so many are weights */
    rp_st_writer *checkpoint, *weights;
    uint32_t boards_left;
    bool ended[RP_CUT_STAGES_MAX];
};

rp_err rp_checkpoint_message(rp_ring *ring, uint32_t stage, const rp_message *message) {
    const rp_Header *header = &message->header;
    rp_saving *saving = ring->saving;
    if (!saving) {
        return rp_fail(RP_ERR_PEER, "board %u sent tensors that nobody asked for", stage);
    }
    if (header->kind == RP_KIND_TENSORS_END) {
        if (saving->ended[stage]) {
            return rp_fail(RP_ERR_PEER, "board %u ended its tensors twice", stage);
        }
        saving->ended[stage] = true;
        saving->boards_left--;
        return RP_OK;
    }
    uint32_t index = find_entry(saving->entries, saving->count, header->text);
    if (index == saving->count || message->part_count != 1 || header->whole_count < 1) {
        return rp_fail(RP_ERR_PEER, "board %u sent tensor '%s', which the model does not have",
                       stage, header->text);
    }
    const rp_part *part = &message->part[0];
    if (header->whole[0] > saving->entries[index].bytes / sizeof(float)) {
        return rp_fail(RP_ERR_PEER, "board %u sent elements behind the end of '%s'", stage,
                       header->text);
    }
    uint64_t offset = header->whole[0] * sizeof(float);
    rp_err err = RP_OK;
    if (saving->checkpoint) {
        RP_TRY(rp_st_write(saving->checkpoint, index, offset, part->data, part->bytes));
    }
    if (saving->weights && index < saving->weight_count) {
        RP_TRY(rp_st_write(saving->weights, index, offset, part->data, part->bytes));
    }
fail:
    return err;
}

static rp_err open_writers(rp_arena *arena, rp_saving *saving, const rp_runfile *run,
                           const rp_position *position, const char *folder,
                           const char *weights_path) {
    char *path;
    char *numbers[5];
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &numbers[0], "%" PRIu64, position->step));
    RP_TRY(rp_arena_printf(arena, &numbers[1], "%" PRIu64, position->applied));
    RP_TRY(rp_arena_printf(arena, &numbers[2], "%" PRIu64, run->seed));
    RP_TRY(rp_arena_printf(arena, &numbers[3], "%u/%u", run->batch, run->micro));
    RP_TRY(rp_arena_printf(arena, &numbers[4], "%" PRIu64 " %" PRIu64 " %.17g %.17g %.17g",
                           position->samples, position->epoch_samples, position->epoch_loss,
                           position->seconds, position->segment_s));
    const char *const meta[] = {
        "format", "pt",       "step",   numbers[0],      "applied",  numbers[1],
        "seed",   numbers[2], "model",  run->model_name, "schedule", run->sched->name,
        "batch",  numbers[3], "totals", numbers[4],      NULL};
    const char *const plain[] = {"format", "pt", NULL};
    if (folder) {
        RP_TRY(rp_arena_printf(arena, &path, "%s/step-%010" PRIu64 ".safetensors", folder,
                               position->step));
        RP_TRY(
            rp_st_create(arena, path, saving->entries, saving->count, meta, &saving->checkpoint));
    }
    if (weights_path) {
        RP_TRY(rp_st_create(arena, weights_path, saving->entries, saving->weight_count, plain,
                            &saving->weights));
    }
fail:
    return err;
}

static bool is_checkpoint(const char *name) {
    static const char end[] = ".safetensors";
    size_t length = strlen(name);
    return strncmp(name, "step-", 5) == 0 && length > sizeof end && length < NAME_BYTES &&
           strcmp(name + length - (sizeof end - 1), end) == 0;
}

/* The KEEP newest checkpoints of a folder by name, which is by step; "" where there is none. */
static void find_newest(DIR *dir, char newest[KEEP][NAME_BYTES]) {
    const struct dirent *entry;
    memset(newest, 0, KEEP * NAME_BYTES);
    while ((entry = readdir(dir))) {
        for (int i = 0; is_checkpoint(entry->d_name) && i < KEEP; i++) {
            if (strcmp(entry->d_name, newest[i]) > 0) {
                memmove(newest[i + 1 < KEEP ? i + 1 : i], newest[i],
                        (size_t)(KEEP - 1 - i) * NAME_BYTES);
                memcpy(newest[i], entry->d_name, strlen(entry->d_name) + 1);
                break;
            }
        }
    }
    rewinddir(dir);
}

static void remove_old(const char *folder) {
    char newest[KEEP][NAME_BYTES];
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    if (!dir) {
        return;
    }
    find_newest(dir, newest);
    while ((entry = readdir(dir))) {
        if (is_checkpoint(entry->d_name) && strcmp(entry->d_name, newest[KEEP - 1]) < 0) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    (void)closedir(dir);
}

rp_err rp_checkpoint_save(rp_ring *ring, const rp_position *position, const char *folder,
                          const char *weights_path) {
    rp_arena arena;
    rp_arena_init(&arena, "checkpoint", 0);
    rp_saving own = {0};
    rp_saving *saving = &own;
    rp_st_entry *weights;
    rp_err err;
    RP_TRY(list_tensors(&arena, ring->run, false, &weights, &saving->weight_count));
    RP_TRY(list_tensors(&arena, ring->run, true, &saving->entries, &saving->count));
    if (folder && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        err = rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
        goto fail;
    }
    RP_TRY(open_writers(&arena, saving, ring->run, position, folder, weights_path));
    ring->saving = saving;
    saving->boards_left = ring->count;
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_SAVE;
    RP_TRY(rp_ring_send_all(ring, &header));
    int64_t deadline_ns = rp_clock_now_ns(&ring->clock) + SAVE_NS;
    while (saving->boards_left > 0) {
        RP_TRY(rp_ring_pump(ring, -1, 50 * RP_NS_PER_MS));
        if (rp_clock_now_ns(&ring->clock) > deadline_ns) {
            err =
                rp_fail(RP_ERR_TIMEOUT, "%u boards did not send their tensors within %" PRId64 " s",
                        saving->boards_left, SAVE_NS / RP_NS_PER_S);
            goto fail;
        }
    }
    if (saving->weights) { /* before the checkpoint that says that the run is over */
        RP_TRY(rp_st_commit(&saving->weights));
    }
    if (saving->checkpoint) {
        RP_TRY(rp_st_commit(&saving->checkpoint));
        remove_old(folder);
    }
fail:
    rp_st_abandon(&saving->checkpoint);
    rp_st_abandon(&saving->weights);
    ring->saving = NULL;
    rp_arena_finish(&arena);
    return err;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* A checkpoint of another run would go on as something that is neither. */
static rp_err check_same_run(const rp_st_reader *reader, const rp_runfile *run, const char *path) {
    char seed[32];
    char batch[32];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, run->seed);
    (void)snprintf(batch, sizeof batch, "%u/%u", run->batch, run->micro);
    const char *const own[][2] = {{"seed", seed},
                                  {"batch", batch},
                                  {"model", run->model_name},
                                  {"schedule", run->sched->name}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const char *was = rp_st_meta(reader, own[i][0]);
        if (!was || strcmp(was, own[i][1]) != 0) {
            return rp_fail(RP_ERR_USAGE, "%s: was made with %s %s, the run file says %s", path,
                           own[i][0], was ? was : "unknown", own[i][1]);
        }
    }
    return RP_OK;
}

static rp_err read_position(const rp_st_reader *reader, const rp_runfile *run, const char *path,
                            rp_position *position) {
    const char *step = rp_st_meta(reader, "step");
    const char *applied = rp_st_meta(reader, "applied");
    const char *totals = rp_st_meta(reader, "totals");
    if (!step || !applied || !totals ||
        sscanf(totals, "%" SCNu64 " %" SCNu64 " %lf %lf %lf", &position->samples,
               &position->epoch_samples, &position->epoch_loss, &position->seconds,
               &position->segment_s) != 5) {
        return rp_fail(RP_ERR_FORMAT, "%s: not a checkpoint: no `step`, `applied`, `totals`", path);
    }
    position->step = strtoull(step, NULL, 10);
    position->applied = strtoull(applied, NULL, 10);
    if (position->step > run->steps) {
        return rp_fail(RP_ERR_USAGE, "%s: is at step %" PRIu64 ", the run ends at %" PRIu64, path,
                       position->step, run->steps);
    }
    return check_same_run(reader, run, path);
}

static void evaluated_path(const char *folder, const char *end, char *out, size_t bytes) {
    (void)snprintf(out, bytes, "%s/evaluated%s", folder, end);
}

rp_err rp_checkpoint_mark_evaluated(const char *folder, const rp_position *position) {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES];
    evaluated_path(folder, "", path, sizeof path);
    evaluated_path(folder, ".tmp", temporary, sizeof temporary);
    FILE *file = fopen(temporary, "w");
    bool good =
        file && fprintf(file, "%" PRIu64 " %.17g %" PRIu64 " %" PRIu64 "\n", position->step,
                        position->eval_loss, position->eval_samples, position->eval_correct) > 0;
    good = (!file || fclose(file) == 0) && good;
    return good && rename(temporary, path) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
}

/* Whether the evaluation at the position's step has been done, and what it gave. */
static void read_evaluated(const char *folder, rp_position *position) {
    char path[PATH_BYTES];
    char line[128] = "";
    uint64_t step;
    evaluated_path(folder, "", path, sizeof path);
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, sizeof line, file) &&
                sscanf(line, "%" SCNu64 " %lf %" SCNu64 " %" SCNu64, &step, &position->eval_loss,
                       &position->eval_samples, &position->eval_correct) == 4;
    if (file) {
        (void)fclose(file);
    }
    position->evaluated = read && step == position->step && position->eval_samples > 0;
}

rp_err rp_checkpoint_find(rp_arena *arena, const rp_runfile *run, const char *folder, char **path,
                          rp_position *position) {
    char newest[KEEP][NAME_BYTES] = {{0}};
    DIR *dir = opendir(folder);
    if (dir) {
        find_newest(dir, newest);
        (void)closedir(dir);
    }
    *path = NULL;
    if (!newest[0][0]) {
        return RP_OK;
    }
    rp_err err = rp_arena_printf(arena, path, "%s/%s", folder, newest[0]);
    rp_st_reader *reader = NULL;
    if (err == RP_OK) {
        err = rp_st_open(arena, *path, &reader);
    }
    if (err == RP_OK) {
        err = read_position(reader, run, *path, position);
    }
    rp_st_close(&reader);
    if (err == RP_OK) {
        read_evaluated(folder, position);
    }
    return err;
}

rp_err rp_checkpoint_check(const rp_runfile *run, const char *path, bool states) {
    rp_arena arena;
    rp_arena_init(&arena, "weights file", 0);
    rp_st_reader *reader = NULL;
    rp_st_entry *entries;
    uint32_t count;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(list_tensors(&arena, run, states, &entries, &count));
    for (uint32_t i = 0; i < count; i++) {
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entries[i].name, entries[i].dims, entries[i].dim, &values));
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

/* The stage that holds parameter `name` ("optim.<state>." taken off). */
static uint32_t stage_of(const rp_model *model, const rp_cut *cut, const char *name) {
    const char *own = name;
    if (strncmp(name, "optim.", 6) == 0) {
        const char *dot = strchr(name + 6, '.');
        own = dot ? dot + 1 : name;
    }
    uint32_t param = rp_model_find_param(model, own);
    RP_ASSERT(param < model->param_count);
    uint32_t stage = 0;
    while (model->param[param].layer >= cut->first[stage + 1]) {
        stage++;
    }
    return stage;
}

static rp_err send_tensor(rp_ring *ring, uint32_t stage, const rp_st_entry *entry,
                          const float *values) {
    size_t total = entry->bytes / sizeof(float);
    for (size_t first = 0; first < total; first += PIECE_FLOATS) {
        size_t count = total - first < PIECE_FLOATS ? total - first : PIECE_FLOATS;
        rp_Header header = rp_Header_init_zero;
        header.kind = RP_KIND_TENSOR;
        (void)snprintf(header.text, sizeof header.text, "%s", entry->name);
        header.whole_count = 1;
        header.whole[0] = first;
        rp_shape shape = rp_shape_1((uint32_t)count);
        rp_frame_add_shape(&header, &shape);
        rp_part part = {values + first, count * sizeof(float)};
        rp_err err = rp_ring_send(ring, stage, &header, &part, 1);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_checkpoint_load(rp_ring *ring, const rp_cut *cut, const char *path, bool states,
                          uint64_t applied) {
    rp_arena arena;
    rp_arena_init(&arena, "weights file", 0);
    rp_st_reader *reader = NULL;
    rp_st_entry *entries;
    uint32_t count;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(list_tensors(&arena, ring->run, states, &entries, &count));
    for (uint32_t i = 0; i < count; i++) {
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entries[i].name, entries[i].dims, entries[i].dim, &values));
        RP_TRY(send_tensor(ring, stage_of(ring->run->model, cut, entries[i].name), &entries[i],
                           values));
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_TENSORS_END;
    header.whole_count = 1;
    header.whole[0] = applied;
    RP_TRY(rp_ring_send_all(ring, &header));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}
