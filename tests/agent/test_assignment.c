/* What boards of one process are told is read once; what a board alone is told is its own. */
#include "expect.h"

#include <stdlib.h>

#include "agent/assignment.h"

static const char head[] = "stage: %u\n";
static const char job_lines[] = "stages: 2\nsample: [4]\nclasses: 3\ntarget_width: 1\nseed: %u\n"
                                "batch: 8\nmicrobatch: 4\nepoch_samples: 32\nsteps: 4\n"
                                "step_first: 0\nloss: cross-entropy\ncut: [last]\n"
                                "optimizer: {kind: sgd, lr: 0.1}\nschedule: 1f1b\n";
static const char tail[] = "peers:\n  host: \"host of %u\"\n";
static const char model_text[] = "input: data\nlayers:\n  - {name: first, kind: dense, out: 4}\n"
                                 "  - {name: last, kind: dense, out: classes}\n";

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static void write_job(char *out, size_t bytes, uint32_t board, uint32_t seed) {
    size_t used = (size_t)snprintf(out, bytes, head, board);
    used += (size_t)snprintf(out + used, bytes - used, job_lines, seed);
    (void)snprintf(out + used, bytes - used, tail, board);
}

static char *plan_of(const rp_job *job) {
    const rp_plan_options options = {.model_name = "two",
                                     .model = job->model,
                                     .cut = &job->cut,
                                     .method = &job->method,
                                     .batch = job->batch,
                                     .micro = job->micro,
                                     .epoch_samples = job->epoch_samples,
                                     .steps = job->steps};
    rp_plan *plan;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    expect_ok(rp_plan_make(&arena, &options, &plan));
    expect_ok(rp_plan_write(plan, file));
    assert_int_equal(fclose(file), 0);
    return text;
}

/* As board `board` of a run with this seed; `plan` NULL: what is read for a profile. */
static rp_err read_as(rp_agent_library *library, uint32_t board, uint32_t seed, const char *plan,
                      rp_agent_reading *out) {
    char job[1024];
    write_job(job, sizeof job, board, seed);
    const rp_part parts[] = {rp_part_of_text(job), rp_part_of_text(model_text),
                             rp_part_of_text(plan ? plan : "")};
    return rp_agent_read(&arena, library, parts, plan ? 3 : 2, out);
}

static const char *host_of(const rp_agent_reading *reading) {
    const char *host = NULL;
    rp_node *peers = rp_node_find(reading->own, "peers");
    assert_non_null(peers);
    expect_ok(rp_node_string(peers, "host", &host));
    return host;
}

static void boards_share_all_but_their_own_lines(void **state) {
    (void)state;
    rp_agent_library *library;
    rp_agent_reading profile;
    rp_agent_reading board[3];
    expect_ok(rp_agent_library_open(&arena, &library));
    expect_ok(read_as(library, 0, 1, NULL, &profile));
    assert_null(profile.plan);
    char *plan = plan_of(&profile.job);
    expect_ok(read_as(library, 0, 1, plan, &board[0]));
    expect_ok(read_as(library, 1, 1, plan, &board[1]));
    expect_ok(read_as(library, 1, 2, plan, &board[2])); /* of another run */
    assert_ptr_equal(board[0].plan, board[1].plan);
    assert_ptr_equal(board[0].job.model, board[1].job.model);
    assert_ptr_not_equal(board[0].plan, board[2].plan);
    assert_ptr_not_equal(board[0].job.model, board[2].job.model);
    assert_int_equal(board[0].plan->node_count, 2);
    assert_int_equal(board[1].job.seed, 1);
    assert_int_equal(board[2].job.seed, 2);
    assert_string_equal(host_of(&board[0]), "host of 0");
    assert_string_equal(host_of(&board[1]), "host of 1");
    rp_agent_end_reading(&board[0]);
    rp_agent_end_reading(&profile);
    assert_int_equal(board[1].plan->node_count, 2); /* still there */
    assert_string_equal(board[1].job.model->layer[1].name, "last");
    rp_agent_end_reading(&board[1]);
    rp_agent_end_reading(&board[2]);
    rp_agent_library_close(&library);
    free(plan);
}

static void a_board_alone_reads_for_itself(void **state) {
    (void)state;
    rp_agent_reading profile;
    rp_agent_reading board[2];
    expect_ok(read_as(NULL, 0, 1, NULL, &profile));
    char *plan = plan_of(&profile.job);
    expect_ok(read_as(NULL, 0, 1, plan, &board[0]));
    expect_ok(read_as(NULL, 1, 1, plan, &board[1]));
    assert_ptr_not_equal(board[0].plan, board[1].plan);
    assert_ptr_equal(board[1].own, board[1].root);
    assert_int_equal(board[1].job.stage, 1);
    assert_string_equal(host_of(&board[1]), "host of 1");
    free(plan);
}

/* A wrong text is refused as it is without a library, and nobody else gets it. */
static void wrong_texts_are_refused(void **state) {
    (void)state;
    rp_agent_library *library;
    rp_agent_reading profile;
    rp_agent_reading board;
    expect_ok(rp_agent_library_open(&arena, &library));
    expect_ok(read_as(NULL, 0, 1, NULL, &profile));
    char *plan = plan_of(&profile.job);
    for (int i = 0; i < 2; i++) {
        expect_err(read_as(library, 0, 1, "{}", &board), RP_ERR_FORMAT);
    }
    static const char key[] = "\"model_digest\": \"";
    char *digest = strstr(plan, key);
    assert_non_null(digest);
    digest += sizeof key - 1;
    const char first = digest[0];
    digest[0] = first == '0' ? '1' : '0'; /* of another model */
    expect_err(read_as(library, 0, 1, plan, &board), RP_ERR_USAGE);
    digest[0] = first;
    expect_ok(read_as(library, 0, 1, plan, &board));
    rp_agent_end_reading(&board);
    rp_agent_library_close(&library);
    free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boards_share_all_but_their_own_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_alone_reads_for_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_texts_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
