/* Digests as bytes: parameters as in files, and everything that microbatches in flight need. */
#include <string.h>

#include "stage/digest_own.h"

typedef struct {
    char *at;
    size_t bytes;
} span;

enum { IN_FLIGHT_SPANS = 3 };

/* The blocks of versions and predictions are contiguous. */
static void find_in_flight(const digest_executor *e, span out[IN_FLIGHT_SPANS]) {
    const rp_layout *layout = e->as.base.layout;
    const size_t block = layout->trained_count * sizeof(rp_digest);
    const rp_block probes = {RP_BLOCK_PROBE, 0};
    out[0] =
        (span){(char *)e->blocks, (layout->copies.versions + layout->copies.predicted) * block};
    out[1] =
        (span){layout->probes ? (char *)digest_block(e, probes) : NULL, layout->probes * block};
    out[2] = (span){(char *)e->slots, layout->slots * e->slot_digests * sizeof *e->slots};
}

size_t rp_digest_in_flight_bytes(const digest_executor *e) {
    span spans[IN_FLIGHT_SPANS];
    find_in_flight(e, spans);
    return spans[0].bytes + spans[1].bytes + spans[2].bytes;
}

static void move_in_flight(const digest_executor *e, size_t first, size_t count, const char *in,
                           char *out) {
    span spans[IN_FLIGHT_SPANS];
    size_t begin = 0;
    find_in_flight(e, spans);
    for (uint32_t i = 0; i < IN_FLIGHT_SPANS; i++) {
        const size_t from = first > begin ? first : begin;
        const size_t span_end = begin + spans[i].bytes;
        const size_t end = first + count < span_end ? first + count : span_end;
        if (from < end && in) {
            memcpy(spans[i].at + (from - begin), in + (from - first), end - from);
        } else if (from < end) {
            memcpy(out + (from - first), spans[i].at + (from - begin), end - from);
        }
        begin = span_end;
    }
}

static rp_digest *digest_at(const digest_executor *e, rp_block block, uint32_t param) {
    const uint32_t trained = e->as.base.layout->trained[param];
    return trained == RP_NOT_TRAINED ? &e->running[param] : &digest_block(e, block)[trained];
}

rp_err rp_digest_read_region(rp_executor *executor, const rp_region *region, size_t first,
                             size_t count, void *out) {
    const digest_executor *e = digest_executor_of(executor);
    if (region->kind == RP_REGION_IN_FLIGHT) {
        move_in_flight(e, first, count, NULL, out);
        return RP_OK;
    }
    const rp_digest *digest = digest_at(e, region->block, region->param);
    memset(out, 0, count);
    if (first < sizeof *digest) {
        const size_t rest = sizeof *digest - first;
        memcpy(out, (const char *)digest + first, count < rest ? count : rest);
    }
    return RP_OK;
}

static rp_digest fold_chunk(const digest_writing *w, size_t count) {
    const rp_digest parts[] = {w->hash, rp_digest_of_bytes(w->chunk, count)};
    return rp_digest_of_bytes(parts, sizeof parts);
}

static void write_byte(digest_writing *w, char byte) {
    if (w->next < sizeof w->first) {
        ((char *)&w->first)[w->next] = byte;
    } else {
        w->plain |= byte != 0;
    }
    w->chunk[w->next++ % DIGEST_CHUNK_BYTES] = byte;
    if (w->next % DIGEST_CHUNK_BYTES == 0) {
        w->hash = fold_chunk(w, DIGEST_CHUNK_BYTES);
    }
}

static void store_param(digest_executor *e, const rp_region *region, uint32_t param,
                        rp_digest digest) {
    const rp_layout *layout = e->as.base.layout;
    if (region->kind == RP_REGION_BLOCK || layout->trained[param] == RP_NOT_TRAINED) {
        *digest_at(e, region->block, param) = digest;
        return;
    }
    for (uint32_t v = 0; v < layout->copies.versions; v++) {
        *digest_at(e, (rp_block){RP_BLOCK_WEIGHTS, v}, param) = digest;
    }
    if (layout->copies.centres) {
        *digest_at(e, (rp_block){RP_BLOCK_CENTRE, 0}, param) = digest;
    }
}

static void digest_store(digest_executor *e, const rp_region *region, rp_digest digest) {
    const rp_layout *layout = e->as.base.layout;
    for (uint32_t p = 0; p < layout->param_count; p++) {
        if (rp_layout_is_same_tensor(layout, e->as.base.job->model, p, region->param)) {
            store_param(e, region, p, digest);
        }
    }
}

static bool same_region(const rp_region *a, const rp_region *b) {
    return a->kind == b->kind && a->param == b->param && a->block.kind == b->block.kind &&
           a->block.index == b->block.index;
}

rp_err rp_digest_write_region(rp_executor *executor, const rp_region *region, size_t first,
                              size_t count, const void *from) {
    digest_executor *e = digest_executor_of(executor);
    digest_writing *w = &e->writing;
    if (region->kind == RP_REGION_IN_FLIGHT) {
        move_in_flight(e, first, count, from, NULL);
        return RP_OK;
    }
    const rp_model_param *param = digest_param(e, region->param);
    if (first == 0) {
        *w = (digest_writing){.region = *region};
    }
    if (first != w->next || !same_region(&w->region, region)) {
        return rp_fail(RP_ERR_USAGE, "tensor %s: received byte %zu, expected byte %zu next",
                       param->name, first, same_region(&w->region, region) ? w->next : 0);
    }
    for (size_t i = 0; i < count; i++) {
        write_byte(w, ((const char *)from)[i]);
    }
    digest_store(
        e, region,
        rp_digest_fit(w->plain ? fold_chunk(w, w->next % DIGEST_CHUNK_BYTES) : w->first, param));
    return RP_OK;
}
