/* Orders to boards: what they have to measure. */
#include <string.h>

#include "measure/measure_own.h"
#include "planning/cost.h"

/* Seconds that a board may take; a large model on a slow board then gets fewer repeats. */
enum { MEASURE_S = 60 };

/* PROFILE measures all codecs; a run measures its own or, with `auto`, those that may be chosen. */
uint32_t rp_measure_list_codecs(const rp_measure *m, uint32_t out[RP_MEASURED_CODECS]) {
    const rp_runfile *run = m->needs.run;
    uint32_t count = 0;
    for (uint32_t codec = RP_CODEC_F32 + 1; codec < RP_CODECS; codec++) {
        bool wanted =
            m->needs.only_profiles || (run->codec_auto && rp_cost_may_choose((rp_codec)codec));
        for (uint32_t k = 0; run->codec && k + 1 < run->stages; k++) {
            wanted = wanted || run->codec[k][0] == codec || run->codec[k][1] == codec;
        }
        if (wanted && codec != RP_CODEC_UINT8) {
            RP_ASSERT(count < RP_MEASURED_CODECS);
            out[count++] = codec;
        }
    }
    return count;
}

static uint32_t average_of(const rp_method *method) {
    const rp_average_rule rule = method->kind->average;
    return rule == RP_AVERAGE_NONE        ? RP_MEASURED_NO_AVERAGE
           : rule == RP_AVERAGE_REFERENCE ? RP_MEASURED_REFERENCE
           : method->before               ? RP_MEASURED_HALVES
                                          : RP_MEASURED_ELASTIC;
}

/* plan.schedules may choose any of its methods, so everything that one of them needs is measured.
 * Only the first average is, because boards measure just one. */
static void order_weights(const rp_runfile *run, rp_Profile *out) {
    out->predicts = rp_method_predicts(&run->method);
    out->average = average_of(&run->method);
    for (uint32_t i = 0; i < run->schedules.count; i++) {
        const rp_method *other = &run->schedules.at[i].method;
        out->predicts = out->predicts || rp_method_predicts(other);
        if (out->average == RP_MEASURED_NO_AVERAGE) {
            out->average = average_of(other);
        }
    }
}

/* Older boards only measure the run's microbatch. */
rp_err rp_measure_order(const rp_measure *m, uint32_t board, rp_Profile *out) {
    const rp_profile *profile = &m->profile;
    const uint64_t features = m->needs.ring->features;
    RP_ASSERT(m->builders == 0 && rp_measure_board_for(m, board) == board);
    if (!(features & RP_WIRE_FEATURE_SIZES)) {
        return RP_OK;
    }
    if (rp_profile_probe_is_due(m, board)) {
        return rp_profile_probe_order(m, board, out);
    }
    out->samples_count = (pb_size_t)profile->size_count;
    memcpy(out->samples, profile->sizes, profile->size_count * sizeof *profile->sizes);
    out->seconds = MEASURE_S;
    if (features & RP_WIRE_FEATURE_BESIDES) {
        uint32_t codec[RP_MEASURED_CODECS];
        out->besides = true;
        order_weights(m->needs.run, out);
        out->codec_count = (pb_size_t)rp_measure_list_codecs(m, codec);
        memcpy(out->codec, codec, out->codec_count * sizeof *codec);
    }
    return RP_OK;
}
