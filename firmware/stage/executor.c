/* Common to all executors: positions of blocks, and samples that arrive in pieces. */
#include "stage/executor.h"

#include <string.h>

const rp_executor_kind *rp_executor_find(const char *name) {
    uint32_t i = 0;
    while (rp_executor_kinds[i] && strcmp(rp_executor_kinds[i]->name, name) != 0) {
        i++;
    }
    return rp_executor_kinds[i];
}

void rp_executor_count_none(const rp_executor *executor, const rp_command *command) {
    const size_t numbers = 2 * (size_t)rp_layout_overlap_classes(executor->job);
    memset(command->counts.out, 0, numbers * command->counts.count * sizeof *command->counts.out);
}

uint32_t rp_block_count(const rp_layout *layout, rp_block_kind kind) {
    const uint32_t count[RP_BLOCK_KINDS] = {
        [RP_BLOCK_WEIGHTS] = layout->copies.versions,
        [RP_BLOCK_PREDICTED] = layout->copies.predicted,
        [RP_BLOCK_CENTRE] = layout->copies.centres,
        [RP_BLOCK_SCRATCH] = layout->copies.scratches,
        [RP_BLOCK_STATE] = layout->replicas * layout->state_count,
        [RP_BLOCK_PROBE] = layout->probes,
        [RP_BLOCK_PEER] = layout->peers,
        [RP_BLOCK_GRADIENT] = layout->gradients,
    };
    return count[kind];
}

uint32_t rp_block_position(const rp_layout *layout, rp_block block) {
    uint32_t position = block.index;
    RP_ASSERT(block.index < rp_block_count(layout, block.kind));
    for (rp_block_kind kind = 0; kind < block.kind; kind++) {
        position += rp_block_count(layout, kind);
    }
    return position;
}

uint32_t rp_block_total(const rp_layout *layout) {
    uint32_t total = 0;
    for (rp_block_kind kind = 0; kind < RP_BLOCK_KINDS; kind++) {
        total += rp_block_count(layout, kind);
    }
    return total;
}

rp_piece_cut rp_piece_of(const rp_stage_piece *piece, const rp_range *samples) {
    const uint32_t piece_end = piece->samples.first + piece->samples.count;
    const uint32_t end = samples->first + samples->count;
    const uint32_t first =
        piece->samples.first > samples->first ? piece->samples.first : samples->first;
    const uint32_t stop = piece_end < end ? piece_end : end;
    if (first >= stop) {
        return (rp_piece_cut){0};
    }
    return (rp_piece_cut){first - samples->first, first - piece->samples.first, stop - first};
}

bool rp_pieces_cover(const rp_stage_piece *piece, uint32_t count, const rp_range *samples) {
    uint32_t covered = 0;
    for (uint32_t i = 0; i < count; i++) {
        const rp_piece_cut cut = rp_piece_of(&piece[i], samples);
        covered += cut.count;
        for (uint32_t j = 0; j < i; j++) {
            const rp_piece_cut other = rp_piece_of(&piece[j], samples);
            if (other.at < cut.at + cut.count && cut.at < other.at + other.count) {
                return false;
            }
        }
    }
    return covered == samples->count;
}

const char *rp_tie_row_of(const rp_tie_row *row, uint32_t count, uint32_t stage) {
    uint32_t i = 0;
    while (i < count && row[i].stage != stage) {
        i++;
    }
    RP_ASSERT(i < count);
    return row[i].row;
}
