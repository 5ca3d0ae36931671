/* Equal boards: one of them is measured for all. */
#include <string.h>

#include "measure/measure_own.h"

/* Bytes of "tcp://HOST" in "tcp://HOST:PORT". */
static size_t count_host_bytes(const char *endpoint) {
    const char *colon = strrchr(endpoint, ':');
    return colon ? (size_t)(colon - endpoint) : strlen(endpoint);
}

/* Both are local boards, or have the same address. */
bool rp_measure_share_machine(const rp_ring *ring, uint32_t a, uint32_t b) {
    const rp_board_state *left = &ring->board[a];
    const rp_board_state *right = &ring->board[b];
    const size_t bytes = count_host_bytes(left->address.endpoint);
    const bool at_one_address =
        !left->address.dials && !right->address.dials &&
        bytes == count_host_bytes(right->address.endpoint) &&
        strncmp(left->address.endpoint, right->address.endpoint, bytes) == 0;
    return ring->spawner != NULL || at_one_address;
}

/* Equal boards are on one machine, with the same device and number of threads. Separate boards of
 * one kind may differ in cooling and power supply. */
static bool are_equal(const rp_measure *m, uint32_t a, uint32_t b) {
    const rp_ring *ring = m->needs.ring;
    const rp_board_state *left = &ring->board[a];
    const rp_board_state *right = &ring->board[b];
    const uint32_t *threads = ring->spawner ? m->needs.run->board_threads : NULL;
    return rp_measure_share_machine(ring, a, b) && left->device && right->device &&
           strcmp(left->device, right->device) == 0 &&
           strcmp(left->hardware.kind, right->hardware.kind) == 0 &&
           left->hardware.gemm == right->hardware.gemm && (!threads || threads[a] == threads[b]);
}

uint32_t rp_measure_board_for(const rp_measure *m, uint32_t board) {
    uint32_t other = 0;
    RP_ASSERT(board < m->needs.ring->count);
    while (other < board && !are_equal(m, other, board)) {
        other++;
    }
    return other;
}
