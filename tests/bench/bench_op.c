/* What an op costs outside of the executor: schedule, books of the stage, runner, ports, links over
 * the inproc transport, and reports. bench_op [SCHEDULE...]: CPU microseconds an op on four nodes,
 * each with one stage (or two, of an interleaved schedule), on the executor that computes nothing.
 * What the test's host does (inputs, labels) is not counted. */
#include <inttypes.h>
#include <time.h>

#include "agent/ring.h"

static const char model[] = "input: [4]\nlayers:\n"
                            "  - {name: a, kind: dense, out: 4}\n  - {name: a1, kind: tanh}\n"
                            "  - {name: b, kind: dense, out: 4}\n  - {name: b1, kind: tanh}\n"
                            "  - {name: c, kind: dense, out: 4}\n  - {name: c1, kind: tanh}\n"
                            "  - {name: d, kind: dense, out: 4}\n  - {name: d1, kind: tanh}\n";
static const char job_format[] =
    "sample: [4]\nclasses: 4\nseed: 1\nbatch: 64\nmicrobatch: 16\nepoch_samples: 65536\n"
    "steps: 2000\nloss: cross-entropy\noptimizer: {kind: adam, lr: 0.1}\nschedule: %s\n";
enum { NODES = 4 };

static int64_t cpu_ns(void) {
    struct timespec at;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec * RP_NS_PER_S + at.tv_nsec;
}

static void measure_op(const char *schedule) {
    const rp_clock clock = rp_clock_real();
    const rp_site site = {.clock = &clock};
    const bool several = strstr(schedule, "interleaved") != NULL;
    char job[512];
    test_ring ring;
    int64_t spent_ns = 0;
    uint64_t ops = 0;
    bool more = true;
    (void)snprintf(job, sizeof job, job_format, schedule);
    test_ring_open_on(&ring, "timed", &site, model, job,
                      several ? "[a1, b, b1, c, c1, d, d1]" : "[b, c, d]",
                      several ? 2 * NODES : NODES);
    test_ring_start(&ring);
    while (more) {
        test_ring_feed(&ring);
        const int64_t start_ns = cpu_ns();
        more = test_ring_step_nodes(&ring);
        spent_ns += cpu_ns() - start_ns;
    }
    for (uint32_t n = 0; n < ring.nodes; n++) {
        ops += rp_runner_facts_of(ring.node[n].runner).ops;
    }
    printf("%-40s %8.2f us an op, %" PRIu64 " ops\n", schedule,
           (double)spent_ns / 1e3 / (double)ops, ops);
    test_ring_close(&ring);
}

int main(int argc, char **argv) {
    static const char *const all[] = {"gpipe", "1f1b", "{kind: interleaved-1f1b, chunks: 2}",
                                      "pipedream", "pipeoptim"};
    for (int i = 1; i < argc; i++) {
        measure_op(argv[i]);
    }
    for (size_t i = 0; argc == 1 && i < sizeof all / sizeof *all; i++) {
        measure_op(all[i]);
    }
    return 0;
}
