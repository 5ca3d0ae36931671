#include "run/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runner.h"
#include "base/log.h"

enum { PIECE_FLOATS = 65536, KEEP = 2, NAME_BYTES = 64, PATH_BYTES = 512 };
static const int64_t SAVE_NS = 600 * RP_NS_PER_S;

/* ---- the list of tensors --------------------------------------------------------------------- */

typedef struct {
    rp_st_entry *entry;
    uint32_t *param; /* of the model, by entry */
    uint32_t count;
} tensor_list;

static rp_err add_tensor(rp_arena *arena, const rp_model *model, uint32_t index, const char *prefix,
                         const char *state, tensor_list *list) {
    const rp_model_param *param = &model->param[index];
    rp_st_entry *entry = &list->entry[list->count];
    char *name;
    rp_err err = rp_arena_printf(arena, &name, "%s%s%s%s%s", prefix, state ? "optim." : "",
                                 state ? state : "", state ? "." : "", param->name);
    *entry = (rp_st_entry){.name = name,
                           .type = RP_ST_F32,
                           .dims = param->shape.dims,
                           .bytes = param->count * sizeof(float)};
    for (uint32_t d = 0; d < entry->dims; d++) {
        entry->dim[d] = param->shape.dim[d];
    }
    list->param[list->count++] = index;
    return err;
}

/* What one set holds: its values unless it is the evaluated model's, and the optimiser's states. */
static rp_err add_set(rp_arena *arena, const rp_runfile *run, const char *prefix, bool values,
                      bool states, tensor_list *list) {
    const rp_model *model = run->model;
    const uint32_t count = states ? run->optim.kind->state_count(&run->optim) : 0;
    rp_err err = RP_OK;
    for (uint32_t s = 0; s < count + values; s++) {
        const uint32_t state = s - values;
        const bool is_value = values && s == 0;
        for (uint32_t p = 0; p < model->param_count; p++) {
            if (model->param[p].role == RP_PARAM_TRAINED) {
                RP_TRY(add_tensor(arena, model, p, prefix,
                                  is_value ? NULL : run->optim.kind->state_names[state], list));
            }
        }
    }
fail:
    return err;
}

/* The evaluated model in model order; with `states` also what the method and the optimiser hold. */
static rp_err list_tensors(rp_arena *arena, const rp_runfile *run, bool states, tensor_list *list) {
    const rp_model *model = run->model;
    const uint32_t sets = states ? rp_method_set_count(&run->method) : 0;
    const bool replicas = run->method.kind->average != RP_AVERAGE_NONE;
    const size_t most = (size_t)model->param_count * (2 + sets) * (1 + RP_OPTIM_STATES_MAX);
    rp_err err;
    *list = (tensor_list){0};
    RP_TRY(RP_ARENA_NEW(arena, most + 1, &list->entry));
    RP_TRY(RP_ARENA_NEW(arena, most + 1, &list->param));
    for (uint32_t p = 0; p < model->param_count; p++) {
        if (model->param[p].role != RP_PARAM_SCRATCH) {
            RP_TRY(add_tensor(arena, model, p, "", NULL, list));
        }
    }
    for (uint32_t set = 0; set < sets; set++) {
        char prefix[32];
        rp_method_set_prefix(&run->method, set, prefix, sizeof prefix);
        RP_TRY(add_set(arena, run, prefix, true, replicas, list));
    }
    if (states && !replicas) {
        RP_TRY(add_set(arena, run, "", false, true, list));
    }
fail:
    return err;
}

static uint32_t find_entry(const tensor_list *list, const char *name) {
    uint32_t i = 0;
    while (i < list->count && strcmp(list->entry[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* ---- saving ---------------------------------------------------------------------------------- */

struct rp_saving {
    tensor_list list;
    uint32_t weight_count; /* the first so many are weights */
    rp_st_writer *checkpoint, *weights, *flight;
    uint64_t fill; /* of what is in flight */
    uint32_t boards_left;
    bool ended[RP_CUT_STAGES_MAX];
};

static rp_err save_flight(rp_saving *saving, uint32_t stage, const rp_message *message) {
    if (message->part_count != 1 || message->header.whole_count < 3 || !saving->flight) {
        return rp_fail(RP_ERR_PEER, "board %u sent microbatches in flight that nobody asked for",
                       stage);
    }
    const rp_part *part = &message->part[0];
    return rp_st_write(saving->flight, stage, message->header.whole[0], part->data, part->bytes);
}

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
    if (strcmp(header->text, RP_FLIGHT_NAME) == 0) {
        return save_flight(saving, stage, message);
    }
    uint32_t index = find_entry(&saving->list, header->text);
    if (index == saving->list.count || message->part_count != 1 || header->whole_count < 1) {
        return rp_fail(RP_ERR_PEER, "board %u sent tensor '%s', which the model does not have",
                       stage, header->text);
    }
    const rp_part *part = &message->part[0];
    if (header->whole[0] > saving->list.entry[index].bytes / sizeof(float)) {
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

/* "a,b;c,d": updates done by replica, stage by stage. */
static rp_err applied_text(rp_arena *arena, const rp_ring *ring, char **out) {
    enum { NUMBER = 21 };
    const size_t bytes = (size_t)ring->count * RP_REPLICAS_MAX * NUMBER + 1;
    rp_err err = RP_ARENA_NEW(arena, bytes, out);
    size_t used = 0;
    for (uint32_t k = 0; err == RP_OK && k < ring->count; k++) {
        const uint32_t replicas = rp_method_replicas(&ring->run->method, ring->count, k);
        for (uint32_t r = 0; r < replicas; r++) {
            const int more = snprintf(*out + used, bytes - used, "%s%" PRIu64,
                                      r   ? ","
                                      : k ? ";"
                                          : "",
                                      ring->board[k].applied[r]);
            used += more > 0 ? (size_t)more : 0;
        }
    }
    return err;
}

/* Names of the stages' first layers: the cut that bytes in flight belong to. */
static rp_err cut_text(rp_arena *arena, const rp_model *model, const rp_cut *cut, char **out) {
    rp_err err = rp_arena_string(arena, "", out);
    for (uint32_t k = 0; err == RP_OK && k < cut->stage_count; k++) {
        err = rp_arena_printf(arena, out, "%s%s%s", *out, k ? "," : "",
                              model->layer[cut->first[k]].name);
    }
    return err;
}

/* What lies beside a checkpoint, under its name. */
static rp_err path_beside(rp_arena *arena, const char *checkpoint, const char *end, char **out) {
    const size_t stem = strlen(checkpoint) - strlen(".safetensors");
    return rp_arena_printf(arena, out, "%.*s%s", (int)stem, checkpoint, end);
}

static rp_err save_steer(rp_arena *arena, const rp_steer *steer, const char *folder,
                         uint64_t step) {
    const size_t count = rp_steer_size(steer);
    const rp_st_entry entry = {.name = "steer",
                               .type = RP_ST_F64,
                               .dims = 1,
                               .dim = {count},
                               .bytes = count * sizeof(double)};
    const char *const none[] = {NULL};
    rp_st_writer *writer = NULL;
    double *values;
    char *path;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count, &values));
    rp_steer_pack(steer, values);
    RP_TRY(rp_arena_printf(arena, &path, "%s/step-%010" PRIu64 ".steer", folder, step));
    RP_TRY(rp_st_create(arena, path, &entry, 1, none, &writer));
    RP_TRY(rp_st_write(writer, 0, 0, values, count * sizeof *values));
    RP_TRY(rp_st_commit(&writer));
fail:
    rp_st_abandon(&writer);
    return err;
}

/* One entry of bytes a stage; written before the checkpoint that it belongs to. */
static rp_err open_flight(rp_arena *arena, rp_saving *saving, const rp_ring *ring,
                          const rp_cut *cut, const char *checkpoint) {
    rp_st_entry *entry;
    uint64_t bytes = 0;
    char *path;
    char *made_for;
    char *fill;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &entry));
    for (uint32_t k = 0; k < ring->count; k++) {
        char *name;
        RP_TRY(rp_arena_printf(arena, &name, "stage.%u", k));
        entry[k] = (rp_st_entry){.name = name,
                                 .type = RP_ST_U8,
                                 .dims = 1,
                                 .dim = {ring->board[k].flight_bytes},
                                 .bytes = ring->board[k].flight_bytes};
        bytes += ring->board[k].flight_bytes;
    }
    if (bytes == 0) {
        return RP_OK;
    }
    RP_TRY(cut_text(arena, ring->run->model, cut, &made_for));
    RP_TRY(rp_arena_printf(arena, &fill, "%" PRIu64, saving->fill));
    const char *const meta[] = {"cut", made_for, "fill", fill, NULL};
    RP_TRY(path_beside(arena, checkpoint, ".flight", &path));
    RP_TRY(rp_st_create(arena, path, entry, ring->count, meta, &saving->flight));
fail:
    return err;
}

static rp_err open_writers(rp_arena *arena, rp_saving *saving, const rp_ring *ring,
                           const rp_cut *cut, const rp_position *position, const char *folder,
                           const char *weights_path) {
    const rp_runfile *run = ring->run;
    char *path;
    char *numbers[5];
    char *cut_names;
    char method[256];
    rp_err err;
    rp_method_text(&run->method, method, sizeof method);
    RP_TRY(cut_text(arena, run->model, cut, &cut_names));
    RP_TRY(rp_arena_printf(arena, &numbers[0], "%" PRIu64, position->step));
    RP_TRY(applied_text(arena, ring, &numbers[1]));
    RP_TRY(rp_arena_printf(arena, &numbers[2], "%" PRIu64, run->seed));
    RP_TRY(rp_arena_printf(arena, &numbers[3], "%u/%u", run->batch, run->micro));
    RP_TRY(rp_arena_printf(arena, &numbers[4], "%" PRIu64 " %" PRIu64 " %.17g %.17g %.17g",
                           position->samples, position->epoch_samples, position->epoch_loss,
                           position->seconds, position->segment_s));
    const char *const meta[] = {
        "format", "pt",       "step",   numbers[0],      "applied",  numbers[1],
        "seed",   numbers[2], "model",  run->model_name, "schedule", run->method.kind->name,
        "batch",  numbers[3], "totals", numbers[4],      "cut",      cut_names,
        "method", method,     NULL};
    const char *const plain[] = {"format", "pt", NULL};
    if (folder) {
        RP_TRY(rp_arena_printf(arena, &path, "%s/step-%010" PRIu64 ".safetensors", folder,
                               position->step));
        RP_TRY(open_flight(arena, saving, ring, cut, path));
        RP_TRY(rp_st_create(arena, path, saving->list.entry, saving->list.count, meta,
                            &saving->checkpoint));
    }
    if (weights_path) {
        RP_TRY(rp_st_create(arena, weights_path, saving->list.entry, saving->weight_count, plain,
                            &saving->weights));
    }
fail:
    return err;
}

static bool ends_in(const char *name, const char *end) {
    const size_t length = strlen(name);
    return strncmp(name, "step-", 5) == 0 && length > strlen(end) + 5 && length < NAME_BYTES &&
           strcmp(name + length - strlen(end), end) == 0;
}

static bool is_checkpoint(const char *name) {
    return ends_in(name, ".safetensors");
}

static bool is_of_checkpoint(const char *name) {
    return ends_in(name, ".safetensors") || ends_in(name, ".flight") || ends_in(name, ".steer");
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
        if (is_of_checkpoint(entry->d_name) && strcmp(entry->d_name, newest[KEEP - 1]) < 0) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    (void)closedir(dir);
}

rp_err rp_checkpoint_save(rp_ring *ring, const rp_cut *cut, const rp_steer *steer,
                          const rp_position *position, const char *folder,
                          const char *weights_path) {
    rp_arena arena;
    rp_arena_init(&arena, "checkpoint", 0);
    rp_saving own = {0};
    rp_saving *saving = &own;
    tensor_list weights;
    rp_err err;
    RP_TRY(list_tensors(&arena, ring->run, false, &weights));
    RP_TRY(list_tensors(&arena, ring->run, true, &saving->list));
    saving->weight_count = weights.count;
    saving->fill = position->fill;
    if (folder && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        err = rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
        goto fail;
    }
    RP_TRY(open_writers(&arena, saving, ring, cut, position, folder, weights_path));
    if (folder && steer) {
        RP_TRY(save_steer(&arena, steer, folder, position->step));
    }
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
    if (saving->flight) {
        RP_TRY(rp_st_commit(&saving->flight));
    }
    if (saving->checkpoint) {
        RP_TRY(rp_st_commit(&saving->checkpoint));
        remove_old(folder);
    }
fail:
    rp_st_abandon(&saving->flight);
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
    char method[256];
    rp_method_text(&run->method, method, sizeof method);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, run->seed);
    (void)snprintf(batch, sizeof batch, "%u/%u", run->batch, run->micro);
    const char *const own[][2] = {{"seed", seed},
                                  {"batch", batch},
                                  {"model", run->model_name},
                                  {"schedule", run->method.kind->name},
                                  {"method", method}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const char *was = rp_st_meta(reader, own[i][0]);
        if (!was || strcmp(was, own[i][1]) != 0) {
            return rp_fail(RP_ERR_USAGE, "%s: was made with %s %s, the run file says %s", path,
                           own[i][0], was ? was : "unknown", own[i][1]);
        }
    }
    return RP_OK;
}

/* The cut by the names of the stages' first layers; stage_count 0 when they are not this model's.
 */
static rp_cut read_cut(const rp_model *model, const char *names) {
    rp_cut cut = {0};
    for (const char *at = names; at && *at;) {
        const size_t length = strcspn(at, ",");
        uint32_t layer = 0;
        while (layer < model->layer_count && (strncmp(model->layer[layer].name, at, length) != 0 ||
                                              model->layer[layer].name[length] != '\0')) {
            layer++;
        }
        const bool in_order =
            cut.stage_count == 0 ? layer == 0 : layer > cut.first[cut.stage_count - 1];
        if (layer == model->layer_count || !in_order || cut.stage_count == RP_CUT_STAGES_MAX) {
            return (rp_cut){0};
        }
        cut.first[cut.stage_count++] = layer;
        at += length + (at[length] == ',');
    }
    cut.first[cut.stage_count] = model->layer_count;
    return cut;
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
    position->cut = read_cut(run->model, rp_st_meta(reader, "cut"));
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
    tensor_list list;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(list_tensors(&arena, run, states, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        const rp_st_entry *entry = &list.entry[i];
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entry->name, entry->dims, entry->dim, &values));
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

static uint32_t stage_of(const rp_model *model, const rp_cut *cut, uint32_t param) {
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

/* On as many stages as before each gets its own; on others all get the most of any: they differ
 * only where a stage has skipped a step of its own. */
static void read_applied(const char *text, rp_ring *ring) {
    uint64_t most[RP_REPLICAS_MAX] = {0};
    uint32_t stages = 0;
    for (const char *at = text; at && *at; stages++) {
        for (uint32_t r = 0; *at && *at != ';'; r++) {
            char *end;
            const uint64_t value = strtoull(at, &end, 10);
            if (end == at || r == RP_REPLICAS_MAX) {
                return; /* not ours: a fresh start */
            }
            most[r] = value > most[r] ? value : most[r];
            if (stages < ring->count) {
                ring->board[stages].applied[r] = value;
            }
            at = end + (*end == ',');
        }
        at += *at == ';';
    }
    for (uint32_t k = 0; stages != ring->count && k < ring->count; k++) {
        memcpy(ring->board[k].applied, most, sizeof most);
    }
}

static rp_err send_applied(rp_ring *ring) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count; k++) {
        const uint32_t replicas = rp_method_replicas(&ring->run->method, ring->count, k);
        rp_Header header = rp_Header_init_zero;
        header.kind = RP_KIND_TENSORS_END;
        const rp_part part = {ring->board[k].applied, replicas * sizeof(uint64_t)};
        RP_TRY(rp_ring_send(ring, k, &header, &part, 1));
    }
fail:
    return err;
}

static rp_err send_flight(rp_ring *ring, uint32_t stage, uint64_t fill, const char *bytes,
                          size_t count) {
    const size_t most = PIECE_FLOATS * sizeof(float);
    for (size_t first = 0; first < count; first += most) {
        const size_t rest = count - first;
        const rp_part part = {bytes + first, rest < most ? rest : most};
        rp_Header header = rp_Header_init_zero;
        header.kind = RP_KIND_TENSOR;
        (void)snprintf(header.text, sizeof header.text, "%s", RP_FLIGHT_NAME);
        header.whole_count = 3;
        header.whole[0] = first;
        header.whole[1] = count;
        header.whole[2] = fill;
        rp_shape shape = rp_shape_1((uint32_t)(part.bytes / sizeof(float)));
        rp_frame_add_shape(&header, &shape);
        rp_err err = rp_ring_send(ring, stage, &header, &part, 1);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

/* The flight file's entries of all stages, or an error that says what does not fit. */
static rp_err send_flights(rp_ring *ring, const rp_st_reader *reader, const char *path,
                           uint64_t fill) {
    for (uint32_t k = 0; k < ring->count; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "stage.%u", k);
        const rp_st_entry *entry = rp_st_find(reader, name);
        if (!entry || entry->type != RP_ST_U8 || entry->bytes % sizeof(float)) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s: missing, or not a run of bytes", path, name);
        }
        rp_err err = send_flight(ring, k, fill, rp_st_data(reader, entry), entry->bytes);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_checkpoint_load_steer(const char *path, rp_steer *steer) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    char *beside;
    rp_err err;
    rp_arena_init(&arena, "trust", 0);
    RP_TRY(path_beside(&arena, path, ".steer", &beside));
    RP_TRY(rp_st_open(&arena, beside, &reader));
    const rp_st_entry *entry = rp_st_find(reader, "steer");
    if (!entry || entry->type != RP_ST_F64 ||
        entry->bytes != rp_steer_size(steer) * sizeof(double)) {
        err = rp_fail(RP_ERR_FORMAT, "%s: is not the trust in predictions of this model", beside);
        goto fail;
    }
    double *values;
    RP_TRY(RP_ARENA_NEW(&arena, rp_steer_size(steer), &values));
    memcpy(values, rp_st_data(reader, entry), entry->bytes);
    RP_TRY(rp_steer_unpack(steer, values));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_checkpoint_load_flight(rp_ring *ring, const rp_cut *cut, const char *path, uint64_t step,
                                 uint64_t *fill) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    char *beside;
    char *own_cut;
    rp_err err;
    rp_arena_init(&arena, "in flight", 0);
    *fill = step;
    RP_TRY(path_beside(&arena, path, ".flight", &beside));
    if (access(beside, F_OK) != 0) {
        goto fail;
    }
    RP_TRY(rp_st_open(&arena, beside, &reader));
    RP_TRY(cut_text(&arena, ring->run->model, cut, &own_cut));
    const char *made_for = rp_st_meta(reader, "cut");
    const char *filled = rp_st_meta(reader, "fill");
    if (!made_for || !filled) {
        err = rp_fail(RP_ERR_FORMAT, "%s: has no `cut` and `fill`", beside);
        goto fail;
    }
    if (strcmp(made_for, own_cut) == 0) {
        const uint64_t from = strtoull(filled, NULL, 10);
        if (from > step) {
            err = rp_fail(RP_ERR_FORMAT, "%s: `fill` lies behind step %" PRIu64, beside, step);
            goto fail;
        }
        RP_TRY(send_flights(ring, reader, beside, from));
        *fill = from;
    }
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_checkpoint_load(rp_ring *ring, const rp_cut *cut, const char *path, bool states) {
    rp_arena arena;
    rp_arena_init(&arena, "weights file", 0);
    rp_st_reader *reader = NULL;
    tensor_list list;
    rp_err err;
    RP_TRY(rp_st_open(&arena, path, &reader));
    RP_TRY(list_tensors(&arena, ring->run, states, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        const rp_st_entry *entry = &list.entry[i];
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entry->name, entry->dims, entry->dim, &values));
        RP_TRY(send_tensor(ring, stage_of(ring->run->model, cut, list.param[i]), entry, values));
    }
    if (states) {
        read_applied(rp_st_meta(reader, "applied"), ring);
    }
    RP_TRY(send_applied(ring));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}
