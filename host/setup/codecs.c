/* `links.codec: auto`: chooses the codecs for a number of stages, once. A checkpoint stores those
 * that it was made with. */
#include <string.h>

#include "planning/cost.h"
#include "setup/choice.h"

bool rp_codecs_are_open(const rp_choice *c) {
    return c->run.codec_auto && !c->facts->evaluates && c->run.stages > 1 &&
           !rp_choice_is_fixed(c) && c->next.codec_stages != c->run.stages;
}

rp_err rp_codecs_set(rp_choice *c, const rp_codec (*codec)[2]) {
    rp_codec(*own)[2];
    rp_err err;
    RP_ASSERT(c->next.stages > 0 && c->next.stages <= RP_CUT_STAGES_MAX);
    RP_TRY(RP_ARENA_NEW(c->arena, c->next.stages, &own));
    memcpy(own, codec, (c->next.stages - 1) * sizeof *own);
    c->next.codec = (const rp_codec(*)[2])own;
    c->next.codec_stages = c->next.stages;
    rp_choice_refresh(c);
fail:
    return err;
}

rp_err rp_codecs_take(rp_choice *c, const rp_joint_answer *answer) {
    const bool takes = rp_codecs_are_open(c) && answer->is_known && answer->plan[0].plain_s > 0;
    return takes ? rp_codecs_set(c, answer->plan[0].codec) : RP_OK;
}

rp_err rp_codecs_find(rp_choice *c) {
    rp_codec(*found)[2];
    double *layer_seconds;
    double *rate;
    rp_err err;
    RP_ASSERT(c->run.codec_auto && c->next.cut.stage_count == c->run.stages);
    RP_TRY(RP_ARENA_NEW(c->arena, c->run.stages, &found));
    RP_TRY(RP_ARENA_NEW(c->arena, (size_t)c->run.boards * c->run.boards, &rate));
    rp_cost_rates(&c->run, c->facts->profile ? &c->placed : NULL, rate);
    c->next.codec = NULL;
    c->next.codec_stages = 0;
    rp_choice_refresh(c);
    RP_TRY(rp_choice_layer_seconds(c, &layer_seconds));
    RP_TRY(rp_cost_choose_codecs(&c->run, &c->next.cut, layer_seconds, rate, found));
    RP_TRY(rp_codecs_set(c, (const rp_codec(*)[2])found));
fail:
    return err;
}

rp_err rp_codecs_choose(rp_choice *c) {
    return rp_codecs_are_open(c) ? rp_codecs_find(c) : RP_OK;
}
