#include "agent/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/outlet.h"
#include "agent/profile.h"
#include "agent/runner.h"
#include "base/log.h"

enum { CONTROL_PART_MAX = 4 << 20, PIECE_FLOATS = 65536, SAVE_UNACKED_MAX = 16 };
static const int64_t HOST_SILENT_NS = 30 * RP_NS_PER_S;
static const int64_t FIRST_WORD_NS = 600 * RP_NS_PER_S;

/* One run, from ASSIGN to BYE; everything lies in its own arena. */
typedef struct {
    bool assigned;
    uint64_t number;
    rp_arena arena;
    rp_links *links;
    rp_link *in, *out, *feed;
    rp_job job;
    rp_stage *stage;
    rp_runner *runner;
    rp_link_profile emulate;
    bool active;
    int64_t connected_ns;
    bool saving;
    uint32_t save_index;
    size_t save_first, save_flight; /* next element of the tensor, next byte of what is in flight */
} agent_run;

struct rp_agent {
    rp_agent_options options;
    rp_device *device;
    const rp_clock *clock;
    rp_links *links;
    rp_link *control;
    char host[128];
    uint32_t port;
    bool over;
    int64_t born_ns;
    agent_run run;
};

/* ---- endpoints ------------------------------------------------------------------------------- */

static rp_err split_endpoint(const char *endpoint, char *host, size_t host_bytes, uint32_t *port) {
    const char *start = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL;
    const char *colon = start ? strrchr(start, ':') : NULL;
    char *end = NULL;
    unsigned long value = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || colon == start || end == colon + 1 || *end || value > 65533 ||
        (size_t)(colon - start) >= host_bytes) {
        return rp_fail(RP_ERR_USAGE, "expected tcp://HOST:PORT (port 0 to 65533), found '%s'",
                       endpoint);
    }
    memcpy(host, start, (size_t)(colon - start));
    host[colon - start] = '\0';
    *port = (uint32_t)value;
    return RP_OK;
}

static void bind_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes) {
    if (agent->port) {
        (void)snprintf(out, bytes, "tcp://%s:%u", agent->host, agent->port + plus);
    } else {
        (void)snprintf(out, bytes, "tcp://%s:*", agent->host);
    }
}

static uint64_t port_of(const rp_link *link) {
    const char *colon = link ? strrchr(rp_link_endpoint(link), ':') : NULL;
    return colon ? strtoull(colon + 1, NULL, 10) : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err open_control(rp_agent *agent) {
    char endpoint[160];
    bind_text(agent, 0, endpoint, sizeof endpoint);
    rp_link_options options = {
        .name = "control",
        .bind = endpoint,
        .window = 1,
        .send_window = 1,
        .part_bytes_max = CONTROL_PART_MAX,
    };
    rp_err err;
    RP_TRY(rp_link_open(agent->links, &options, &agent->control));
    for (uint32_t i = 0; i < agent->options.trusted_count; i++) {
        RP_TRY(rp_link_allow(agent->control, agent->options.trusted[i]));
    }
fail:
    return err;
}

rp_err rp_agent_open(rp_arena *arena, rp_device *device, const rp_clock *clock,
                     const rp_agent_options *options, rp_agent **out) {
    rp_err err;
    rp_agent *agent;
    RP_TRY(RP_ARENA_NEW(arena, 1, &agent));
    agent->options = *options;
    agent->device = device;
    agent->clock = clock;
    agent->born_ns = rp_clock_now_ns(clock);
    RP_TRY(split_endpoint(options->listen, agent->host, sizeof agent->host, &agent->port));
    RP_TRY(rp_links_open(arena, &options->keys, clock, (uint64_t)agent->born_ns, &agent->links));
    err = open_control(agent);
    if (err != RP_OK) {
        rp_links_close(&agent->links);
        return err;
    }
    *out = agent;
fail:
    return err;
}

const char *rp_agent_endpoint(const rp_agent *agent) {
    return rp_link_endpoint(agent->control);
}

static void end_run(rp_agent *agent) {
    agent_run *run = &agent->run;
    rp_runner_close(&run->runner);
    rp_stage_destroy(&run->stage);
    rp_links_close(&run->links);
    rp_arena_finish(&run->arena);
    *run = (agent_run){0};
    rp_link_set_run(agent->control, 0);
}

void rp_agent_close(rp_agent **agent_pointer) {
    rp_agent *agent = *agent_pointer;
    if (agent) {
        end_run(agent);
        rp_link_close(&agent->control);
        rp_links_close(&agent->links);
        *agent_pointer = NULL;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static rp_err answer(rp_agent *agent, rp_Header *header, const rp_part *parts, uint32_t count) {
    header->stage = agent->run.job.stage;
    header->run = agent->run.number;
    return rp_link_send(agent->control, header, parts, count, true, NULL, NULL);
}

/* The run is over for this agent: tell the host why and be ready for another. */
static void fault(rp_agent *agent, rp_err code) {
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_FAULT;
    header.code = (uint32_t)code;
    const char *why = rp_err_message();
    rp_part part = {why, strlen(why)}; /* longer than a header's text */
    (void)snprintf(header.text, sizeof header.text, "%.100s", why);
    if (answer(agent, &header, &part, part.bytes > 0) != RP_OK) {
        rp_log_warn("the host could not be told");
    }
    end_run(agent);
}

static rp_err on_hello(rp_agent *agent, const rp_message *message) {
    (void)message;
    end_run(agent);
    const rp_device_facts *facts = rp_device_facts_of(agent->device);
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_HELLO;
    (void)snprintf(header.text, sizeof header.text, "%s|%s|%s", agent->options.name, RP_VERSION,
                   facts->name);
    header.whole_count = 3;
    header.whole[0] = (uint64_t)rp_clock_now_ns(agent->clock);
    header.whole[1] = facts->memory_bytes;
    header.whole[2] = (uint64_t)rp_device_gemm(agent->device);
    return answer(agent, &header, NULL, 0);
}

/* ---- assignment ------------------------------------------------------------------------------ */

static rp_err read_job(rp_agent *agent, const rp_message *message, rp_node **root) {
    agent_run *run = &agent->run;
    rp_node *model;
    rp_err err;
    if (message->part_count != 2) {
        return rp_fail(RP_ERR_PEER, "an assignment has two parts, not %u", message->part_count);
    }
    RP_TRY(rp_config_read_text(&run->arena, message->part[0].data, message->part[0].bytes,
                               "assignment", root));
    RP_TRY(rp_config_read_text(&run->arena, message->part[1].data, message->part[1].bytes, "model",
                               &model));
    RP_TRY(rp_job_parse(&run->arena, *root, model, &run->job));
    uint32_t own = agent->options.memory_mib; /* a run may ask for less, not for more */
    if (own && (run->job.memory_mib == 0 || run->job.memory_mib > own)) {
        run->job.memory_mib = own;
    }
fail:
    return err;
}

/* Largest part of a data parcel of this stage. */
static size_t part_max(const rp_layout *layout, const rp_job *job) {
    size_t bytes = (size_t)job->batch * job->target_width * sizeof(float);
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        size_t own = rp_shape_count(&layout->tensor[t].sample) * job->micro * sizeof(float);
        bytes = own > bytes ? own : bytes;
    }
    return bytes;
}

static rp_err bind_data(rp_agent *agent, const char *name, uint32_t plus, const char *key,
                        rp_link **out) {
    agent_run *run = &agent->run;
    char endpoint[160];
    bind_text(agent, plus, endpoint, sizeof endpoint);
    rp_link_options options = {
        .name = name,
        .bind = endpoint,
        .peer_public = key,
        .window = rp_runner_window(&run->job),
        .send_window = RP_OUTLET_SLOTS,
        .part_bytes_max = part_max(rp_stage_layout(run->stage), &run->job),
        .emulate = run->emulate,
        .run = run->number,
    };
    return rp_link_open(run->links, &options, out);
}

/* Sockets for who may connect here: the stage before, and the host at both ends of the ring. */
static rp_err open_data(rp_agent *agent, rp_node *root) {
    agent_run *run = &agent->run;
    rp_node *peers = rp_node_find(root, "peers");
    const char *host = NULL;
    const char *before = NULL;
    rp_err err;
    if (!peers) {
        return rp_node_fail(root, "peers: is missing");
    }
    RP_TRY(rp_node_string(peers, "host", &host));
    RP_TRY(rp_node_string(peers, "before", &before));
    rp_node *emulate = rp_node_find(root, "link");
    if (emulate) {
        RP_TRY(rp_link_profile_parse(&run->emulate, emulate));
    }
    RP_TRY(rp_links_open(&run->arena, &agent->options.keys, agent->clock,
                         run->job.seed * RP_CUT_STAGES_MAX + run->job.stage, &run->links));
    bool first = run->job.stage == 0;
    bool last = run->job.stage + 1 == run->job.cut.stage_count;
    if ((!first && !before) || !host) {
        return rp_node_fail(peers, "expected the keys `host` and, behind stage 0, `before`");
    }
    if (!first) {
        RP_TRY(bind_data(agent, "hop", 1, before, &run->in));
    }
    if (first || last) {
        RP_TRY(bind_data(agent, "feed", 2, host, &run->feed));
    }
fail:
    return err;
}

/* What this process holds of the board's memory; 0 when /proc does not say. */
static uint64_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    char line[128] = "";
    if (file) {
        (void)!fgets(line, sizeof line, file);
        (void)fclose(file);
    }
    const char *space = strchr(line, ' ');
    return space ? strtoull(space, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static rp_err on_assign(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    end_run(agent);
    rp_arena_init(&run->arena, "run", 0);
    run->assigned = true;
    run->number = message->header.run;
    rp_link_set_run(agent->control, run->number);
    int64_t start_ns = rp_clock_now_ns(agent->clock);
    rp_node *root = NULL;
    rp_err err;
    RP_TRY(read_job(agent, message, &root));
    RP_TRY(rp_stage_prepare(&run->arena, agent->device, &run->job, &run->stage));
    RP_TRY(open_data(agent, root));
    const rp_layout *layout = rp_stage_layout(run->stage);
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_READY;
    header.whole_count = 8;
    header.whole[0] = port_of(run->in);
    header.whole[1] = port_of(run->feed);
    header.whole[2] = rp_device_used_bytes(agent->device);
    header.whole[3] = layout->weight_bytes + layout->running_bytes;
    header.whole[4] = (uint64_t)(rp_clock_now_ns(agent->clock) - start_ns);
    header.whole[5] = layout->slots;
    header.whole[6] = rp_layout_weight_copies(layout);
    header.whole[7] = resident_bytes();
    RP_TRY(answer(agent, &header, NULL, 0));
fail:
    return err;
}

/* text: "ENDPOINT KEY" of the next stage. Then the run is complete and the runner opens. */
static rp_err on_connect(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    rp_err err;
    if (!run->stage || run->runner) {
        return rp_fail(RP_ERR_PEER, "connect before the assignment or twice");
    }
    bool last = run->job.stage + 1 == run->job.cut.stage_count;
    if (!last) {
        char text[sizeof message->header.text];
        memcpy(text, message->header.text, sizeof text);
        char *space = strchr(text, ' ');
        if (!space) {
            return rp_fail(RP_ERR_PEER, "connect: expected ENDPOINT KEY, found '%s'", text);
        }
        *space = '\0';
        rp_link_options options = {
            .name = "next",
            .connect = text,
            .peer_public = space + 1,
            .window = rp_runner_window(&run->job),
            .send_window = RP_OUTLET_SLOTS,
            .part_bytes_max = part_max(rp_stage_layout(run->stage), &run->job),
            .emulate = run->emulate,
            .run = run->number,
        };
        RP_TRY(rp_link_open(run->links, &options, &run->out));
        run->connected_ns = rp_clock_now_ns(agent->clock);
    }
    rp_runner_links links = {agent->device,  run->stage, &run->job, agent->clock,
                             agent->control, run->in,    run->out,  run->feed};
    RP_TRY(rp_runner_open(&run->arena, &links, &run->runner));
fail:
    return err;
}

/* ---- profile --------------------------------------------------------------------------------- */

static rp_err on_profile(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    end_run(agent);
    rp_arena_init(&run->arena, "profile", 0);
    run->assigned = true;
    run->number = message->header.run;
    rp_node *root = NULL;
    double *seconds;
    rp_err err;
    RP_TRY(read_job(agent, message, &root));
    uint32_t layers = run->job.model->layer_count;
    RP_TRY(RP_ARENA_NEW(&run->arena, 2 * (size_t)layers, &seconds));
    RP_TRY(rp_profile_layers(agent->device, &run->job, seconds));
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_PROFILE;
    rp_part part = {seconds, 2 * (size_t)layers * sizeof *seconds};
    RP_TRY(answer(agent, &header, &part, 1));
    end_run(agent);
fail:
    return err;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static rp_err on_flight(rp_agent *agent, const rp_message *message) {
    const uint64_t *whole = message->header.whole;
    rp_err err = RP_OK;
    if (message->header.whole_count < 3 || !agent->run.runner) {
        return rp_fail(RP_ERR_PEER, "microbatches in flight came at the wrong time");
    }
    if (whole[0] == 0) {
        RP_TRY(rp_runner_resume(agent->run.runner, whole[2], whole[1]));
    }
    RP_TRY(rp_runner_flight_write(agent->run.runner, whole[0], message->part[0].bytes,
                                  message->part[0].data));
fail:
    return err;
}

/* text: name, whole[0]: first element; one part of floats. */
static rp_err on_tensor(rp_agent *agent, const rp_message *message) {
    if (!agent->run.stage || agent->run.active || message->part_count != 1 ||
        message->header.whole_count < 1) {
        return rp_fail(RP_ERR_PEER, "a tensor came at the wrong time");
    }
    if (strcmp(message->header.text, RP_FLIGHT_NAME) == 0) {
        return on_flight(agent, message);
    }
    return rp_stage_tensor_write(agent->run.stage, message->header.text, message->header.whole[0],
                                 message->part[0].bytes / sizeof(float), message->part[0].data);
}

/* Behind the tensors: how many updates each replica's optimiser has done. */
static rp_err on_tensors_end(rp_agent *agent, const rp_message *message) {
    const uint32_t replicas = agent->run.stage ? rp_stage_replicas(agent->run.stage) : 0;
    if (message->part_count != 1 || message->part[0].bytes != replicas * sizeof(uint64_t)) {
        return rp_fail(RP_ERR_PEER, "the end of the tensors does not say what was applied");
    }
    for (uint32_t r = 0; r < replicas; r++) {
        uint64_t applied;
        memcpy(&applied, (const char *)message->part[0].data + r * sizeof applied, sizeof applied);
        rp_stage_set_applied(agent->run.stage, r, applied);
    }
    return RP_OK;
}

/* text: "flight", whole: first byte, all bytes, the step at which the pipes were filled. */
static rp_err send_flight(rp_agent *agent, size_t total) {
    agent_run *run = &agent->run;
    static float piece[PIECE_FLOATS];
    const size_t rest = total - run->save_flight;
    const size_t bytes = rest < sizeof piece ? rest : sizeof piece;
    rp_Header header = rp_Header_init_zero;
    rp_err err;
    header.kind = RP_KIND_TENSOR;
    (void)snprintf(header.text, sizeof header.text, "%s", RP_FLIGHT_NAME);
    header.whole_count = 3;
    header.whole[0] = run->save_flight;
    header.whole[1] = total;
    header.whole[2] = rp_runner_fill_step(run->runner);
    RP_TRY(rp_runner_flight_read(run->runner, run->save_flight, bytes, piece));
    rp_shape shape = rp_shape_1((uint32_t)(bytes / sizeof(float)));
    rp_frame_add_shape(&header, &shape);
    rp_part part = {piece, bytes};
    RP_TRY(answer(agent, &header, &part, 1));
    run->save_flight += bytes;
fail:
    return err;
}

static rp_err send_piece(rp_agent *agent) {
    agent_run *run = &agent->run;
    static float piece[PIECE_FLOATS];
    rp_Header header = rp_Header_init_zero;
    rp_shape shape;
    rp_err err;
    header.kind = RP_KIND_TENSOR;
    RP_TRY(
        rp_stage_tensor_at(run->stage, run->save_index, header.text, sizeof header.text, &shape));
    size_t total = rp_shape_count(&shape);
    size_t count = total - run->save_first < PIECE_FLOATS ? total - run->save_first : PIECE_FLOATS;
    RP_TRY(rp_stage_tensor_read(run->stage, run->save_index, run->save_first, count, piece));
    header.whole_count = 2;
    header.whole[0] = run->save_first;
    header.whole[1] = total;
    rp_shape part_shape = rp_shape_1((uint32_t)count);
    rp_frame_add_shape(&header, &part_shape);
    rp_part part = {piece, count * sizeof(float)};
    RP_TRY(answer(agent, &header, &part, 1));
    run->save_first += count;
    if (run->save_first == total) {
        run->save_first = 0;
        run->save_index++;
    }
fail:
    return err;
}

/* A few pieces a round, so that heartbeats pass between them. */
static rp_err continue_save(rp_agent *agent) {
    agent_run *run = &agent->run;
    uint32_t total = rp_stage_tensor_count(run->stage, true);
    size_t flight = run->runner ? rp_runner_flight_bytes(run->runner) : 0;
    bool over = run->save_index == total && run->save_flight == flight;
    rp_link_stats stats;
    rp_err err = RP_OK;
    rp_link_stats_of(agent->control, &stats);
    for (uint64_t i = stats.unacked; i < SAVE_UNACKED_MAX && !over; i++) {
        RP_TRY(run->save_index < total ? send_piece(agent) : send_flight(agent, flight));
        over = run->save_index == total && run->save_flight == flight;
    }
    if (over && stats.unacked < SAVE_UNACKED_MAX) {
        rp_Header header = rp_Header_init_zero;
        header.kind = RP_KIND_TENSORS_END;
        RP_TRY(answer(agent, &header, NULL, 0));
        run->saving = false;
    }
fail:
    return err;
}

static rp_err on_steer(rp_agent *agent, const rp_message *message) {
    if (!agent->run.stage || message->part_count != 1) {
        return rp_fail(RP_ERR_PEER, "trust in predictions came at the wrong time");
    }
    return rp_stage_trust(agent->run.stage, message->header.step, message->part[0].data,
                          message->part[0].bytes / sizeof(double));
}

/* ---- segments -------------------------------------------------------------------------------- */

static rp_err finished(rp_agent *agent) {
    agent_run *run = &agent->run;
    rp_runner_facts facts = rp_runner_facts_of(run->runner);
    rp_link_stats out = {0};
    rp_link_stats in = {0};
    if (run->out) {
        rp_link_stats_of(run->out, &out);
    }
    if (run->in) {
        rp_link_stats_of(run->in, &in);
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_FINISHED;
    header.whole_count = 8;
    header.whole[0] = (uint64_t)facts.busy_ns;
    header.whole[1] = facts.microbatches;
    header.whole[2] = facts.in_flight_max;
    header.whole[3] = rp_stage_gap_max(run->stage);
    header.whole[4] = rp_device_used_bytes_max(agent->device);
    header.whole[5] = out.bytes_sent;
    header.whole[6] = in.bytes_sent;
    header.whole[7] = in.duplicates + out.duplicates;
    header.number_count = 3;
    header.number[0] = out.busy_s;
    header.number[1] = in.busy_s;
    header.number[2] = (double)rp_runner_flight_bytes(run->runner);
    uint64_t applied[RP_REPLICAS_MAX];
    const uint32_t replicas = rp_stage_replicas(run->stage);
    for (uint32_t r = 0; r < replicas; r++) {
        applied[r] = rp_stage_applied(run->stage, r);
    }
    rp_part part = {applied, replicas * sizeof *applied};
    run->active = false;
    return answer(agent, &header, &part, 1);
}

static rp_err need_runner(const rp_agent *agent, const rp_message *message, uint32_t whole_min) {
    if (!agent->run.runner || message->header.whole_count < whole_min) {
        return rp_fail(RP_ERR_PEER, "message %d came before the run was complete",
                       (int)message->header.kind);
    }
    return RP_OK;
}

static rp_err on_run_message(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    const rp_Header *header = &message->header;
    rp_err err =
        need_runner(agent, message, header->kind == RP_KIND_EVAL || header->kind == RP_KIND_START);
    if (err != RP_OK) {
        return err;
    }
    switch (header->kind) {
    case RP_KIND_START:
        run->active = true;
        return rp_runner_train(run->runner, header->step, header->whole[0]);
    case RP_KIND_EVAL:
        run->active = true;
        return rp_runner_evaluate(run->runner, header->whole[0], header->code != 0);
    case RP_KIND_STOP:
        return rp_runner_stop(run->runner, header->step);
    case RP_KIND_VERDICT:
        return rp_runner_verdict(run->runner, header->step,
                                 header->number_count ? (float)header->number[0] : 1.0f,
                                 header->code != 0);
    default: /* RP_KIND_SAVE */
        run->saving = true;
        run->save_index = 0;
        run->save_first = run->save_flight = 0;
        return RP_OK;
    }
}

static rp_err on_message(rp_agent *agent, const rp_message *message) {
    switch (message->header.kind) {
    case RP_KIND_HELLO:
        return on_hello(agent, message);
    case RP_KIND_ASSIGN:
        return on_assign(agent, message);
    case RP_KIND_CONNECT:
        return on_connect(agent, message);
    case RP_KIND_PROFILE:
        return on_profile(agent, message);
    case RP_KIND_TENSOR:
        return on_tensor(agent, message);
    case RP_KIND_TENSORS_END:
        return on_tensors_end(agent, message);
    case RP_KIND_STEER:
        return on_steer(agent, message);
    case RP_KIND_START:
    case RP_KIND_EVAL:
    case RP_KIND_STOP:
    case RP_KIND_VERDICT:
    case RP_KIND_SAVE:
        return on_run_message(agent, message);
    case RP_KIND_BYE:
    case RP_KIND_FAULT:
        end_run(agent);
        agent->over = agent->options.once;
        return RP_OK;
    default:
        return rp_fail(RP_ERR_PEER, "the host sent message %d", (int)message->header.kind);
    }
}

static rp_err drain_control(rp_agent *agent) {
    for (;;) {
        rp_message *message;
        rp_err err = rp_link_recv(agent->control, &message);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        err = on_message(agent, message);
        rp_link_release(agent->control, &message);
        if (err != RP_OK) {
            fault(agent, err);
        }
    }
}

/* A host that is silent has crashed or is cut off: its run is over. */
static void watch_host(rp_agent *agent) {
    rp_link_stats stats;
    rp_link_stats_of(agent->control, &stats);
    if (stats.last_heard_ns == 0 && !agent->options.once) {
        return; /* a board waits for its first host as long as it takes */
    }
    /* a host speaks only when all its local agents are up */
    int64_t heard_ns = stats.last_heard_ns ? stats.last_heard_ns : agent->born_ns + FIRST_WORD_NS;
    if (rp_clock_now_ns(agent->clock) - heard_ns < HOST_SILENT_NS) {
        return;
    }
    if (agent->run.assigned) {
        rp_log_warn("the host is silent for %" PRId64 " s: its run is over here",
                    HOST_SILENT_NS / RP_NS_PER_S);
        end_run(agent);
    }
    agent->over = agent->options.once;
}

/* A neighbour that the host reaches and this board does not: said here, or nobody knows. */
static rp_err watch_neighbour(const rp_agent *agent) {
    const agent_run *run = &agent->run;
    if (!run->out || !run->active) {
        return RP_OK;
    }
    rp_link_stats stats;
    rp_link_stats_of(run->out, &stats);
    if (stats.auth_failed) {
        return rp_fail(RP_ERR_REFUSED, "the next stage refused the handshake");
    }
    int64_t waited_ns = rp_clock_now_ns(agent->clock) - run->connected_ns;
    if (stats.last_heard_ns == 0 && stats.unacked > 0 && waited_ns > HOST_SILENT_NS) {
        return rp_fail(RP_ERR_FAULT, "the next stage can not be reached from this board");
    }
    return RP_OK;
}

static rp_err run_round(rp_agent *agent) {
    agent_run *run = &agent->run;
    rp_link *const data[] = {run->in, run->out, run->feed};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 3; i++) {
        if (data[i]) {
            RP_TRY(rp_link_step(data[i]));
        }
    }
    RP_TRY(watch_neighbour(agent));
    if (run->active) {
        bool active;
        RP_TRY(rp_runner_step(run->runner, &active));
        if (!active) {
            RP_TRY(finished(agent));
        }
    }
    if (run->saving && !run->active) {
        RP_TRY(continue_save(agent));
    }
fail:
    return err;
}

rp_err rp_agent_step(rp_agent *agent, bool *over) {
    rp_err err;
    RP_TRY(rp_link_step(agent->control));
    RP_TRY(drain_control(agent));
    err = run_round(agent);
    if (err != RP_OK) {
        fault(agent, err);
    }
    watch_host(agent);
    *over = agent->over;
    err = RP_OK;
fail:
    return err;
}

rp_err rp_agent_wait(rp_agent *agent, int64_t timeout_ns) {
    const agent_run *run = &agent->run;
    rp_link *link[4] = {agent->control};
    uint32_t count = 1;
    rp_link *const data[] = {run->in, run->out, run->feed};
    for (uint32_t i = 0; i < 3; i++) {
        if (data[i]) {
            link[count++] = data[i];
        }
    }
    int fd = rp_device_eventfd(agent->device);
    timeout_ns = run->runner ? rp_runner_sleep_ns(run->runner, timeout_ns) : timeout_ns;
    rp_err err = rp_link_wait(link, count, &fd, 1, timeout_ns);
    uint64_t drained;
    if (read(fd, &drained, sizeof drained) < 0) {
        drained = 0; /* nothing to drain: the descriptor does not block */
    }
    return err;
}
