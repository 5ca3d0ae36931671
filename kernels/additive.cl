/* Additive attention: for each query t, over the keys s,
 *   e[t][s] = sum over u of v[u] tanh(q[t][u] + k[s][u] + bias[u]),  p = softmax(e),  y = p memory
 *
 * The workspace `w` has v [units] (scaled, if it is normalised), p [n, queries, keys], de like p,
 * and dq and dv [n, queries, units]; `<name>_at` is where each begins. Element 0 of each tensor is
 * at `<name>_first` of its buffer. `bias` is NULL without a bias, `ids` if no key is masked. Unless
 * said otherwise the grid is one item for each 16 elements of a row of what is written, one
 * dimension for all rows. */
#include "vec16.clh"

/* v = weight, or scalar weight / |weight|. Grid: one item for each 16 units. */
kernel void additive_weight(global float *w, ulong v_at, global const float *weight,
                            global const float *scalar, uint units) {
    uint i = (uint)get_global_id(0) * 16;
    if (i >= units) {
        return;
    }
    float factor = 1.0f;
    if (scalar) {
        float16 square = (float16)0.0f;
        for (uint u = 0; u < units; u += 16) {
            float16 v = load16(weight + u, units - u, 0.0f);
            square += v * v;
        }
        factor = scalar[0] / sqrt(sum16(square));
    }
    store16(load16(weight + i, units - i, 0.0f) * factor, w + v_at + i, units - i);
}

/* tanh(q + k + bias) of 16 units; 0 after the last unit. */
static float16 bend(global const float *q, global const float *k, global const float *bias, uint u,
                    uint units) {
    float16 sum = load16(q + u, units - u, 0.0f) + load16(k + u, units - u, 0.0f);
    return tanh(bias ? sum + load16(bias + u, units - u, 0.0f) : sum);
}

/* p = e, -infinity for masked keys. Grid: one item for each pair of a query and a key. */
kernel void additive_scores(global float *w, ulong p_at, ulong v_at, global const float *q,
                            ulong q_first, global const float *k, ulong k_first,
                            global const float *bias, global const int *ids, ulong ids_first,
                            int padding, uint n, uint queries, uint keys, uint units) {
    uint item = (uint)get_global_id(0);
    uint row = item / keys;
    uint s = item % keys;
    if (row >= n * queries) {
        return;
    }
    ulong key = (ulong)(row / queries) * keys + s;
    if (ids && ids[ids_first + key] == padding) {
        w[p_at + item] = -INFINITY;
        return;
    }
    float16 sum = (float16)0.0f;
    for (uint u = 0; u < units; u += 16) {
        float16 h = bend(q + q_first + (ulong)row * units, k + k_first + key * units, bias, u,
                         units);
        sum += load16(w + v_at + u, units - u, 0.0f) * h;
    }
    w[p_at + item] = sum16(sum);
}

/* p = softmax(e); zeros if every key is masked. Grid: one item a query. */
kernel void additive_softmax(global float *w, ulong p_at, uint rows, uint keys) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    global float *p = w + p_at + (ulong)row * keys;
    float most = -INFINITY;
    for (uint s = 0; s < keys; s++) {
        most = p[s] > most || isnan(p[s]) ? p[s] : most;
    }
    float level = isinf(most) && most < 0.0f ? 0.0f : most;
    float sum = 0.0f;
    for (uint s = 0; s < keys; s++) {
        p[s] = exp(p[s] - level);
        sum += p[s];
    }
    float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (uint s = 0; s < keys; s++) {
        p[s] *= factor;
    }
}

/* y = p memory */
kernel void additive_context(global float *y, ulong y_first, global const float *w, ulong p_at,
                             global const float *memory, ulong memory_first, uint n, uint queries,
                             uint keys, uint columns) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    if (row >= n * queries) {
        return;
    }
    global const float *from = memory + memory_first + (ulong)(row / queries) * keys * columns + i;
    float16 sum = (float16)0.0f;
    for (uint s = 0; s < keys; s++) {
        sum += w[p_at + (ulong)row * keys + s] *
               load16(from + (ulong)s * columns, columns - i, 0.0f);
    }
    store16(sum, y + y_first + (ulong)row * columns + i, columns - i);
}

/* de = dy memory'. Grid: one item for each pair of a query and a key. */
kernel void additive_products(global float *w, ulong de_at, global const float *dy, ulong dy_first,
                              global const float *memory, ulong memory_first, uint n, uint queries,
                              uint keys, uint columns) {
    uint item = (uint)get_global_id(0);
    uint row = item / keys;
    uint s = item % keys;
    if (row >= n * queries) {
        return;
    }
    ulong key = (ulong)(row / queries) * keys + s;
    float16 sum = (float16)0.0f;
    for (uint i = 0; i < columns; i += 16) {
        sum += load16(dy + dy_first + (ulong)row * columns + i, columns - i, 0.0f) *
               load16(memory + memory_first + key * columns + i, columns - i, 0.0f);
    }
    w[de_at + item] = sum16(sum);
}

/* de = p (de - sum over the keys of p de). Grid: one item a query. */
kernel void additive_dsoftmax(global float *w, ulong de_at, ulong p_at, uint rows, uint keys) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    global float *de = w + de_at + (ulong)row * keys;
    global const float *p = w + p_at + (ulong)row * keys;
    float sum = 0.0f;
    for (uint s = 0; s < keys; s++) {
        sum += p[s] * de[s];
    }
    for (uint s = 0; s < keys; s++) {
        de[s] = p[s] * (de[s] - sum);
    }
}

/* For each query, with h = tanh(q + k + bias):
 *   dq = sum over s of de v (1 - h^2),   dv = sum over s of de h */
kernel void additive_dquery(global float *w, ulong dq_at, ulong dv_at, ulong de_at, ulong v_at,
                            global const float *q, ulong q_first, global const float *k,
                            ulong k_first, global const float *bias, uint n, uint queries,
                            uint keys, uint units) {
    uint item = (uint)get_global_id(0);
    uint pieces = (units + 15) / 16;
    uint row = item / pieces;
    uint u = item % pieces * 16;
    if (row >= n * queries) {
        return;
    }
    global const float *key = k + k_first + (ulong)(row / queries) * keys * units;
    float16 of_bend = (float16)0.0f;
    float16 of_weight = (float16)0.0f;
    for (uint s = 0; s < keys; s++) {
        float16 h = bend(q + q_first + (ulong)row * units, key + (ulong)s * units, bias, u, units);
        float d = w[de_at + (ulong)row * keys + s];
        of_bend += d * (1.0f - h * h);
        of_weight += d * h;
    }
    ulong at = (ulong)row * units + u;
    store16(of_bend * load16(w + v_at + u, units - u, 0.0f), w + dq_at + at, units - u);
    store16(of_weight, w + dv_at + at, units - u);
}

/* dk (+)= sum over t of de v (1 - h^2) */
kernel void additive_dkey(global float *dk, ulong dk_first, global const float *w, ulong de_at,
                          ulong v_at, global const float *q, ulong q_first, global const float *k,
                          ulong k_first, global const float *bias, uint n, uint queries, uint keys,
                          uint units, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (units + 15) / 16;
    uint row = item / pieces;
    uint u = item % pieces * 16;
    if (row >= n * keys) {
        return;
    }
    ulong query = (ulong)(row / keys) * queries;
    float16 sum = (float16)0.0f;
    for (uint t = 0; t < queries; t++) {
        float16 h = bend(q + q_first + (query + t) * units, k + k_first + (ulong)row * units, bias,
                         u, units);
        sum += w[de_at + (query + t) * keys + row % keys] * (1.0f - h * h);
    }
    put16(sum * load16(w + v_at + u, units - u, 0.0f), dk + dk_first + (ulong)row * units + u,
          units - u, add);
}

/* dmemory (+)= p' dy */
kernel void additive_dmemory(global float *dm, ulong dm_first, global const float *w, ulong p_at,
                             global const float *dy, ulong dy_first, uint n, uint queries,
                             uint keys, uint columns, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (columns + 15) / 16;
    uint row = item / pieces;
    uint i = item % pieces * 16;
    if (row >= n * keys) {
        return;
    }
    ulong query = (ulong)(row / keys) * queries;
    float16 sum = (float16)0.0f;
    for (uint t = 0; t < queries; t++) {
        sum += w[p_at + (query + t) * keys + row % keys] *
               load16(dy + dy_first + (query + t) * columns + i, columns - i, 0.0f);
    }
    put16(sum, dm + dm_first + (ulong)row * columns + i, columns - i, add);
}

/* Turns dv of each query into the gradient of the weight that was normalised, and ds [n, queries]
 * into that of the scalar. Grid: one item a query. */
kernel void additive_dnormalise(global float *w, ulong dv_at, ulong ds_at,
                                global const float *weight, global const float *scalar, uint rows,
                                uint units) {
    uint row = (uint)get_global_id(0);
    if (row >= rows) {
        return;
    }
    global float *dv = w + dv_at + (ulong)row * units;
    float16 square = (float16)0.0f;
    float16 product = (float16)0.0f;
    for (uint u = 0; u < units; u += 16) {
        float16 v = load16(weight + u, units - u, 0.0f);
        square += v * v;
        product += v * load16(dv + u, units - u, 0.0f);
    }
    float size = sqrt(sum16(square));
    float along = sum16(product) / size; /* of dv, in the weight's direction */
    for (uint u = 0; u < units; u += 16) {
        float16 v = load16(weight + u, units - u, 0.0f);
        float16 d = load16(dv + u, units - u, 0.0f);
        store16((d - along / size * v) * (scalar[0] / size), dv + u, units - u);
    }
    w[ds_at + row] = along;
}
