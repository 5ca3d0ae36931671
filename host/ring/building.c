#include "ring/building.h"

#include <stdio.h>

int64_t rp_ring_build_limit_ns(const rp_ring *ring) {
    const int64_t more_ns = rp_ring_patience_ns(ring->run);
    int64_t longest_ns = more_ns;
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_build *build = &ring->board[k].build;
        const int64_t own_ns = build->has_built ? build->prepare_ns + more_ns : RP_RING_BUILD_NS;
        longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
    }
    RP_ASSERT(longest_ns > 0);
    return longest_ns;
}

void rp_ring_tell_building(const rp_ring *ring, const char *text, rp_sink_part *out) {
    rp_sink_part boards = {.text = text, .total = ring->count, .unit = "boards ready"};
    rp_sink_part kernels = {.text = text, .unit = "kernels"};
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        boards.done += board->ready;
        kernels.done += board->build.now.ready;
        kernels.total += board->build.now.kernels;
    }
    *out = kernels.total ? kernels : boards;
    RP_ASSERT(out->done <= out->total);
}

/* Sums over all boards, because boards that share a cache share the work. */
void rp_ring_describe_ready(const rp_ring *ring, char *out, size_t bytes) {
    uint64_t device = 0;
    int64_t slowest_ns = 0;
    rp_board_building all = {0};
    char kernels[160] = "";
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        device += board->memory.device_bytes;
        slowest_ns = board->build.prepare_ns > slowest_ns ? board->build.prepare_ns : slowest_ns;
        all.ready += board->build.before.ready;
        all.built += board->build.before.built;
        all.build_ns += board->build.before.build_ns;
        all.read_ns += board->build.before.read_ns;
    }
    RP_ASSERT(all.built <= all.ready);
    if (all.ready > 0) {
        (void)snprintf(kernels, sizeof kernels,
                       ": %u kernels built in %.1f s, %u found in the cache in %.1f s, summed over "
                       "the boards",
                       all.built, (double)all.build_ns * 1e-9, all.ready - all.built,
                       (double)all.read_ns * 1e-9);
    }
    (void)snprintf(out, bytes,
                   "%u board%s ready%s; the slowest stage was prepared in %.1f s; %.1f MiB of "
                   "device memory in use",
                   ring->count, ring->count == 1 ? " is" : "s are", kernels,
                   (double)slowest_ns * 1e-9, (double)device / (1 << 20));
}
