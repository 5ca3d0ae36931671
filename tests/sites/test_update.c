/* Coded differences that leave a site: files on both sides, error feedback, bytes that are refused.
 */
#include "folder.h"

#include <math.h>

#include "sites/asked.h"
#include "sites/start.h"
#include "sites/state.h"
#include "sites/update.h"

enum { MANY = 600 };

static void expect_part(const char *part) {
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

static rp_model_param params[] = {
    {.name = "body.weight", .owner = 0, .count = MANY},
    {.name = "bn.running_var", .owner = 1, .count = 2, .role = RP_PARAM_STATE},
    {.name = "head.weight", .owner = 2, .count = 2},
    {.name = "scratch", .owner = 3, .count = 9, .role = RP_PARAM_SCRATCH},
};
static const rp_model model = {.param_count = 4, .param = params};
static const char *const heads[] = {"head.*"};

/* ---- files ----------------------------------------------------------------------------------- */

static float value_of(uint32_t i, float times) {
    return times * (float)((i * 37) % 101) / 101;
}

/* body: value_of(i, times); variance and head: as given; a counter that is 5. */
static void write_weights(const char *name, float times, float variance, float head) {
    static float body[MANY];
    static const char *const meta[] = {"format", "pt", NULL};
    const rp_st_entry entry[] = {{"count", RP_ST_I64, 0, {0}, 0, 8},
                                 {"body.weight", RP_ST_F32, 2, {MANY / 2, 2}, 0, sizeof body},
                                 {"bn.running_var", RP_ST_F32, 1, {2}, 0, 8},
                                 {"head.weight", RP_ST_F32, 1, {2}, 0, 8},
                                 {"other", RP_ST_F32, 1, {2}, 0, 8}};
    const float variances[] = {variance, 1};
    const float two[] = {head, head};
    const int64_t count = 5;
    rp_st_writer *writer = NULL;
    for (uint32_t i = 0; i < MANY; i++) {
        body[i] = value_of(i, times) + value_of(i / 3, times * times);
    }
    expect_ok(rp_st_create(&arena, in_folder(name), entry, 5, meta, false, &writer));
    expect_ok(rp_st_write(writer, 0, 0, &count, 8));
    expect_ok(rp_st_write(writer, 1, 0, body, sizeof body));
    expect_ok(rp_st_write(writer, 2, 0, variances, 8));
    expect_ok(rp_st_write(writer, 3, 0, two, 8));
    expect_ok(rp_st_write(writer, 4, 0, two, 8));
    expect_ok(rp_st_commit(&writer));
}

typedef struct {
    float body[MANY], variance, head;
} read_back;

static void read_weights(const char *name, read_back *out) {
    rp_st_reader *reader = NULL;
    const float *value;
    int64_t count;
    expect_ok(rp_st_open(&arena, in_folder(name), &reader));
    assert_int_equal(rp_st_count(reader), 5);
    expect_ok(rp_st_need_f32(reader, "body.weight", 2, (uint64_t[]){MANY / 2, 2}, &value));
    memcpy(out->body, value, sizeof out->body);
    expect_ok(rp_st_need_f32(reader, "bn.running_var", 1, (uint64_t[]){2}, &value));
    out->variance = value[0];
    expect_ok(rp_st_need_f32(reader, "head.weight", 1, (uint64_t[]){2}, &value));
    out->head = value[0];
    memcpy(&count, rp_st_data(reader, rp_st_find(reader, "count")), sizeof count);
    assert_int_equal(count, 5);
    rp_st_close(&reader);
}

static rp_update_facts facts_of(const rp_round_rules *rules) {
    return (rp_update_facts){
        .rules = rules, .model = &model, .given = in_folder("given"), .digest = "0011"};
}

static rp_err write_update(const rp_round_rules *rules, const char *name, rp_site_difference *out) {
    char *path;
    expect_ok(rp_arena_string(&arena, in_folder(name), &path));
    const rp_update_facts facts = facts_of(rules);
    const rp_update_files files = {.trained = in_folder("trained"),
                                   .start = in_folder("start"),
                                   .update = path,
                                   .errors = in_folder("errors")};
    return rp_update_write(&arena, &facts, &files, out);
}

static rp_err read_update(const rp_round_rules *rules, const char *name) {
    const rp_update_facts facts = facts_of(rules);
    return rp_update_read(&arena, &facts, in_folder(name), in_folder("received"));
}

/* Saves e of the round and begins the next one, both with the site's folder. */
static rp_site_start next_start(const rp_round_rules *rules, uint64_t round) {
    const rp_site_state saved = {.rules = rules,
                                 .folder = folder,
                                 .site = "a",
                                 .round = round,
                                 .trained = in_folder("trained"),
                                 .errors = in_folder("errors"),
                                 .optimizer = "sgd"};
    rp_site_start out;
    char *path;
    uint64_t from;
    expect_ok(rp_site_save_state(&arena, &saved));
    expect_ok(rp_site_find_state(&arena, folder, round + 1, &path, &from));
    const rp_site_start_order order = {.rules = rules,
                                       .given = in_folder("given"),
                                       .state = path,
                                       .round = round + 1,
                                       .from = from,
                                       .site = "a",
                                       .optimizer = "sgd"};
    expect_ok(rp_site_make_start(&arena, &order, in_folder("start")));
    expect_ok(rp_site_read_start(&arena, in_folder("start"), &out));
    return out;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void all_of_topk_is_no_codec(void **state) {
    const rp_round_rules rules = {.delta = {.kind = RP_DELTA_TOPK, .share = 1}};
    rp_site_difference out;
    static read_back trained;
    static read_back received;
    (void)state;
    write_weights("given", 1, 1, 1);
    write_weights("start", 1, 1, 1);
    write_weights("trained", 1.25f, 0.5f, 3);
    expect_ok(write_update(&rules, "update", &out));
    assert_true(out.norm > 1 && !out.clipped);
    expect_ok(read_update(&rules, "update"));
    read_weights("trained", &trained);
    read_weights("received", &received);
    for (uint32_t i = 0; i < MANY; i++) {
        expect_close(received.body[i], trained.body[i], 0, 2e-7);
    }
    assert_true(received.variance == 0.5f);
    expect_close(received.head, 3, 0, 0);
}

/* Statistics travel as they are, kept tensors not at all, and int8 takes a quarter. */
static void what_leaves_the_site(void **state) {
    const rp_round_rules rules = {.keep = heads, .keep_count = 1, .delta = {.kind = RP_DELTA_INT8}};
    const rp_round_rules whole = {0};
    rp_st_reader *reader = NULL;
    rp_site_difference out;
    static read_back received;
    (void)state;
    write_weights("given", 1, 1, 1);
    write_weights("start", 1, 1, 1);
    write_weights("trained", 1.25f, 1e-6f, 3);
    expect_ok(write_update(&rules, "update", &out));
    expect_ok(rp_st_open(&arena, in_folder("update"), &reader));
    assert_int_equal(rp_st_count(reader), 2);
    assert_int_equal(rp_st_find(reader, "body.weight")->type, RP_ST_U8);
    assert_int_equal(rp_st_find(reader, "body.weight")->bytes, MANY + 5 * 4);
    assert_int_equal(rp_st_find(reader, "bn.running_var")->type, RP_ST_F32);
    assert_string_equal(rp_st_meta(reader, "codec"), "int8");
    assert_string_equal(rp_st_meta(reader, "in"), "0011");
    rp_st_close(&reader);
    assert_int_equal(rp_update_bytes(&rules, &model), MANY + 5 * 4 + 8);
    assert_int_equal(rp_update_bytes(&whole, &model), (MANY + 4) * 4);
    expect_ok(read_update(&rules, "update"));
    read_weights("received", &received);
    expect_close(received.head, 1, 0, 0);
    assert_true(received.variance == 1e-6f);
}

/* What one round loses, later rounds send: the sum of what was sent comes near to the sum of the
 * differences, and e is exactly the rest. */
static void errors_are_sent_later(void **state) {
    static const rp_round_rules cases[] = {{.delta = {.kind = RP_DELTA_INT8}},
                                           {.delta = {.kind = RP_DELTA_TOPK, .share = 0.1}}};
    static read_back given;
    static read_back trained;
    static read_back received;
    static double sent[MANY];
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        const rp_round_rules *rules = &cases[c];
        enum { ROUNDS = 5 };
        rp_site_difference out;
        rp_st_reader *reader = NULL;
        const float *e;
        memset(sent, 0, sizeof sent);
        write_weights("given", 1, 1, 1);
        write_weights("start", 1, 1, 1);
        write_weights("trained", 1.25f, 1, 1);
        read_weights("given", &given);
        read_weights("trained", &trained);
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            expect_ok(write_update(rules, "update", &out));
            expect_ok(read_update(rules, "update"));
            read_weights("received", &received);
            for (uint32_t i = 0; i < MANY; i++) {
                sent[i] += (double)received.body[i] - (double)given.body[i];
            }
            const rp_site_start start = next_start(rules, 10 * c + round);
            assert_int_equal(start.errors, 2);
        }
        expect_ok(rp_st_open(&arena, in_folder("start"), &reader));
        expect_ok(
            rp_st_need_f32(reader, "optim.error.body.weight", 2, (uint64_t[]){MANY / 2, 2}, &e));
        for (uint32_t i = 0; i < MANY; i++) {
            const double all = ROUNDS * ((double)trained.body[i] - (double)given.body[i]);
            expect_close(sent[i] + (double)e[i], all, 0, 1e-5);
        }
        rp_st_close(&reader);
    }
}

/* The file is the same for the same files, so a round that is done again sends the same. */
static void the_same_round_sends_the_same(void **state) {
    const rp_round_rules rules = {.delta = {.kind = RP_DELTA_TOPK, .share = 0.03}};
    char digest[4][RP_SITES_DIGEST];
    rp_site_difference out;
    (void)state;
    write_weights("given", 1, 1, 1);
    write_weights("start", 1, 1, 1);
    write_weights("trained", 1.5f, 1, 2);
    for (size_t i = 0; i < 4; i++) {
        if (i == 2) {
            (void)next_start(&rules, 1);
        }
        expect_ok(write_update(&rules, "update", &out));
        expect_ok(rp_sites_digest_file(in_folder("update"), digest[i]));
    }
    assert_string_equal(digest[0], digest[1]);
    assert_string_equal(digest[2], digest[3]);
    assert_string_not_equal(digest[1], digest[2]);
}

static void flip_byte(const char *name, long from_end) {
    FILE *file = fopen(in_folder(name), "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
    assert_int_not_equal(fputc(byte ^ 0xff, file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void wrong_updates_are_refused(void **state) {
    const rp_round_rules rules = {.delta = {.kind = RP_DELTA_TOPK, .share = 0.1}};
    const rp_round_rules other = {.delta = {.kind = RP_DELTA_TOPK, .share = 0.2}};
    const rp_round_rules kept = {
        .keep = heads, .keep_count = 1, .delta = {.kind = RP_DELTA_TOPK, .share = 0.1}};
    rp_site_difference out;
    (void)state;
    write_weights("given", 1, 1, 1);
    write_weights("start", 1, 1, 1);
    write_weights("trained", 1.25f, 1, 2);
    expect_ok(write_update(&rules, "update", &out));
    expect_err(read_update(&other, "update"), RP_ERR_FORMAT);
    expect_part("metadata 'codec'");
    expect_err(read_update(&kept, "update"), RP_ERR_FORMAT);
    expect_part("has 3 tensors, expected 2");
    rp_update_facts facts = facts_of(&rules); /* its paths are valid for a few calls only */
    facts.digest = "0022";
    expect_err(rp_update_read(&arena, &facts, in_folder("update"), in_folder("received")),
               RP_ERR_FORMAT);
    expect_part("metadata 'in'");
    expect_err(read_update(&rules, "given"), RP_ERR_FORMAT);
    expect_err(read_update(&rules, "none"), RP_ERR_IO);
    /* a tensor that is missing there, and one of another size */
    expect_ok(write_update(&kept, "less", &out));
    expect_err(read_update(&rules, "less"), RP_ERR_FORMAT);
    expect_part("'head.weight': expected 5 bytes as U8");
    /* the position of the head's only value, which is the last tensor */
    flip_byte("update", 5);
    expect_err(read_update(&rules, "update"), RP_ERR_FORMAT);
    expect_part("position");
    assert_int_not_equal(access(in_folder("received"), F_OK), 0);
    /* differences that cannot be coded */
    write_weights("given", 1, 1, -3e38f);
    write_weights("trained", 1, 1, 3e38f);
    expect_err(write_update(&rules, "big", &out), RP_ERR_FORMAT);
    expect_part("not finite");
    write_weights("trained", NAN, 1, 2);
    expect_err(write_update(&rules, "big", &out), RP_ERR_FORMAT);
    assert_int_not_equal(access(in_folder("big"), F_OK), 0);
}

/* Only a delta has errors, and not of a tensor that the site keeps by now. */
static void errors_follow_the_rules(void **state) {
    const rp_round_rules rules = {.keeps_optimizer = true, .delta = {.kind = RP_DELTA_INT8}};
    const rp_round_rules plain = {.keeps_optimizer = true};
    const rp_round_rules kept = {.keep = heads, .keep_count = 1, .delta = {.kind = RP_DELTA_INT8}};
    rp_site_difference out;
    (void)state;
    write_weights("given", 1, 1, 1);
    write_weights("start", 1, 1, 1);
    write_weights("trained", 1.25f, 1, 2);
    expect_ok(write_update(&rules, "update", &out));
    assert_int_equal(next_start(&rules, 1).errors, 2);
    assert_int_equal(next_start(&kept, 1).errors, 1);
    assert_int_equal(next_start(&plain, 1).errors, 0);
}

/* ---- the quadratic problem of the golden vectors ----------------------------------------------
 */

enum { SITES = 3, STEPS = 4, WEIGHTS = 2 };
static const double rate = 0.1;
static const double steep[SITES][WEIGHTS] = {{1, 0.5}, {0.2, 2}, {0.6, 1}};
static const double least[SITES][WEIGHTS] = {{3, 0}, {-1, 1}, {0.5, -3}};

/* FedAvg with coded differences, from (1, -2). feeds: what a round loses is sent later. mean: of
 * the centres of the second half of the rounds. */
static void average_rounds(const rp_delta *delta, bool feeds, int rounds, double mean[WEIGHTS]) {
    double x[WEIGHTS] = {1, -2};
    float e[SITES][WEIGHTS] = {{0}};
    mean[0] = mean[1] = 0;
    for (int round = 0; round < rounds; round++) {
        double next[WEIGHTS] = {x[0], x[1]};
        for (int i = 0; i < SITES; i++) {
            uint8_t code[64];
            float sent[WEIGHTS];
            for (int j = 0; j < WEIGHTS; j++) {
                double y = x[j];
                for (int step = 0; step < STEPS; step++) {
                    y -= rate * steep[i][j] * (y - least[i][j]);
                }
                e[i][j] = (float)((feeds ? (double)e[i][j] : 0) + y - x[j]);
            }
            rp_delta_encode(delta, e[i], WEIGHTS, code);
            assert_null(rp_delta_decode(delta, code, WEIGHTS, sent));
            for (int j = 0; j < WEIGHTS; j++) {
                e[i][j] -= sent[j];
                next[j] += (double)sent[j] / SITES;
            }
        }
        for (int j = 0; j < WEIGHTS; j++) {
            x[j] = next[j];
            mean[j] += round >= rounds / 2 ? x[j] / (rounds - rounds / 2) : 0;
        }
    }
}

static double distance_of(const rp_delta *delta, bool feeds) {
    const rp_delta exact = {.kind = RP_DELTA_TOPK, .share = 1};
    double want[WEIGHTS];
    double mean[WEIGHTS];
    average_rounds(&exact, false, 400, want);
    average_rounds(delta, feeds, 400, mean);
    return hypot(mean[0] - want[0], mean[1] - want[1]);
}

static void feedback_ends_where_fedavg_ends(void **state) {
    const rp_delta int8 = {.kind = RP_DELTA_INT8};
    const rp_delta half = {.kind = RP_DELTA_TOPK, .share = 0.5}; /* one of the two weights */
    (void)state;
    assert_true(distance_of(&int8, true) < 1e-3);
    assert_true(distance_of(&half, true) < 0.02);
    assert_true(distance_of(&half, false) > 0.2); /* without, it ends elsewhere */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_of_topk_is_no_codec, setup, teardown),
        cmocka_unit_test_setup_teardown(what_leaves_the_site, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_are_sent_later, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_round_sends_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_updates_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_follow_the_rules, setup, teardown),
        cmocka_unit_test(feedback_ends_where_fedavg_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
