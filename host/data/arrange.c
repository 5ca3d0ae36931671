/* The key `buckets`, and batches of samples of one length. */
#include <stdio.h>
#include <string.h>

#include "data/data.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Lengths of the training part. */
static rp_err list_lengths(rp_arena *arena, const rp_data *data, uint32_t **out) {
    const uint32_t count = data->count[RP_SPLIT_TRAIN];
    rp_err err = RP_ARENA_NEW(arena, (size_t)count + 1, out);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        (*out)[i] = rp_data_length(data, RP_SPLIT_TRAIN, i);
    }
    return err;
}

static rp_err read_list(const rp_data *data, rp_node *list, rp_buckets *out) {
    const uint32_t count = rp_node_count(list);
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t time = 0;
        const uint32_t least = k > 0 ? out->time[k - 1] + 1 : 1;
        RP_TRY(rp_node_item_u32(list, k, least, data->time, &time));
        if (time == data->time) {
            return k + 1 == count
                       ? RP_OK
                       : rp_node_fail(list, "expected ascending lengths up to %u", data->time);
        }
        if (k == RP_BUCKETS_MAX) {
            return rp_node_fail(list, "expected at most %d lengths below %u", RP_BUCKETS_MAX,
                                data->time);
        }
        out->time[out->count++] = time;
    }
fail:
    return err;
}

/* The list as "16, 24, 32 and 56". */
static void print_buckets(const rp_data *data, char *out, size_t bytes) {
    const rp_buckets *b = &data->buckets;
    size_t used = 0;
    for (uint32_t k = 0; k < b->count && used < bytes; k++) {
        used += (size_t)snprintf(out + used, bytes - used, "%s%u", k > 0 ? ", " : "", b->time[k]);
    }
    (void)snprintf(out + used, bytes - used, " and %u", data->time);
}

static rp_err note_padding(rp_arena *arena, rp_data *data, const uint32_t *length) {
    const uint32_t count = data->count[RP_SPLIT_TRAIN];
    double all = 0;
    char text[160];
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t time = rp_buckets_hold(&data->buckets, length[i]);
        all += time > 0 ? time : data->time;
    }
    const double whole = (double)data->time * count;
    print_buckets(data, text, sizeof text);
    return rp_notes_add(arena, &data->notes,
                        "buckets of %s tokens: an epoch has %.0f %% of the tokens that it has "
                        "without buckets, padding included",
                        text, 100 * all / whole);
}

static rp_err refuse_set(const rp_data *data, const rp_node *node) {
    return rp_node_fail(node,
                        "buckets are for the sets tsv and pairs, whose samples have different "
                        "lengths; the samples of %s all have one length: remove it",
                        data->kind->name);
}

rp_err rp_data_read_buckets(rp_arena *arena, rp_data *data, rp_node *keys) {
    rp_node *node = rp_node_find(keys, "buckets");
    const char *word = node && rp_node_is_scalar(node) ? rp_node_text(node) : NULL;
    const bool is_auto = word && strcmp(word, "auto") == 0;
    rp_arena scratch;
    uint32_t *length;
    rp_err err;
    data->buckets = (rp_buckets){0};
    if (!node || (word && strcmp(word, "none") == 0)) {
        return RP_OK;
    }
    if (!data->kind->length) {
        return refuse_set(data, node);
    }
    if (!is_auto && (!rp_node_is_list(node) || rp_node_count(node) == 0)) {
        return rp_node_fail(node, "expected auto, none, or a list of lengths like [16, 24, 32]");
    }
    rp_arena_init(&scratch, "lengths", 0);
    RP_TRY(is_auto ? RP_OK : read_list(data, node, &data->buckets));
    RP_TRY(list_lengths(&scratch, data, &length));
    if (is_auto) {
        data->buckets = rp_buckets_choose(length, data->count[RP_SPLIT_TRAIN], data->time);
        RP_TRY(list_lengths(&scratch, data, &length));
    }
    RP_TRY(data->buckets.count > 0 ? note_padding(arena, data, length) : RP_OK);
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* ---- batches --------------------------------------------------------------------------------- */

static uint32_t bucket_of(const rp_data *data, rp_split split, uint32_t index) {
    return rp_buckets_find(&data->buckets, rp_data_length(data, split, index));
}

void rp_data_arrange(const rp_data *data, rp_split split, uint32_t batch, uint32_t *order,
                     uint32_t *spare) {
    enum { BUCKETS = RP_BUCKETS_MAX + 1 };
    const uint32_t count = data->count[split];
    uint32_t first[BUCKETS + 1] = {0}; /* of each bucket in `spare` */
    uint32_t end[BUCKETS];
    uint32_t sorted[BUCKETS];
    uint32_t out = 0;
    if (data->buckets.count == 0) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        first[bucket_of(data, split, order[i]) + 1]++;
    }
    for (uint32_t k = 0; k < BUCKETS; k++) {
        first[k + 1] += first[k];
        end[k] = sorted[k] = first[k];
    }
    for (uint32_t i = 0; i < count; i++) {
        spare[sorted[bucket_of(data, split, order[i])]++] = order[i];
    }
    /* Only places that were read before are overwritten. */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t k = bucket_of(data, split, order[i]);
        end[k]++;
        if ((end[k] - first[k]) % batch == 0) {
            memcpy(order + out, spare + end[k] - batch, batch * sizeof *order);
            out += batch;
        }
    }
    for (uint32_t k = 0; k < BUCKETS; k++) {
        const uint32_t left = (end[k] - first[k]) % batch;
        memcpy(order + out, spare + end[k] - left, left * sizeof *order);
        out += left;
    }
    RP_ASSERT(out == count);
}

uint32_t rp_data_batch_time(const rp_data *data, rp_split split, const uint32_t *index,
                            uint32_t n) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n && data->buckets.count > 0; i++) {
        const uint32_t length = rp_data_length(data, split, index[i]);
        most = length > most ? length : most;
    }
    return rp_buckets_hold(&data->buckets, most);
}

/* Each value moves to an earlier place, which no later one has. */
void rp_data_pack(const rp_data *data, uint32_t time, uint32_t n, int32_t *x, int32_t *labels) {
    const uint32_t whole = data->time;
    const uint32_t width = rp_data_label_width(data);
    const uint32_t packed = width - whole + time;
    RP_ASSERT(time < whole);
    for (uint32_t i = 0; i < n * data->parts; i++) {
        memmove(x + (size_t)i * time, x + (size_t)i * whole, time * sizeof *x);
    }
    for (uint32_t i = 0; labels && data->by_token && i < n; i++) {
        int32_t *to = labels + (size_t)i * packed;
        const int32_t *from = labels + (size_t)i * width;
        const int32_t counted = from[width - 1];
        memmove(to, from, time * sizeof *to);
        if (data->ignores) {
            to[time] = counted;
        }
    }
}
