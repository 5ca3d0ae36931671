#include "agent/measure_overhead.h"

#include <poll.h>
#include <unistd.h>

#include "agent/profile.h"
#include "base/median.h"
#include "codec/convert.h"
#include "optim/average.h"

enum { ROUNDS = 5, ROUNDS_MAX = 11, REPEATS_MAX = 64, STATES = RP_OPTIM_STATES_MAX };
enum { WAIT_MS = 100, PAUSE_MS = 3, SAMPLES = 16, OF_MANY = 16 };
/* a repeat executes the same work often enough to take this long */
static const double WORTH_S = 0.0005;
static const double SPREAD_MOST = 0.2;

typedef struct {
    rp_device *device;
    rp_optim optim;
    rp_measured_average average;
    rp_buffer *values[STATES + 4]; /* each of RP_BESIDES_FLOATS[1] */
    rp_buffer *encoded;
} memory;

/* One measurement. */
typedef struct {
    uint32_t which, size;
    rp_codec codec;
    bool decodes;
    rp_err (*enqueue)(const memory *m, uint32_t floats, rp_codec codec, bool decodes);
    uint32_t repeats; /* executions in a round */
    uint32_t count;
    double round_s[ROUNDS_MAX];
} work;

typedef struct {
    work item[RP_BESIDES];
    uint32_t count;
    rp_clock clock;
    int64_t start_ns;
    double seconds; /* time limit of all measurements */
} works;

/* ---- enqueued work --------------------------------------------------------------------------- */

static rp_err enqueue_prediction(const memory *m, uint32_t floats, rp_codec codec, bool decodes) {
    rp_optim_call call = {.device = m->device,
                          .optim = &m->optim,
                          .w = m->values[0],
                          .g = m->values[1],
                          .count = floats,
                          .lr = 1e-3f,
                          .t = 2, /* at t = 1 there is no direction yet */
                          .grad_scale = 1};
    (void)codec;
    (void)decodes;
    for (uint32_t i = 0; i < STATES; i++) {
        call.state[i] = m->values[3 + i];
    }
    return call.optim->kind->predict(&call, m->values[2], 1);
}

static rp_err enqueue_average(const memory *m, uint32_t floats, rp_codec codec, bool decodes) {
    rp_buffer *x = m->values[0];
    rp_buffer *centre = m->values[1];
    rp_buffer *scratch = m->values[2];
    rp_err err;
    (void)codec;
    (void)decodes;
    if (m->average == RP_MEASURED_REFERENCE) {
        RP_TRY(rp_buffer_copy(m->device, scratch, 0, x, 0, floats * sizeof(float)));
        return rp_average_reference(m->device, x, centre, scratch, floats, 0.5f, 0.5f);
    }
    if (m->average == RP_MEASURED_ELASTIC) {
        return rp_average_elastic(m->device, x, centre, floats, 0.5f);
    }
    RP_TRY(rp_average_pull(m->device, scratch, x, centre, floats, 0.5f));
    RP_TRY(rp_average_push(m->device, x, scratch, floats));
fail:
    return err;
}

static rp_err enqueue_codec(const memory *m, uint32_t floats, rp_codec codec, bool decodes) {
    const rp_tensor values = {.buffer = m->values[0],
                              .shape = {.dims = 2, .dim = {SAMPLES, floats / SAMPLES}}};
    return decodes ? rp_codec_decode(m->device, codec, &values, m->encoded)
                   : rp_codec_encode(m->device, codec, m->encoded, &values);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static rp_err time_once(const works *w, const memory *m, const work *item, double *out) {
    const int64_t start_ns = rp_clock_now_ns(&w->clock);
    rp_err err;
    for (uint32_t i = 0; i < item->repeats; i++) {
        RP_TRY(item->enqueue(m, RP_BESIDES_FLOATS[item->size], item->codec, item->decodes));
    }
    RP_TRY(rp_device_drain(m->device));
    *out = (double)(rp_clock_now_ns(&w->clock) - start_ns) * 1e-9 / item->repeats;
fail:
    return err;
}

/* Runs it once to load kernels, and once to determine the executions of a round. */
static rp_err try_once(const works *w, const memory *m, work *item) {
    double once_s;
    rp_err err;
    item->repeats = 1;
    RP_TRY(time_once(w, m, item, &once_s));
    RP_TRY(time_once(w, m, item, &once_s));
    const double repeats = WORTH_S / (once_s + 1e-9);
    item->repeats = repeats > REPEATS_MAX ? REPEATS_MAX : repeats > 1 ? (uint32_t)repeats : 1;
fail:
    return err;
}

static bool wants_more(const work *item) {
    double sorted[ROUNDS_MAX];
    double median;
    double spread;
    for (uint32_t i = 0; i < item->count; i++) {
        sorted[i] = item->round_s[i];
    }
    rp_median(sorted, item->count, &median, &spread);
    return item->count < ROUNDS || (item->count < ROUNDS_MAX && spread > SPREAD_MOST);
}

static bool is_late(const works *w) {
    return (double)(rp_clock_now_ns(&w->clock) - w->start_ns) * 1e-9 > w->seconds;
}

static rp_err run_rounds(works *w, const memory *m) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < w->count; i++) {
        RP_TRY(try_once(w, m, &w->item[i]));
    }
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        for (uint32_t i = 0; i < w->count; i++) {
            work *item = &w->item[i];
            if ((round == 0 || !is_late(w)) && wants_more(item)) {
                RP_TRY(time_once(w, m, item, &item->round_s[item->count]));
                item->count++;
            }
        }
    }
fail:
    return err;
}

/* ---- on a device ----------------------------------------------------------------------------- */

static void add_work(works *w, work item) {
    for (uint32_t size = 0; size < 2; size++) {
        item.size = size;
        w->item[w->count] = item;
        w->item[w->count++].which += size;
    }
}

static bool is_encoded(uint32_t codec) {
    return codec > RP_CODEC_F32 && codec < RP_CODECS && codec != RP_CODEC_UINT8;
}

static void list_works(works *w, const rp_measure_order *order) {
    if (order->predicts) {
        add_work(w, (work){.which = RP_BESIDES_PREDICTION, .enqueue = enqueue_prediction});
    }
    if (order->average != RP_MEASURED_NO_AVERAGE) {
        add_work(w, (work){.which = RP_BESIDES_AVERAGE, .enqueue = enqueue_average});
    }
    for (uint32_t i = 0; i < order->codecs; i++) {
        for (uint32_t decodes = 0; decodes < 2 && is_encoded(order->codec[i]); decodes++) {
            add_work(w, (work){.which = (uint32_t)rp_besides_codec(order->codec[i], decodes, 0),
                               .codec = (rp_codec)order->codec[i],
                               .decodes = decodes > 0,
                               .enqueue = enqueue_codec});
        }
    }
}

static rp_err take_memory(rp_darena *darena, const works *w, memory *m) {
    const size_t floats = RP_BESIDES_FLOATS[1];
    size_t most = 1;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < w->count; i++) {
        const size_t own = SAMPLES * rp_codec_bytes(w->item[i].codec, floats / SAMPLES);
        most = own > most ? own : most;
    }
    for (uint32_t i = 0; i < STATES + 4; i++) {
        RP_TRY(rp_darena_take(darena, floats * sizeof(float), &m->values[i]));
    }
    RP_TRY(rp_darena_take(darena, most, &m->encoded));
fail:
    return err;
}

/* Uses the run's optimiser, with the states it keeps if the method predicts. */
static rp_err measure_on_device(works *w, rp_device *device, const rp_job *job,
                                rp_measured_average average, double *out) {
    memory m = {.device = device, .optim = job->optim, .average = average};
    rp_darena *darena = NULL;
    rp_arena arena;
    rp_err err;
    m.optim.predicts = true;
    rp_arena_init(&arena, "besides", 0);
    RP_TRY(rp_darena_open(&arena, device, "besides", 0, 0, &darena));
    RP_TRY(take_memory(darena, w, &m));
    RP_TRY(run_rounds(w, &m));
    for (uint32_t i = 0; i < w->count; i++) {
        double *at = &out[2 * w->item[i].which];
        rp_median(w->item[i].round_s, w->item[i].count, &at[0], &at[1]);
    }
fail:
    rp_darena_close(&darena);
    rp_arena_finish(&arena);
    return err;
}

/* ---- handling -------------------------------------------------------------------------------- */

/* As the agent's loop does it: the op is issued with a mark, and the device's event wakes the
 * waiting thread. */
static rp_err time_alone(rp_stage *stage, uint32_t samples, int event, double *out) {
    const rp_clock clock = rp_clock_real();
    const int64_t start_ns = rp_clock_now_ns(&clock);
    rp_mark mark;
    bool done = false;
    rp_err err;
    RP_TRY(rp_stage_try_op(stage, RP_OP_FORWARD, samples));
    RP_TRY(rp_stage_mark(stage, &mark));
    while (err == RP_OK && !done) {
        struct pollfd wait = {.fd = event, .events = POLLIN};
        uint64_t count;
        (void)poll(&wait, 1, WAIT_MS);
        (void)!read(event, &count, sizeof count);
        err = rp_stage_poll(stage, &mark, &done, NULL);
    }
    *out = (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-9;
    rp_stage_release(stage, &mark);
fail:
    return err;
}

/* The cheapest layer with weights, if any, because other layers may have no own kernel. */
static uint32_t cheapest_layer(const rp_model *model) {
    uint32_t least = 0;
    bool has_weights = false;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const bool own = rp_model_param_count(model, RP_PARAM_TRAINED, i, i + 1) > 0;
        if (own && (!has_weights || rp_model_flops_forward(model, i, i + 1) <
                                        rp_model_flops_forward(model, least, least + 1))) {
            least = i;
            has_weights = true;
        }
    }
    return least;
}

/* How much longer one op takes alone than one of many in a row, as in a ring, where boards sleep
 * until something arrives; with a pause before each. */
static rp_err take_handling(rp_stage *stage, uint32_t samples, int event, double *out) {
    double alone_s[ROUNDS_MAX];
    double of_many_s[ROUNDS_MAX];
    double often[2][2];
    rp_err err;
    RP_TRY(time_alone(stage, samples, event, &alone_s[0])); /* loads kernels */
    for (uint32_t i = 0; i < ROUNDS_MAX; i++) {
        (void)poll(NULL, 0, PAUSE_MS);
        RP_TRY(time_alone(stage, samples, event, &alone_s[i]));
        RP_TRY(rp_stage_time_op(stage, RP_OP_FORWARD, samples, OF_MANY, &of_many_s[i]));
    }
    rp_median(alone_s, ROUNDS_MAX, &often[0][0], &often[0][1]);
    rp_median(of_many_s, ROUNDS_MAX, &often[1][0], &often[1][1]);
    out[0] = often[0][0] > often[1][0] ? often[0][0] - often[1][0] : 0;
    out[1] = often[0][1];
fail:
    return err;
}

static rp_err measure_handling(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                               const rp_measure_order *order, double *out) {
    uint32_t first[4];
    rp_job alone = rp_profile_job(job, cheapest_layer(job->model), first);
    rp_stage *stage = NULL;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "handling", 0);
    alone.batch = alone.micro = order->samples[0];
    RP_TRY(rp_stage_prepare(&arena, kind, site, &alone, &stage));
    RP_TRY(rp_stage_drain(stage));
    RP_TRY(take_handling(stage, alone.micro, rp_device_eventfd(site->device), out));
fail:
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

rp_err rp_measure_overhead(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                           const rp_measure_order *order, double seconds, double *out) {
    works *w;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "works", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &w));
    *w = (works){.clock = rp_clock_real(), .seconds = seconds};
    w->start_ns = rp_clock_now_ns(&w->clock);
    list_works(w, order);
    RP_TRY(w->count > 0 ? measure_on_device(w, site->device, job, order->average, out) : RP_OK);
    RP_TRY(measure_handling(kind, site, job, order, &out[2 * RP_BESIDES_HANDLING]));
fail:
    rp_arena_finish(&arena);
    return err;
}
