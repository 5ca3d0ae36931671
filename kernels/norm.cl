/* Sums of squares of the tensors in a flat gradient block, in two levels. Every tensor is divided
 * into chunks of CHUNK elements from its own first element, so its result depends only on that
 * tensor.
 *
 * spans[2 t] = first element of tensor t, spans[2 t + 1] = its number of elements. */
#ifndef CHUNK
#define CHUNK 16384 /* the same number as in rp_grad_sumsq_bytes() */
#endif
#ifndef WG
#define WG 1
#endif
#include "vec16.clh"

/* part[part_first + k] = sum of squares of chunk k, numbered through all tensors. Grid: a group of
 * WG items for each chunk. */
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
sumsq_chunks(global float *part, global const float *g, global const uint *spans, uint tensor_count,
             uint part_first) {
    local float scratch[WG];
    uint chunk = (uint)get_group_id(0);
    uint before = 0; /* chunks of the tensors before t */
    uint t = 0;
    for (; t < tensor_count; t++) {
        uint chunks = (spans[2 * t + 1] + CHUNK - 1) / CHUNK;
        if (chunk < before + chunks) {
            break;
        }
        before += chunks;
    }
    if (t == tensor_count) {
        return; /* all items of the group return here */
    }
    uint first = (chunk - before) * CHUNK;
    uint count = min(spans[2 * t + 1] - first, (uint)CHUNK);
    global const float *from = g + spans[2 * t] + first;
    float16 sums = (float16)0.0f;
    uint i = (uint)get_local_id(0) * 16;
    /* A GPU waits for memory once in each round, so a round has four loads. */
    for (; i + WG * 48 + 16 <= count; i += WG * 64) {
        float16 a = vload16(0, from + i);
        float16 b = vload16(0, from + i + WG * 16);
        float16 c = vload16(0, from + i + WG * 32);
        float16 d = vload16(0, from + i + WG * 48);
        sums += a * a;
        sums += b * b;
        sums += c * c;
        sums += d * d;
    }
    for (; i < count; i += WG * 16) {
        float16 v = load16(from + i, count - i, 0.0f);
        sums += v * v;
    }
    float sum = group_sum(sum16(sums), scratch);
    if (get_local_id(0) == 0) {
        part[part_first + chunk] = sum;
    }
}

/* out[t] = sum over the chunks of tensor t. `out` and `part` are one buffer. Grid: one item for
 * each tensor. */
kernel void sumsq_tensors(global float *out, global const uint *spans, uint tensor_count,
                          uint part_first) {
    uint t = (uint)get_global_id(0);
    if (t >= tensor_count) {
        return;
    }
    uint at = part_first;
    for (uint i = 0; i < t; i++) {
        at += (spans[2 * i + 1] + CHUNK - 1) / CHUNK;
    }
    uint chunks = (spans[2 * t + 1] + CHUNK - 1) / CHUNK;
    float sum = 0.0f;
    for (uint k = 0; k < chunks; k++) {
        sum += out[at + k];
    }
    out[t] = sum;
}
