#include "sim/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_read.h"
#include "base/log.h"
#include "base/safetensors.h"
#include "codec/encode.h"
#include "control/fault_remedy.h"
#include "planning/cost.h"
#include "sched/contributions.h"

enum { LIVES_MAX = 60, LEAST_FAULTS = 6, NEIGHBOUR_WEIGHT = 3 };

/* Virtual time of an op of the digest executor; not 0, so that faults can hit running ops. */
static const double FORWARD_S = 1e-4;
static const double BACKWARD_S = 2e-4;
/* Drawn faults begin in this time; a run of 50 steps without faults takes about as long. */
static const int64_t PHASE_NS = RP_NS_PER_S / 2;
/* The first LEAST_FAULTS begin in this time, before a run of some dozen steps can end. */
static const int64_t EARLY_NS = 150 * RP_NS_PER_MS;
/* Limits of virtual time for a whole run. Runs with drawn faults are short: lost boards are given
 * up after 10 to 30 s. Other runs may be long and use slow links. */
static const int64_t DRAWN_LIMIT_NS = 3600 * RP_NS_PER_S;
static const int64_t LIMIT_NS = 30 * (int64_t)86400 * RP_NS_PER_S;
/* A board that ends without a message is missed within this time. */
static const int64_t MISSED_NS = 11 * RP_NS_PER_S;
/* A starting controller waits this long for its boards. */
static const int64_t START_NS = 30 * RP_NS_PER_S;
/* A life that lasts longer than its waits and this time after the last fault has stalled, because a
 * timeout is missing. A wait is START_NS, or ring.wait if that is longer. */
static const int64_t STANDS_STILL_NS = 1 * RP_NS_PER_S;

/* ---- the subject ----------------------------------------------------------------------------- */

typedef struct {
    uint32_t batch;
    rp_digest *data, *target; /* [step * batch + index] */
} rp_sim_samples;

static rp_err read_samples(rp_arena *arena, const rp_sim_subject *s, rp_sim_samples *out) {
    const rp_runfile *run = &s->run;
    const rp_codec codec = s->plan ? rp_plan_input_codec(s->plan) : run->input_codec;
    rp_data data = run->data;
    const bool classes = run->loss->class_target;
    rp_feeder *feeder = NULL;
    uint8_t *encoded;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, rp_codec_bytes(codec, rp_shape_count(&data.sample)), &encoded));
    out->batch = run->batch;
    data.raw = codec == RP_CODEC_UINT8;
    RP_TRY(RP_ARENA_NEW(arena, run->steps * run->batch + 1, &out->data));
    RP_TRY(RP_ARENA_NEW(arena, run->steps * run->batch + 1, &out->target));
    RP_TRY(rp_feeder_open(arena, &data, RP_FEEDER_DIRECT, RP_SPLIT_TRAIN, true, run->batch, 0,
                          run->steps, 1, &feeder));
    for (uint64_t step = 0; step < run->steps; step++) {
        const rp_batch *batch;
        RP_TRY(rp_feeder_take(feeder, &batch));
        const rp_shape shape = rp_batch_shape(&data, batch);
        const size_t count = rp_shape_count(&shape);
        const size_t width = rp_batch_row_width(&data, batch);
        for (uint32_t i = 0; i < batch->count; i++) {
            const void *target = classes ? (const void *)&batch->labels[i * width]
                                         : (const void *)&batch->rows[i * width];
            rp_codec_encode_host(codec, rp_batch_sample(&data, batch, i), 1, count, encoded);
            out->data[step * run->batch + i] =
                rp_digest_of_bytes(encoded, rp_codec_bytes(codec, count));
            out->target[step * run->batch + i] = rp_digest_of_bytes(target, width * sizeof(float));
        }
        rp_feeder_return(feeder, batch);
    }
fail:
    rp_feeder_close(&feeder);
    return err;
}

static void sample_of(void *context, uint64_t step, uint32_t index, rp_digest *data,
                      rp_digest *target) {
    const rp_sim_samples *samples = context;
    *data = samples->data[step * samples->batch + index];
    *target = samples->target[step * samples->batch + index];
}

static rp_err choose_cut(const rp_sim_subject *s, rp_arena *arena, rp_cut *out) {
    const rp_runfile *run = &s->run;
    if (s->plan) {
        return rp_plan_cut(arena, s->plan, run->model, out);
    }
    if (run->cut_auto) {
        return rp_cost_choose_cut(arena, run, s->layer_seconds, out);
    }
    if (run->codec_auto) {
        return rp_fail(RP_ERR_USAGE, "links.codec: auto: with the digest executor there is nothing "
                                     "to measure; expected the name of a codec");
    }
    *out = run->cut;
    return RP_OK;
}

/* Without a flush the weights depend on the cut, and cut: auto depends on measurements and on the
 * boards that are left. */
static bool has_reference(const rp_sim_subject *s) {
    return s->plan || !s->run.cut_auto || s->run.method.kind->flushed;
}

/* Whether a pass after training renews batch statistics, which the method's definition lacks. */
static bool renews_statistics(const rp_runfile *run) {
    bool has_statistics = false;
    for (uint32_t p = 0; p < run->model->param_count; p++) {
        has_statistics |= run->model->param[p].role == RP_PARAM_STATE;
    }
    return has_statistics && run->method.kind->average != RP_AVERAGE_NONE &&
           run->score.recalibrate > 0;
}

static rp_err make_reference(rp_sim_subject *s) {
    const rp_runfile *run = &s->run;
    rp_cut cut;
    rp_arena arena;
    rp_sim_samples samples;
    rp_node *root;
    rp_job job;
    char *text;
    rp_err err;
    if (run->schedule_auto) {
        return rp_fail(RP_ERR_USAGE, "plan.schedules: what a run gives may depend on its schedule, "
                                     "and nothing is measured here; expected none");
    }
    if (renews_statistics(run)) {
        return rp_fail(RP_ERR_USAGE, "train.recalibrate: no reference: a pass after the training "
                                     "renews the batch statistics; expected 0, or "
                                     "--executor timed");
    }
    if (!has_reference(s)) {
        rp_log_info("cut: auto: what %s gives depends on the cut, so weights are not compared; "
                    "with a list of layer names they are",
                    run->method.kind->name);
        return RP_OK;
    }
    rp_arena_init(&arena, "reference", 0);
    RP_TRY(choose_cut(s, &arena, &cut));
    RP_TRY(rp_runfile_assignment(&arena, run, &cut, 0, NULL, &text));
    RP_TRY(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
    RP_TRY(rp_job_parse(&arena, root, run->model_root, &job));
    RP_TRY(read_samples(&arena, s, &samples));
    const rp_reference reference = {.job = &job, .sample = sample_of, .context = &samples};
    RP_TRY(RP_ARENA_NEW(&s->arena, run->model->param_count + 1, &s->want));
    RP_TRY(rp_reference_run(&reference, s->want));
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err make_costs(rp_sim_subject *s) {
    const uint32_t layers = s->run.model->layer_count;
    rp_err err = RP_ARENA_NEW(&s->arena, 2 * (size_t)layers, &s->layer_seconds);
    for (uint32_t i = 0; err == RP_OK && i < layers; i++) {
        s->layer_seconds[2 * (size_t)i] = FORWARD_S;
        s->layer_seconds[2 * (size_t)i + 1] = BACKWARD_S;
    }
    return err;
}

static rp_err fill_costs(rp_sim_subject *s, const char *path, const json_t *root) {
    const rp_model *model = s->run.model;
    const json_t *layers = json_object_get(root, "layers");
    const double micro = json_number_value(json_object_get(root, "microbatch"));
    const char *digest =
        json_string_value(json_object_get(root, "model_digest")); /* NULL: an old file */
    char own[RP_PROFILE_DIGEST];
    const rp_err err = rp_profile_digest(&s->run, own);
    if (err != RP_OK || (digest && strcmp(digest, own) != 0)) {
        return err != RP_OK ? err
                            : rp_fail(RP_ERR_USAGE,
                                      "%s: model_digest: it is a profile of another model than %s: "
                                      "measure again with `ringpipe profile`",
                                      path, s->run.model_name);
    }
    if (json_array_size(layers) != model->layer_count || !(micro >= 1)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: expected `microbatch` and `layers`, one for each of the %" PRIu32
                       " layers of the model (made by `ringpipe profile`)",
                       path, model->layer_count);
    }
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *name = json_string_value(json_object_get(layer, "name"));
        double *costs = &s->layer_seconds[2 * (size_t)i];
        costs[0] = json_number_value(json_object_get(layer, "forward_s")) / micro;
        costs[1] = json_number_value(json_object_get(layer, "backward_s")) / micro;
        if (!name || strcmp(name, model->layer[i].name) != 0 || !(costs[0] >= 0) ||
            !(costs[1] >= 0)) {
            return rp_fail(RP_ERR_USAGE, "%s: layers[%" PRIu32 "]: expected layer '%s' with times",
                           path, i, model->layer[i].name);
        }
    }
    return RP_OK;
}

/* Boards that the profile lacks get the costs of its first board. */
static rp_err read_boards(rp_sim_subject *s, const char *path) {
    const uint32_t boards = s->run.boards + s->run.spares;
    const char **name;
    rp_err err;
    RP_TRY(rp_profile_read(&s->arena, path, &s->run, &s->profile));
    RP_TRY(RP_ARENA_NEW(&s->arena, boards, &name));
    for (uint32_t k = 0; k < boards; k++) {
        char *place;
        RP_TRY(rp_arena_printf(&s->arena, &place, "%" PRIu32, k));
        name[k] = s->run.roster ? s->run.roster[k].name : place;
    }
    rp_profile_place(&s->profile, name, boards);
fail:
    return err;
}

/* Reads profile.json of `ringpipe profile`. */
static rp_err read_profile(rp_sim_subject *s, const char *path) {
    json_t *root = NULL;
    rp_err err;
    RP_TRY(make_costs(s));
    RP_TRY(rp_json_read(path, &root));
    RP_TRY(fill_costs(s, path, root));
    if (json_object_get(root, "boards")) { /* older files have layers alone */
        RP_TRY(read_boards(s, path));
    }
fail:
    json_decref(root);
    return err;
}

rp_err rp_sim_subject_open(const char *run_path, const char *const *set, uint32_t set_count,
                           const char *executor, const char *plan, const char *profile,
                           rp_sim_subject *out) {
    rp_err err;
    *out = (rp_sim_subject){0};
    rp_arena_init(&out->arena, "subject", 0);
    RP_TRY(rp_runfile_read(&out->arena, run_path, set, set_count, &out->run));
    RP_TRY(rp_federated_refuse(&out->run.federated, run_path));
    if (out->run.lanes.count > 0) {
        return rp_fail(RP_ERR_USAGE, "%s: lanes: a simulation has one ring: remove the key",
                       run_path);
    }
    RP_TRY(plan ? rp_planfile_read(&out->arena, plan, &out->run, executor, &out->plan)
                : rp_runfile_check_cut(&out->run));
    if (profile) {
        RP_TRY(read_profile(out, profile));
    }
    if (strcmp(executor, "digest") == 0) {
        RP_TRY(profile ? RP_OK : make_costs(out));
        RP_TRY(make_reference(out));
    }
    return RP_OK;
fail:
    rp_sim_subject_close(out);
    return err;
}

void rp_sim_subject_close(rp_sim_subject *subject) {
    rp_runfile_close(&subject->run);
    rp_arena_finish(&subject->arena);
}

/* ---- the comparison -------------------------------------------------------------------------- */

static rp_err compare_weights(const rp_sim_subject *s, const char *folder, bool *same) {
    const rp_model *model = s->run.model;
    char path[512];
    rp_arena arena;
    rp_st_reader *file = NULL;
    rp_err err;
    rp_arena_init(&arena, "weights", 0);
    (void)snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    *same = false;
    RP_TRY(rp_st_open(&arena, path, &file));
    *same = true;
    for (uint32_t p = 0; p < model->param_count; p++) {
        const rp_st_entry *entry = rp_st_find(file, model->param[p].name);
        rp_digest found = {0, 0};
        if (!entry) {
            continue;
        }
        const size_t bytes = entry->bytes < sizeof found ? entry->bytes : sizeof found;
        memcpy(&found, rp_st_data(file, entry), bytes);
        *same &= rp_digest_equal(found, s->want[p]);
    }
fail:
    rp_st_close(&file);
    rp_arena_finish(&arena);
    return err;
}

/* Whether summary.json's ledger has every sample of the plan once. */
static bool is_ledger_whole(const rp_sim_subject *s, const char *folder) {
    const rp_sched_shape shape = rp_runfile_sched_shape(&s->run, 0);
    rp_run_ledger due = {0};
    char path[512];
    char digest[24];
    (void)snprintf(path, sizeof path, "%s/summary.json", folder);
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *ledger = json_object_get(root, "ledger");
    const char *told = json_string_value(json_object_get(ledger, "digest"));
    const json_int_t steps = json_integer_value(json_object_get(root, "steps"));
    rp_run_ledger_add_steps(&due, &shape, 0, steps > 0 ? (uint64_t)steps : 0);
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, due.digest);
    const bool whole =
        told && strcmp(told, digest) == 0 &&
        json_integer_value(json_object_get(ledger, "samples")) == (json_int_t)due.samples &&
        json_integer_value(json_object_get(ledger, "lost")) == 0 &&
        json_integer_value(json_object_get(ledger, "repeated")) == 0;
    json_decref(root);
    return whole;
}

/* ---- lives ----------------------------------------------------------------------------------- */

static bool can_resume(const char *folder) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/run.yaml", folder);
    return access(path, R_OK) == 0;
}

/* Whether a life goes on for too long after the last fault. */
static bool has_stalled(const rp_sim_case *what, const rp_cluster *cluster, int64_t since_ns) {
    const int64_t over_ns = rp_cluster_calm_ns(cluster);
    const int64_t calm_ns = since_ns > over_ns ? since_ns : over_ns;
    const int64_t waits = 1 + what->cluster.may_lose; /* one for each board that may be lost */
    const int64_t wait_ns = what->cluster.wait_ns > START_NS ? what->cluster.wait_ns : START_NS;
    const int64_t most_ns = STANDS_STILL_NS + RP_REMEDY_PAUSE_MAX_NS + (1 + waits) * wait_ns;
    return what->draws_faults && rp_cluster_now_ns(cluster) - calm_ns > most_ns;
}

/* Links deliver each message once and in order whatever the network does, and a lost board is a
 * fault of the ring. So only a bug can cause these errors. */
static bool is_mistake(rp_err result) {
    return result == RP_ERR_PEER || result == RP_ERR_FORMAT || result == RP_ERR_SHAPE;
}

/* Whether the run failed with a usage error long after the last fault: a retry cannot help. */
static bool is_final(const rp_cluster *cluster, int64_t since_ns, rp_err result) {
    return rp_err_exit_code(result) == 2 && since_ns > 2 * PHASE_NS &&
           since_ns > rp_cluster_calm_ns(cluster);
}

static rp_sim_outcome run_lives(const rp_sim_case *what, rp_cluster *cluster, const char *folder,
                                rp_err *stop) {
    rp_sim_outcome outcome = RP_SIM_HUNG; /* stays so when all lives stop */
    for (uint32_t life = 0; life < LIVES_MAX; life++) {
        const bool resume = life == 0 ? what->cluster.resume : can_resume(folder);
        rp_err result;
        if (life > 0 && !resume) {
            rp_sim_folder_remove(folder); /* has no run file yet */
        }
        const int64_t since_ns = rp_cluster_now_ns(cluster);
        const rp_cluster_end end = rp_cluster_run_life(cluster, resume, &result);
        if (end == RP_CLUSTER_LIMIT) {
            break;
        }
        if (has_stalled(what, cluster, since_ns)) {
            rp_cluster_note(cluster, "this life has taken too long after the last fault");
            break;
        }
        if (end == RP_CLUSTER_FINISHED) {
            bool same = true;
            rp_err err =
                what->subject->want ? compare_weights(what->subject, folder, &same) : RP_OK;
            if (!is_ledger_whole(what->subject, folder)) {
                rp_cluster_note(cluster, "the run's ledger is not that of its plan");
                same = false;
            }
            outcome = err != RP_OK || !same ? RP_SIM_WRONG
                      : life == 0           ? RP_SIM_FINISHED
                                            : RP_SIM_STOPPED_RESUMABLE;
            break;
        }
        if (what->once) {
            *stop = result == RP_OK ? RP_ERR_FAULT : result; /* OK: it crashed */
            outcome = RP_SIM_STOPPED_RESUMABLE;
            break;
        }
        if (result == RP_ERR_FORMAT && rp_cluster_lost_checkpoints(cluster)) {
            rp_cluster_remove_checkpoints(cluster);
            continue;
        }
        const bool is_refused = result == RP_ERR_PEER && rp_cluster_has_forgotten(cluster);
        if (!is_refused && !rp_cluster_had_reason(cluster)) {
            rp_cluster_note(cluster,
                            "the run has stopped, and no fault was there that may end one");
            outcome = RP_SIM_WRONG;
            break;
        }
        if ((is_mistake(result) && !is_refused) || is_final(cluster, since_ns, result)) {
            outcome = RP_SIM_WRONG;
            break;
        }
        rp_cluster_repair(cluster);
        rp_cluster_rest(cluster, RP_NS_PER_S / 2);
    }
    return outcome;
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* All pairs that exchange frames: neighbours, and the host with every board. Neighbours are listed
 * several times, because they carry most frames. */
static uint32_t list_edges(uint32_t boards, uint32_t (*edges)[2]) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < boards; k++) {
        for (uint32_t i = 0; i < NEIGHBOUR_WEIGHT && k + 1 < boards; i++) {
            edges[count][0] = k;
            edges[count++][1] = k + 1;
            edges[count][0] = k + 1;
            edges[count++][1] = k;
        }
        edges[count][0] = RP_SIM_HOST;
        edges[count++][1] = k;
        edges[count][0] = k;
        edges[count++][1] = RP_SIM_HOST;
    }
    return count;
}

static bool is_verified(const rp_runfile *run) {
    return run->safety.verify == 1 && run->micro >= run->batch && run->method.kind->flushed;
}

/* Absence after which the ring has gone on without a board: it is missed after MISSED_NS, then
 * waited for. 0 with a longer wait, in which the run may end first. */
static int64_t back_ns(int64_t wait_ns) {
    return wait_ns > 0 && wait_ns <= 2 * RP_NS_PER_S ? MISSED_NS + 2 * wait_ns : 0;
}

static rp_err find_faults(const rp_sim_case *what, uint64_t seed, rp_arena *arena,
                          rp_sim_faults *out) {
    const uint32_t boards = what->subject->run.boards; /* spares have no neighbours */
    uint32_t(*edges)[2];
    rp_rng rng = rp_rng_named(seed, "sim/faults");
    rp_err err;
    *out = (rp_sim_faults){0};
    if (what->faults) {
        *out = *what->faults;
    }
    if (!what->draws_faults) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, (2 + 2 * NEIGHBOUR_WEIGHT) * (size_t)boards, &edges));
    const rp_sim_field field = {.nodes = what->cluster.boards,
                                .edges = (const uint32_t(*)[2])edges,
                                .edge_count = list_edges(boards, edges),
                                .early_ns = EARLY_NS,
                                .phase_ns = PHASE_NS,
                                .least = LEAST_FAULTS,
                                .may_lose = what->cluster.may_lose,
                                .back_ns = back_ns(what->cluster.wait_ns),
                                .is_verified = is_verified(&what->subject->run)};
    rp_sim_faults_draw(&rng, &field, out);
fail:
    return err;
}

/* ---- one seed -------------------------------------------------------------------------------- */

static rp_err make_folder(const rp_sim_case *what, char *parent, size_t bytes, char *folder,
                          size_t folder_bytes) {
    if (what->cluster.folder) {
        parent[0] = '\0';
        (void)snprintf(folder, folder_bytes, "%s", what->cluster.folder);
        return RP_OK;
    }
    const char *where = getenv("TMPDIR");
    (void)snprintf(parent, bytes, "%s/ringpipe-sim-XXXXXX", where ? where : "/dev/shm");
    if (!mkdtemp(parent)) {
        (void)snprintf(parent, bytes, "/tmp/ringpipe-sim-XXXXXX");
        if (!mkdtemp(parent)) {
            return rp_fail(RP_ERR_IO, "cannot make a folder for the simulated run under /tmp");
        }
    }
    (void)snprintf(folder, folder_bytes, "%s/run", parent);
    return RP_OK;
}

rp_err rp_sim_judge(const rp_sim_case *what, uint64_t seed, rp_sim_result *out) {
    rp_arena arena;
    rp_cluster *cluster = NULL;
    rp_sim_faults faults;
    char parent[256] = "";
    char folder[300];
    rp_err err;
    *out = (rp_sim_result){.outcome = RP_SIM_WRONG};
    rp_arena_init(&arena, "simulation", 0);
    RP_TRY(make_folder(what, parent, sizeof parent, folder, sizeof folder));
    RP_TRY(find_faults(what, seed, &arena, &faults));
    if (what->terminal) {
        (void)fprintf(what->terminal, "# seed: %" PRIu64 "\n", seed);
        rp_sim_faults_write(&faults, what->terminal);
    }
    rp_cluster_options options = what->cluster;
    options.seed = seed;
    options.faults = &faults;
    options.folder = folder;
    options.temporary = parent[0] != '\0';
    options.stale_from_ns = what->draws_faults ? EARLY_NS : RP_WORLD_NEVER;
    options.limit_ns = what->draws_faults ? DRAWN_LIMIT_NS : LIMIT_NS;
    RP_TRY(rp_cluster_open(&arena, &options, &cluster));
    out->outcome = run_lives(what, cluster, folder, &out->stop);
    out->faults = rp_cluster_faults_applied(cluster);
    out->marks = *rp_cluster_marks(cluster);
    out->events = rp_cluster_events(cluster)->count;
    out->event_hash = rp_cluster_events(cluster)->hash;
    out->virtual_s = (double)rp_cluster_now_ns(cluster) * 1e-9;
fail:
    rp_cluster_close(&cluster);
    if (parent[0]) {
        rp_sim_folder_remove(parent);
    }
    rp_arena_finish(&arena);
    return err;
}
