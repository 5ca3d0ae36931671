/* What surrounds attention.cl: rows of a tensor to panels and back, rotary positions, the mask of
 * padding, and row sums for the backward pass. All kernels have groups of one item.
 *
 * source  Su et al. 2021, "RoFormer" (rotary positions) */
#include "attention.clh"
#include "gemm_tile.clh"

/* Transposes 16 elements of the rows [first, first + 16). Rows from `live` on do not exist, and a
 * row has only `left` of the elements: missing values are 0. */
static void read_block(float16 *block, global const float *rows, uint row_stride, uint first,
                       uint live, uint left) {
    rows += (ulong)first * row_stride;
#pragma unroll
    for (uint i = 0; i < 16; i++) {
        block[i] =
            first + i < live ? load16(rows + (ulong)i * row_stride, left, 0.0f) : (float16)0.0f;
    }
    transpose16(block);
}

/* Turns the pairs of a panel by the angles: x1 = x1 cos - x2 sin, x2 = x2 cos + x1 sin; `sign` -1
 * turns back. A pair is (i, i + size / 2), if `apart` is size / 2, or (2 i, 2 i + 1), if it is 1.
 * angles: [size / 2][cos, sin][32]. */
static void turn_panel(global float *panel, global const float *angles, uint size, uint apart,
                       float sign) {
    for (uint i = 0; i < size / 2; i++, angles += 2 * TOKENS) {
        global float *first = panel + (apart == 1 ? 2 * i : i) * TOKENS;
        global float *second = first + apart * TOKENS;
        for (uint j = 0; j < TOKENS; j += 16) {
            const float16 c = vload16(0, angles + j);
            const float16 s = vload16(0, angles + TOKENS + j) * sign;
            const float16 a = vload16(0, first + j);
            const float16 b = vload16(0, second + j);
            vstore16(a * c - b * s, 0, first + j);
            vstore16(b * c + a * s, 0, second + j);
        }
    }
}

/* Angles of the tokens at position, position + 1, ...: position * base^(-2 i / size).
 * Grid: (panels, size / 2). */
kernel ONE_ITEM void find_angles(global float *work, ulong to_first, uint size, int position,
                                 float base) {
    const uint panel = (uint)get_group_id(0);
    const uint i = (uint)get_group_id(1);
    const float rate = pow(base, -2.0f * (float)i / (float)size);
    global float *to = work + to_first + (ulong)(panel * (size / 2) + i) * 2 * TOKENS;
    const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (uint j = 0; j < TOKENS; j += 16) {
        const float16 angle = (lane + (float)(position + (int)(panel * TOKENS + j))) * rate;
        vstore16(cos(angle), 0, to + j);
        vstore16(sin(angle), 0, to + TOKENS + j);
    }
}

/* Panels [sample, head, panel] of a tensor [sample, token, head, size], whose samples and tokens
 * are sample_stride and row_stride elements apart; times `factor`. apart 0: positions are not
 * turned. Grid: (samples * heads, panels), because the next head has the next columns. */
kernel ONE_ITEM void pack_panels(global float *work, ulong to_first, global const float *from,
                                 ulong from_first, ulong sample_stride, uint row_stride, uint heads,
                                 uint tokens, uint size, float factor, uint apart,
                                 ulong angles_first) {
    const uint panel = (uint)get_group_id(1);
    const uint run = (uint)get_group_id(0);
    const uint depth = (size + 7) / 8 * 8;
    const uint live = min(tokens - panel * TOKENS, (uint)TOKENS);
    global float *to = work + to_first + (ulong)(run * PANELS(tokens) + panel) * depth * TOKENS;
    from += from_first + run / heads * sample_stride + run % heads * size +
            (ulong)panel * TOKENS * row_stride;
    for (uint j = 0; j < TOKENS; j += 16) {
        for (uint d = 0; d < size; d += 16) {
            float16 block[16];
            read_block(block, from + d, row_stride, j, live, size - d);
            const uint rows = min(depth - d, 16u);
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                if (i < rows) {
                    vstore16(block[i] * factor, 0, to + (d + i) * TOKENS + j);
                }
            }
        }
    }
    if (apart) {
        turn_panel(to, work + angles_first + (ulong)panel * size * TOKENS, size, apart, 1.0f);
    }
}

/* The inverse of pack_panels(), if `add` added to what is there; changes the panels when it turns
 * positions back. */
kernel ONE_ITEM void unpack_panels(global float *to, ulong to_first, ulong sample_stride,
                                   uint row_stride, global float *work, ulong from_first,
                                   uint heads, uint tokens, uint size, float factor, uint add,
                                   uint apart, ulong angles_first) {
    const uint panel = (uint)get_group_id(1);
    const uint run = (uint)get_group_id(0);
    const uint depth = (size + 7) / 8 * 8;
    const uint live = min(tokens - panel * TOKENS, (uint)TOKENS);
    global float *from = work + from_first + (ulong)(run * PANELS(tokens) + panel) * depth * TOKENS;
    to += to_first + run / heads * sample_stride + run % heads * size +
          (ulong)panel * TOKENS * row_stride;
    if (apart) {
        turn_panel(from, work + angles_first + (ulong)panel * size * TOKENS, size, apart, -1.0f);
    }
    for (uint j = 0; j < live; j += 16) {
        for (uint d = 0; d < size; d += 16) {
            float16 block[16];
            read_block(block, from + j, TOKENS, d, depth, 16);
            global float *rows = to + (ulong)j * row_stride + d;
#pragma unroll
            for (uint i = 0; i < 16; i++) {
                if (j + i < live) {
                    put16(block[i] * factor, rows + (ulong)i * row_stride, size - d, add);
                }
            }
        }
    }
}

/* mask[sample][key] = -infinity for keys with the id `padding`, otherwise 0; a sample has whole
 * panels. Grid: (panels, samples). */
kernel ONE_ITEM void mask_padding(global float *work, ulong to_first, global const int *ids,
                                  ulong ids_first, uint keys, int padding) {
    const uint panel = (uint)get_group_id(0);
    const uint sample = (uint)get_group_id(1);
    global float *to = work + to_first + (ulong)sample * PANELS(keys) * TOKENS;
    ids += ids_first + (ulong)sample * keys;
    for (uint s = panel * TOKENS; s < (panel + 1) * TOKENS; s++) {
        to[s] = s < keys && ids[s] == padding ? -INFINITY : 0.0f;
    }
}

/* delta[sample, head][token] = sum of dy * y over the head; whole panels. Grid: (samples * heads,
 * panels). */
kernel ONE_ITEM void sum_rows(global float *work, ulong to_first, global const float *dy,
                              ulong dy_first, global const float *y, ulong y_first, uint heads,
                              uint tokens, uint size) {
    const uint panel = (uint)get_group_id(1);
    const uint run = (uint)get_group_id(0);
    const ulong first = (ulong)(run / heads) * tokens * heads * size + run % heads * size;
    global float *to = work + to_first + (ulong)run * PANELS(tokens) * TOKENS;
    dy += dy_first + first;
    y += y_first + first;
    for (uint t = panel * TOKENS; t < min((panel + 1) * TOKENS, tokens); t++) {
        const ulong row = (ulong)t * heads * size;
        float16 sums = (float16)0.0f;
        for (uint d = 0; d < size; d += 16) {
            sums += load16(dy + row + d, size - d, 0.0f) * load16(y + row + d, size - d, 0.0f);
        }
        to[t] = sum16(sums);
    }
}
