/* Rounds of simulated sites: their phases, and the files that they end with. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"
#include "simsites/virtual_own.h"

/* ---- a round --------------------------------------------------------------------------------- */

/* A ring saves its state after every quarter of its steps, from which it goes on. */
void rp_virtual_keep_checkpoint(rp_virtual *v, uint32_t index) {
    rp_virtual_site *site = &v->site[index];
    const rp_round_time *time = &v->subject->time[index];
    const double all_ns = (double)time->steps * time->step_s * 1e9;
    if (site->phase == RP_VIRTUAL_TRAIN && all_ns > 0) {
        site->trained = floor(4 * (1 - site->left_ns / all_ns)) / 4;
    }
}

void rp_virtual_end_site(rp_virtual *v, uint32_t index, int code) {
    rp_virtual_site *site = &v->site[index];
    rp_virtual_keep_checkpoint(v, index);
    site->phase = RP_VIRTUAL_ENDED;
    site->code = code;
    rp_eventlog_add(v->log, rp_virtual_time_ns(v), v->subject->list.site[index].name, "exit %d",
                    code);
}

static json_t *json_of_answer(const rp_virtual *v, uint32_t index, const char *digest) {
    const rp_virtual_site *site = &v->site[index];
    const rp_round_time *time = &v->subject->time[index];
    const rp_site_samples *held = &v->subject->list.site[index];
    const double loss = 1 / (double)site->round;
    const uint64_t from = site->from[site->round];
    return json_pack("{s:i, s:I, s:s, s:s, s:I, s:I, s:I, s:{s:f, s:f, s:f}, s:f, s:f, s:{s:f, "
                     "s:f}, s:{s:o}, s:s, s:s}",
                     "version", 1, "round", (json_int_t)site->round, "site", held->name, "status",
                     "finished", "steps", (json_int_t)time->steps, "samples",
                     (json_int_t)time->samples, "held", (json_int_t)held->train_count, "loss",
                     "first", loss, "mean", loss, "last", loss, "delta_norm", 0.0, "norm_a",
                     (double)time->steps, "seconds", "start", time->start_s, "train",
                     (double)time->steps * time->step_s, "state", "from",
                     from == RP_SITE_NO_ROUND ? json_null() : json_integer((json_int_t)from), "in",
                     site->in, "out", digest);
}

/* One bit of the weights flips after their digest was taken. */
static rp_err damage(const char *path) {
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat facts;
    unsigned char byte = 0;
    const bool good = file >= 0 && fstat(file, &facts) == 0 && facts.st_size > 0 &&
                      pread(file, &byte, 1, facts.st_size - 1) == 1;
    byte ^= 1U;
    const bool done = good && pwrite(file, &byte, 1, facts.st_size - 1) == 1;
    if (file >= 0) {
        (void)close(file);
    }
    return done ? RP_OK : rp_fail(RP_ERR_IO, "%s: could not be damaged", path);
}

static rp_err train_plain(rp_virtual *v, uint32_t index, const char *path) {
    rp_virtual_site *site = &v->site[index];
    const rp_standin *standin = &v->subject->standin;
    rp_standin_train(standin, v->subject->list.site[index].name, site->round,
                     v->subject->time[index].steps, &site->state);
    return rp_standin_write(standin, path, site->state.values, site->round);
}

/* The answer comes last. A site with options has written its result when it had trained. */
static rp_err write_answer(rp_virtual *v, uint32_t index) {
    rp_virtual_site *site = &v->site[index];
    const bool coded = v->subject->rules.delta.kind != RP_DELTA_NONE;
    char path[RP_VIRTUAL_PATH + 32];
    char digest[RP_SITES_DIGEST];
    json_t *answer = NULL;
    rp_err err;
    (void)snprintf(path, sizeof path, "%s/%s.safetensors", site->out, coded ? "update" : "weights");
    RP_TRY(v->subject->has_options ? RP_OK : train_plain(v, index, path));
    RP_TRY(rp_sites_digest_file(path, digest));
    if (site->damages > 0) {
        RP_TRY(damage(path));
        rp_virtual_note_damage(v, index);
    }
    answer = json_of_answer(v, index, digest);
    (void)snprintf(path, sizeof path, "%s/round.json", site->out);
    FILE *file = answer ? rp_replace_begin(path) : NULL;
    const bool good = file && json_dumpf(answer, file, JSON_COMPACT) == 0;
    err = rp_replace_end(file, path, good);
fail:
    json_decref(answer);
    return err;
}

/* Begins the next phase of a round. */
rp_err rp_virtual_next_phase(rp_virtual *v, uint32_t index) {
    static const char *const names[] = {"", "", "", "starts", "receives", "trains", "sends", ""};
    rp_virtual_site *site = &v->site[index];
    const rp_round_time *time = &v->subject->time[index];
    rp_err err = RP_OK;
    switch (site->phase) {
    case RP_VIRTUAL_FAILING:
    case RP_VIRTUAL_ENDING:
        rp_virtual_end_site(v, index, site->code);
        return RP_OK;
    case RP_VIRTUAL_START:
        site->left_ns = time->down_s * 1e9;
        break;
    case RP_VIRTUAL_DOWN:
        site->left_ns = (double)time->steps * time->step_s * (1 - site->trained) * 1e9;
        break;
    case RP_VIRTUAL_TRAIN:
        RP_TRY(v->subject->has_options ? rp_virtual_train_kept(v, index) : RP_OK);
        site->trained = 1;
        site->left_ns = time->up_s * 1e9;
        break;
    default:
        RP_TRY(write_answer(v, index));
        rp_virtual_end_site(v, index, 0);
        return RP_OK;
    }
    site->phase++;
    rp_eventlog_add(v->log, rp_virtual_time_ns(v), v->subject->list.site[index].name, "%s",
                    names[site->phase]);
fail:
    return err;
}

/* ---- the score ---------------------------------------------------------------------------------
 */

/* Nothing is trained, so there is nothing to score. */
rp_err rp_virtual_end_score(rp_virtual *v) {
    FILE *file = rp_replace_begin(v->scores);
    v->score_ended = true;
    return rp_replace_end(file, v->scores, file && fputs("{}\n", file) >= 0);
}
