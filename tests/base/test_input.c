#include "base/input.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "expect.h"

static void names(void **state) {
    (void)state;
    assert_true(rp_input_is_standard("-"));
    assert_false(rp_input_is_standard("./-"));
    assert_string_equal(rp_input_path("a.yaml"), "a.yaml");
    assert_string_equal(rp_input_path("-"), "/dev/stdin");
    assert_string_equal(rp_input_name("-"), "standard input");
}

/* A pipe becomes a file that can be read twice. */
static void a_pipe_is_kept(void **state) {
    (void)state;
    int pipe_fd[2];
    struct stat facts;
    rp_arena arena;
    rp_node *root;
    static const char text[] = "a: 1\nb: 2\n";
    assert_int_equal(pipe(pipe_fd), 0);
    assert_int_equal(write(pipe_fd[1], text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(close(pipe_fd[1]), 0);
    assert_true(dup2(pipe_fd[0], STDIN_FILENO) == STDIN_FILENO);
    expect_ok(rp_input_keep());
    assert_int_equal(fstat(STDIN_FILENO, &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
    assert_int_equal(facts.st_size, sizeof text - 1);
    expect_ok(rp_input_keep()); /* it is a file by now */
    rp_arena_init(&arena, "test", 0);
    for (int i = 0; i < 2; i++) {
        expect_ok(rp_config_read_file(&arena, "-", &root));
        assert_string_equal(rp_node_text(rp_node_find(root, "b")), "2");
        expect_err(rp_node_done(root), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "standard input:1: a: unknown key"));
    }
    rp_arena_finish(&arena);
}

static void only_a_regular_file_is_opened(void **state) {
    (void)state;
    char folder[] = "/tmp/ringpipe-test-input-XXXXXX";
    char fifo[64];
    char plain[64];
    const char *why = NULL;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    (void)snprintf(plain, sizeof plain, "%s/plain", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const struct {
        const char *path, *why;
    } cases[] = {{fifo, "it is a pipe"},
                 {folder, "it is a directory"},
                 {"/dev/zero", "it is a device"},
                 {plain, "No such file"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(rp_input_fopen(cases[i].path, &why)); /* at once */
        assert_non_null(strstr(why, cases[i].why));
    }
    FILE *file = fopen(plain, "w");
    assert_non_null(file);
    assert_true(fputs("a", file) >= 0);
    assert_int_equal(fclose(file), 0);
    file = rp_input_fopen(plain, &why);
    assert_non_null(file);
    assert_int_equal(fgetc(file), 'a');
    assert_int_equal(fclose(file), 0);
    (void)remove(plain);
    (void)remove(fifo);
    (void)remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(a_pipe_is_kept),
        cmocka_unit_test(only_a_regular_file_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
