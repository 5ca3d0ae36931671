/* Local boards, started through a spawner. */
#include "ring/ring_own.h"

static rp_spawn_order spawn_order(const rp_ring *ring, const char *log_folder) {
    const rp_runfile *run = ring->run;
    return (rp_spawn_order){.count = run->boards,
                            .board = run->board,
                            .threads = run->threads,
                            .board_threads = run->board_threads,
                            .log_folder = log_folder,
                            .host_public = ring->keys.public_text,
                            .media = ring->media ? rp_media_fd(ring->media) : -1};
}

rp_err rp_ring_spawn(rp_ring *ring, const rp_spawner *spawner, const char *log_folder) {
    const rp_spawn_order order = spawn_order(ring, log_folder);
    RP_ASSERT(!ring->spawner && spawner->kind && order.count == ring->count);
    ring->spawner = spawner;
    return spawner->kind->start(spawner->self, &order);
}

rp_err rp_ring_respawn(rp_ring *ring, const char *log_folder) {
    bool hung[RP_RING_BOARDS_MAX] = {false};
    rp_spawn_order order = spawn_order(ring, log_folder);
    RP_ASSERT(!ring->spawner || order.count == ring->count);
    for (uint32_t k = 0; k < ring->count && k < RP_RING_BOARDS_MAX; k++) {
        hung[k] = ring->board[k].silence.hung;
        ring->board[k].silence.hung = false;
    }
    order.hung = order.count <= RP_RING_BOARDS_MAX ? hung : NULL;
    ring->boards_up = false;
    return ring->spawner ? ring->spawner->kind->restart(ring->spawner->self, &order) : RP_OK;
}

rp_err rp_ring_step_spawned(rp_ring *ring) {
    const rp_spawner *spawner = ring->spawner;
    rp_err err = RP_OK;
    RP_ASSERT(ring->board && (spawner || !ring->run->local));
    ring->boards_up = !spawner;
    if (spawner) {
        RP_TRY(spawner->kind->step(spawner->self, &ring->boards_up));
    }
    for (uint32_t k = 0; spawner && ring->boards_up && k < ring->count; k++) {
        const char *endpoint;
        const char *public_text;
        spawner->kind->address(spawner->self, k, &endpoint, &public_text);
        rp_ring_set_address(ring, k, endpoint, public_text);
    }
fail:
    return err;
}

int rp_ring_spawner_fd(const rp_ring *ring) {
    const rp_spawner *spawner = ring->spawner;
    return spawner && !ring->boards_up ? spawner->kind->fd(spawner->self) : -1;
}

rp_err rp_ring_reap(rp_ring *ring, uint32_t *board) {
    RP_ASSERT(ring->spawner);
    return ring->spawner->kind->reap(ring->spawner->self, board);
}

bool rp_ring_end_spawned(rp_ring *ring) {
    const rp_spawner *spawner = ring->spawner;
    return !spawner || spawner->kind->end(spawner->self, ring->now_ns);
}

void rp_ring_close_spawned(rp_ring *ring) {
    if (ring->spawner) {
        ring->spawner->kind->close(ring->spawner->self);
        ring->spawner = NULL;
    }
}
