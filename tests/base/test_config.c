#include "expect.h"

#include <math.h>
#include <unistd.h>

#include "base/config.h"

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

static rp_node *parse_text(const char *text) {
    rp_node *root = NULL;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    return root;
}

/* The text is refused and the message has `part`. */
static void expect_refused(const char *text, const char *part) {
    rp_node *root = NULL;
    expect_err(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root), RP_ERR_USAGE);
    assert_null(root);
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

static void expect_message(const char *whole) {
    assert_string_equal(rp_err_message(), whole);
}

static const char run_text[] = "# a run\n"
                               "model: vgg11\n"
                               "data: {set: glyphs, shuffle: true}\n"
                               "train:\n"
                               "  batch: 128\n"
                               "  seed: 18446744073709551615\n"
                               "optimizer: {kind: sgd, lr: 5.0e-4, momentum: .9, decay: 1e3}\n"
                               "cut: [conv1, \"relu 2\"]\n";

static void values_are_read(void **state) {
    (void)state;
    rp_node *root = parse_text(run_text);
    const char *text = NULL;
    uint32_t u32 = 7;
    uint64_t u64 = 7;
    double f64 = 7;
    float f32 = 7;
    bool yes = false;
    expect_ok(rp_node_string(root, "model", &text));
    assert_string_equal(text, "vgg11");
    rp_node *train = rp_node_find(root, "train");
    assert_true(rp_node_is_map(train));
    assert_int_equal(rp_node_line(train), 4);
    expect_ok(rp_node_u32(train, "batch", 1, 65536, &u32));
    assert_int_equal(u32, 128);
    expect_ok(rp_node_u64(train, "seed", 0, UINT64_MAX, &u64));
    assert_true(u64 == UINT64_MAX);
    rp_node *optimizer = rp_node_find(root, "optimizer");
    expect_ok(rp_node_f64(optimizer, "lr", 0, 1, &f64));
    expect_close(f64, 5e-4, 0, 0);
    expect_ok(rp_node_f32(optimizer, "momentum", 0, 1, &f32));
    expect_close(f32, 0.9, 1e-7, 0);
    expect_ok(rp_node_f64(optimizer, "decay", -INFINITY, INFINITY, &f64));
    expect_close(f64, 1000, 0, 0);
    expect_ok(rp_node_bool(rp_node_find(root, "data"), "shuffle", &yes));
    assert_true(yes);
    static const char *const kinds[] = {"adam", "sgd", NULL};
    expect_ok(rp_node_word(optimizer, "kind", kinds, &u32));
    assert_int_equal(u32, 1);
    rp_node *cut = rp_node_find(root, "cut");
    assert_true(rp_node_is_list(cut));
    assert_int_equal(rp_node_count(cut), 2);
    assert_string_equal(rp_node_text(rp_node_item(cut, 1)), "relu 2");
    assert_string_equal(rp_node_key(root, 4), "cut");
    expect_ok(rp_node_done(optimizer));
    expect_ok(rp_node_done(root));
}

/* Editors on Windows begin a file with the byte order mark of UTF-8; lines are not moved by it. */
static void a_byte_order_mark_is_passed_over(void **state) {
    (void)state;
    uint32_t batch = 0;
    rp_node *root = parse_text("\xef\xbb\xbfmodel: x\nbatch: 3\nlr: y\n");
    expect_ok(rp_node_u32(root, "batch", 1, 9, &batch));
    assert_int_equal(batch, 3);
    assert_int_equal(rp_node_line(rp_node_find(root, "model")), 1);
    expect_err(rp_node_u32(root, "lr", 1, 9, &batch), RP_ERR_USAGE);
    expect_message("run.yaml:3: lr: expected a whole number from 1 to 9, found 'y'");
}

static void a_tab_is_named(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"train:\n\tbatch: 3\n", "run.yaml:2: a tab indents this line; YAML needs spaces"},
        {"\xef\xbb\xbf"
         "a:\n  - b: 1\n  \tc: 2\n",
         "run.yaml:3: a tab indents this line; YAML needs spaces"},
        {"a: b\n@: c\n", "run.yaml:2: not valid YAML: "},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_refused(texts[i][0], texts[i][1]);
    }
}

static void lists_of_numbers(void **state) {
    (void)state;
    rp_node *root = parse_text("a: [3, 0.5, x, [1]]\nb: {c: 1}\n");
    rp_node *list = rp_node_find(root, "a");
    uint32_t u32 = 0;
    double f64 = 0;
    const char *text = NULL;
    static const char *const words[] = {"c", NULL};
    expect_ok(rp_node_item_u32(list, 0, 1, 9, &u32));
    assert_int_equal(u32, 3);
    expect_ok(rp_node_item_f64(list, 1, 0, 1, &f64));
    expect_close(f64, 0.5, 0, 0);
    expect_err(rp_node_item_u32(list, 2, 1, 9, &u32), RP_ERR_USAGE);
    expect_message("run.yaml:1: a[2]: expected a whole number from 1 to 9, found 'x'");
    expect_err(rp_node_item_f64(list, 3, 0, 1, &f64), RP_ERR_USAGE);
    expect_err(rp_node_string(root, "b", &text), RP_ERR_USAGE);
    expect_message("run.yaml:2: b: expected a text, found a map");
    expect_err(rp_node_word(root, "b", words, &u32), RP_ERR_USAGE);
    expect_err(rp_node_bool(root, "b", &(bool){false}), RP_ERR_USAGE);
}

static void absent_keys_leave_defaults(void **state) {
    (void)state;
    rp_node *root = parse_text("a: 1\n");
    uint32_t u32 = 42;
    const char *text = "preset";
    bool yes = true;
    expect_ok(rp_node_u32(root, "b", 0, 9, &u32));
    expect_ok(rp_node_string(root, "c", &text));
    expect_ok(rp_node_bool(rp_node_find(root, "section"), "d", &yes));
    assert_int_equal(u32, 42);
    assert_string_equal(text, "preset");
    assert_true(yes);
    expect_ok(rp_node_need(root, "a"));
    expect_err(rp_node_need(root, "steps"), RP_ERR_USAGE);
    expect_message("run.yaml:1: the key 'steps' is needed here");
}

/* Reads `throttle`, formerly `pace`, of `ring`; `log` is what went to standard error meanwhile. */
static rp_err find_renamed(const char *text, char *log, size_t bytes, rp_node **out) {
    FILE *file = tmpfile();
    const int standard_error = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(standard_error >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    const rp_err err =
        rp_node_find_renamed(rp_node_find(parse_text(text), "ring"), "throttle", "pace", out);
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    (void)close(standard_error);
    rewind(file);
    log[fread(log, 1, bytes - 1, file)] = '\0';
    (void)fclose(file);
    return err;
}

/* A key's former name is read as the key, and the log says so. */
static void former_names_are_read(void **state) {
    (void)state;
    char log[512];
    rp_node *found;
    expect_ok(find_renamed("ring: {boards: 2}\n", log, sizeof log, &found));
    assert_null(found);
    expect_ok(find_renamed("ring:\n  throttle: a\n", log, sizeof log, &found));
    assert_string_equal(rp_node_text(found), "a");
    assert_string_equal(log, "");
    expect_ok(find_renamed("ring:\n  pace: b\n", log, sizeof log, &found));
    assert_string_equal(rp_node_text(found), "b");
    assert_non_null(strstr(log, "run.yaml: ring.pace is now called ring.throttle"));
    expect_err(find_renamed("ring:\n  throttle: a\n  pace: b\n", log, sizeof log, &found),
               RP_ERR_USAGE);
    expect_message("run.yaml:3: ring.pace: is the former name of `throttle`; give `throttle` only");
}

static void wrong_values_are_named(void **state) {
    (void)state;
    rp_node *root =
        parse_text("train:\n  batch: x\n  lr: [1]\n  flag: yes\n  size: '64'\n  kind: adm\n");
    rp_node *train = rp_node_find(root, "train");
    uint32_t u32 = 5;
    double f64 = 5;
    bool yes = false;
    static const char *const kinds[] = {"sgd", "adam", "adamw", NULL};
    expect_err(rp_node_u32(train, "batch", 1, 65536, &u32), RP_ERR_USAGE);
    expect_message("run.yaml:2: train.batch: expected a whole number from 1 to 65536, found 'x'");
    expect_err(rp_node_f64(train, "lr", 0, INFINITY, &f64), RP_ERR_USAGE);
    expect_message("run.yaml:3: train.lr: expected a number of at least 0, found a list");
    expect_err(rp_node_bool(train, "flag", &yes), RP_ERR_USAGE);
    expect_message("run.yaml:4: train.flag: expected true or false, found 'yes'");
    expect_err(rp_node_u32(train, "size", 1, 65536, &u32), RP_ERR_USAGE);
    expect_message("run.yaml:5: train.size: expected a whole number from 1 to 65536, found '64' "
                   "in quotes");
    expect_err(rp_node_word(train, "kind", kinds, &u32), RP_ERR_USAGE);
    expect_message("run.yaml:6: train.kind: expected one of: sgd adam adamw; found 'adm', did you "
                   "mean 'adam'?");
    expect_err(rp_node_u32(rp_node_find(train, "batch"), "x", 0, 1, &u32), RP_ERR_USAGE);
    expect_message("run.yaml:2: train.batch: expected keys with values, found 'x'");
    assert_int_equal(u32, 5);
    expect_close(f64, 5, 0, 0);
}

static void bad_numbers(void **state) {
    (void)state;
    static const char *const bad_whole[] = {
        "-1",  "+1",  "1.0", "1e3", "0x10", "007", "1_000", "4294967296", "99999999999999999999999",
        "1 2", "true"};
    static const char *const bad_real[] = {".nan",  "nan",   "inf",      ".inf", "-.inf",
                                           "1e999", "0x1p3", "1e",       ".",    "-.",
                                           "1.5.2", "1,5",   "infinity", "2"};
    char text[64];
    uint32_t u32 = 3;
    double f64 = 3;
    float f32 = 3;
    for (size_t i = 0; i < sizeof bad_whole / sizeof *bad_whole; i++) {
        (void)snprintf(text, sizeof text, "a: %s\n", bad_whole[i]);
        expect_err(rp_node_u32(parse_text(text), "a", 0, UINT32_MAX, &u32), RP_ERR_USAGE);
    }
    for (size_t i = 0; i < sizeof bad_real / sizeof *bad_real; i++) {
        (void)snprintf(text, sizeof text, "a: %s\n", bad_real[i]);
        expect_err(rp_node_f64(parse_text(text), "a", -1, 1, &f64), RP_ERR_USAGE);
    }
    expect_err(rp_node_f32(parse_text("a: 1e39"), "a", -INFINITY, INFINITY, &f32), RP_ERR_USAGE);
    expect_err(
        rp_node_u64(parse_text("a: 18446744073709551616"), "a", 0, UINT64_MAX, &(uint64_t){0}),
        RP_ERR_USAGE);
    assert_int_equal(u32, 3);
    expect_close(f64 + (double)f32, 6, 0, 0);
}

static void strangers_are_refused(void **state) {
    (void)state;
    uint32_t u32 = 0;
    rp_node *root = parse_text("batch: 1\n\nbacth: 2\n");
    expect_ok(rp_node_u32(root, "batch", 0, 9, &u32));
    expect_ok(rp_node_u32(root, "seed", 0, 9, &u32));
    expect_err(rp_node_done(root), RP_ERR_USAGE);
    expect_message("run.yaml:3: bacth: unknown key; did you mean 'batch'?");
    root = parse_text("train: {colour: 2}\n");
    rp_node *train = rp_node_find(root, "train");
    expect_ok(rp_node_u32(train, "batch", 0, 9, &u32));
    expect_ok(rp_node_u32(train, "seed", 0, 9, &u32));
    expect_err(rp_node_done(train), RP_ERR_USAGE);
    expect_message("run.yaml:1: train.colour: unknown key; known here: batch seed");
    root = parse_text("a: 1\nmodle: x\n");
    expect_err(rp_node_need(root, "model"), RP_ERR_USAGE);
    expect_message("run.yaml:2: modle: unknown key; did you mean 'model'?");
}

static void bad_files(void **state) {
    (void)state;
    expect_refused("a: 1\nb: 2\na: 3\n", "run.yaml:3: key 'a' is given twice (first in line 1)");
    expect_refused("a: {x: 1, 'x': 2}\n", "run.yaml:1: key 'x' is given twice");
    expect_refused("a: &top 1\n", "run.yaml:1: anchors");
    expect_refused("a: &top {b: 1}\nc: *top\n", "anchors");
    expect_refused("a: 1\nc: *top\n", "run.yaml:2: anchors");
    expect_refused("a: !!int 1\n", "tags");
    expect_refused("!x a: 1\n", "tags");
    expect_refused("a: 1\n---\nb: 1\n", "run.yaml:2: a second document");
    expect_refused("", "empty");
    expect_refused("# only a comment\n", "empty");
    expect_refused("- 1\n", "expected keys with values, found a list");
    expect_refused("text\n", "found 'text'");
    expect_refused("a:\nb: 1\n", "run.yaml:1: a key or list item without a value");
    expect_refused("a: [1, ~]\n", "without a value");
    expect_refused("a: null\n", "without a value");
    expect_refused("[a]: 1\n", "expected a key");
    expect_refused("? {a: 1}\n: 1\n", "expected a key");
    expect_refused("a: [1, 2\nb: 1\n", "run.yaml:");
    expect_refused("a: 1\n\tb: 1\n", "run.yaml:2: a tab indents this line");
    expect_refused("a: 'x\n", "not valid YAML");
    expect_refused("a: \"\\0\"\n", "zero byte");
    expect_refused("a: \xff\n", "not valid YAML");
    expect_refused("%YAML 3.0\n---\na: 1\n", "not valid YAML");
}

static void limits(void **state) {
    (void)state;
    enum { BYTES = RP_CONFIG_FILE_BYTES_MAX + 10 };
    char *text = NULL;
    expect_ok(RP_ARENA_NEW(&arena, BYTES, &text));
    memset(text, '[', 200);
    memcpy(text, "a: ", 3);
    expect_refused(text, "nested too deeply");
    memset(text, '#', BYTES - 1);
    expect_refused(text, "bytes");
    memset(text, 0, BYTES);
    size_t used = 0;
    for (int i = 0; i < 5000; i++) {
        used += (size_t)snprintf(text + used, BYTES - used, "k%d: 1\n", i);
    }
    expect_refused(text, "too many keys");
    memset(text, 0, BYTES);
    memcpy(text, "a: [", 4);
    for (size_t i = 4; i < 4 + 2 * RP_CONFIG_NODES_MAX; i += 2) {
        memcpy(text + i, "1,", 2);
    }
    memcpy(text + strlen(text), "]", 1);
    expect_refused(text, "too many values");
}

static void files(void **state) {
    (void)state;
    char path[] = "/tmp/rp-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, run_text, sizeof run_text - 1), sizeof run_text - 1);
    close(fd);
    rp_node *root = NULL;
    expect_ok(rp_config_read_file(&arena, path, &root));
    assert_int_equal(rp_node_count(root), 5);
    unlink(path);
    expect_err(rp_config_read_file(&arena, path, &root), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), path));
    expect_err(rp_config_read_file(&arena, "/tmp", &root), RP_ERR_IO);
    assert_int_equal(rp_err_exit_code(RP_ERR_IO), 2);
}

static void set_from_the_command_line(void **state) {
    (void)state;
    rp_node *root = parse_text(run_text);
    uint32_t u32 = 0;
    const char *text = NULL;
    expect_ok(rp_config_set(&arena, root, "train.batch=64"));
    expect_ok(rp_config_set(&arena, root, "ring.link.delay_ms=20"));
    expect_ok(rp_config_set(&arena, root, "schedule={kind: ea-pipe, replicas: 4}"));
    expect_ok(rp_config_set(&arena, root, "cut=auto"));
    expect_ok(rp_config_set(&arena, root, "model=\"a=b\""));
    expect_ok(rp_node_u32(rp_node_find(root, "train"), "batch", 1, 100, &u32));
    assert_int_equal(u32, 64);
    rp_node *ring = rp_node_find(root, "ring");
    expect_ok(rp_node_u32(rp_node_find(ring, "link"), "delay_ms", 1, 100, &u32));
    assert_int_equal(u32, 20);
    expect_ok(rp_node_u32(rp_node_find(root, "schedule"), "replicas", 1, 100, &u32));
    assert_int_equal(u32, 4);
    expect_ok(rp_node_string(root, "cut", &text));
    assert_string_equal(text, "auto");
    expect_ok(rp_node_string(root, "model", &text));
    assert_string_equal(text, "a=b");
    expect_ok(rp_config_set(&arena, root, "train.batch=many"));
    expect_err(rp_node_u32(rp_node_find(root, "train"), "batch", 1, 100, &u32), RP_ERR_USAGE);
    expect_message("--set: train.batch: expected a whole number from 1 to 100, found 'many'");
    expect_ok(rp_config_set(&arena, root, "train.bacth=1"));
    expect_err(rp_node_done(rp_node_find(root, "train")), RP_ERR_USAGE);
    static const char *const bad[] = {
        "",
        "=",
        "=1",
        "a",
        "a=",
        "a..b=1",
        ".a=1",
        "a.=1",
        "a=[1",
        "a={b: 1, b: 2}",
        "a=*x",
        "model.x=1",
        "cut.x=1",
        "a=1\n---\n2",
        "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.e.f.g=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(rp_config_set(&arena, root, bad[i]), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "--set"));
    }
}

static void expect_same(const rp_node *a, const rp_node *b) {
    assert_int_equal(rp_node_is_map(a), rp_node_is_map(b));
    assert_int_equal(rp_node_is_list(a), rp_node_is_list(b));
    if (rp_node_is_scalar(a)) {
        assert_string_equal(rp_node_text(a), rp_node_text(b));
        return;
    }
    assert_int_equal(rp_node_count(a), rp_node_count(b));
    for (uint32_t i = 0; i < rp_node_count(a); i++) {
        if (rp_node_is_map(a)) {
            assert_string_equal(rp_node_key(a, i), rp_node_key(b, i));
        }
        expect_same(rp_node_item(a, i), rp_node_item(b, i));
    }
}

static void written_text_reads_back(void **state) {
    (void)state;
    static const char text[] =
        "plain: 64\nquoted: '64'\nyes: \"true\"\nempty: ''\nhash: 'a # b'\ncolon: 'a: b'\n"
        "lines: \"one\\ntwo\\n\\n\\tthree \"\nblock: |\n  first\n   second\n\nfolded: >-\n  a\n  "
        "b\n"
        "unicode: \"Gr\\u00fc\\u00dfe \xe2\x86\x92\"\nbell: \"\\a\"\n'odd: key': 1\n'': 1\n"
        "odd: two]l\"\n\n  - s,batch\n"
        "long: a text of many words that goes on and on and on and on and on beyond 80 columns\n"
        "list: [1, 2, [3, {a: b}], {}, []]\n"
        "layers:\n  - {name: conv1, kind: conv2d}\n  - name: x\n    from: [a, b]\n"
        "comma: 'a, b'\nnull: '~'\nflow: {k: plain words, q: 'x, y', e: ''}\n";
    rp_node *root = NULL;
    expect_err(rp_config_read_text(&arena, text, sizeof text - 1, "t", &root), RP_ERR_USAGE);
    char legal[sizeof text];
    memcpy(legal, text, sizeof text);
    memcpy(strstr(legal, "'': 1\n"), "zz: 1\n", 6); /* an empty key is refused */
    root = parse_text(legal);
    char *once = NULL;
    char *twice = NULL;
    expect_ok(rp_config_text(&arena, root, &once));
    rp_node *again = parse_text(once);
    expect_same(root, again);
    expect_ok(rp_config_text(&arena, again, &twice));
    assert_string_equal(once, twice);
    uint32_t u32 = 0;
    bool yes = false;
    expect_ok(rp_node_u32(again, "plain", 0, 99, &u32));
    expect_err(rp_node_u32(again, "quoted", 0, 99, &u32), RP_ERR_USAGE);
    expect_err(rp_node_bool(again, "yes", &yes), RP_ERR_USAGE);
    FILE *file = tmpfile();
    char back[4096] = {0};
    expect_ok(rp_config_write(root, file));
    rewind(file);
    assert_true(fread(back, 1, sizeof back - 1, file) > 0);
    fclose(file);
    assert_string_equal(back, once);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        expect_err(rp_config_write(root, full), RP_ERR_IO);
        fclose(full);
    }
}

/* A part of a file, put below a key of another one, stays the same scalar. */
static void a_scalar_that_is_put_reads_back(void **state) {
    (void)state;
    static const char *const scalars[] = {"1f1b", "'a: b'", "\"x # y\"",
                                          "'3'",  "'null'", "'a\\\"b'"};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        char text[64];
        char put[128] = "";
        rp_node *root;
        rp_node *again;
        (void)snprintf(text, sizeof text, "key: %s\n", scalars[i]);
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "text", &root));
        FILE *file = fmemopen(put, sizeof put, "w");
        assert_non_null(file);
        expect_ok(rp_config_put(&arena, file, "key", rp_node_find(root, "key")));
        assert_int_equal(fclose(file), 0);
        expect_ok(rp_config_read_text(&arena, put, strlen(put), "put", &again));
        assert_true(rp_node_same(root, again));
    }
}

static void order_and_style_do_not_count(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"a: 1\nb: [x, {p: 1, q: 2}]\n", "b:\n  - 'x'\n  - q: 2\n    p: 1\na: 1\n", true},
        {"a: 1\nb: 2\n", "a: 1\nb: 3\n", false},
        {"a: 1\nb: 2\n", "a: 1\nc: 2\n", false},
        {"a: 1\n", "a: 1\nb: 2\n", false},
        {"a: [1, 2]\n", "a: [2, 1]\n", false},
        {"a: [1]\n", "a: 1\n", false},
        {"a: {b: 1}\n", "a: [1]\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_node *a = parse_text(cases[i].a);
        const rp_node *b = parse_text(cases[i].b);
        assert_int_equal(rp_node_same(a, b), cases[i].same);
        assert_int_equal(rp_node_same(b, a), cases[i].same);
    }
}

static void add_to_a_list(void **state) {
    (void)state;
    static const char text[] = "layers: [{name: a}]\n";
    rp_node *root;
    rp_node *read;
    char *written;
    char *rest;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "net.yaml", &root));
    rp_node *layers = rp_node_find(root, "layers");
    expect_ok(rp_config_add(&arena, layers, "{name: b, kind: relu}", "more"));
    assert_int_equal(rp_node_count(layers), 2);
    rp_node *added = rp_node_item(layers, 1);
    assert_string_equal(rp_node_text(rp_node_find(added, "kind")), "relu");
    expect_err(rp_node_fail(added, "is wrong"), RP_ERR_USAGE);
    expect_message("more: layers[1]: is wrong");
    expect_err(rp_config_add(&arena, layers, "{name: [", "more"), RP_ERR_USAGE);
    assert_int_equal(rp_node_count(layers), 2);
    expect_ok(rp_config_text(&arena, root, &written));
    expect_ok(rp_config_read_text(&arena, written, strlen(written), "again", &read));
    assert_true(rp_node_same(root, read));
    expect_ok(rp_config_text_without(&arena, root, "layers", &rest));
    assert_null(strstr(rest, "layers"));
    expect_ok(rp_config_text_without(&arena, root, "none", &rest));
    assert_string_equal(rest, written);
}

/* Reads of `keys`, with the defaults that a program would have. */
static void read_keys(rp_node *root) {
    static const char *const words[] = {"none", "some", NULL};
    rp_node *keys;
    rp_node *more;
    const char *name = "a: b";
    const char *nothing = NULL;
    uint32_t u32 = 7, word = 1, outside = 3;
    uint64_t u64 = UINT64_MAX;
    double tenth = 0.1, third = 1.0 / 3.0;
    float part = 0.1f;
    bool yes = true;
    expect_ok(rp_node_section(root, "keys", NULL, &keys));
    expect_ok(rp_node_u32(keys, "u32", 0, 9, &u32));
    expect_ok(rp_node_u64(keys, "u64", 0, UINT64_MAX, &u64));
    expect_ok(rp_node_f64(keys, "tenth", 0, 1, &tenth));
    expect_ok(rp_node_f64(keys, "third", 0, 1, &third));
    expect_ok(rp_node_f32(keys, "part", 0, 1, &part));
    expect_ok(rp_node_bool(keys, "yes", &yes));
    expect_ok(rp_node_string(keys, "name", &name));
    expect_ok(rp_node_string(keys, "nothing", &nothing));
    expect_ok(rp_node_word(keys, "word", words, &word));
    expect_ok(rp_node_u32(keys, "outside", 4, 9, &outside)); /* says that there is none */
    expect_ok(rp_node_default(keys, "list", "[1, 2]"));
    expect_ok(rp_node_section(root, "way", "straight", &more));
    expect_ok(rp_node_bool(more, "fast", &yes));
    expect_ok(rp_node_section(root, "empty", NULL, &more));
    assert_true(yes && tenth == 0.1 && third == 1.0 / 3.0 && part == 0.1f);
    assert_int_equal(u64, UINT64_MAX);
    assert_null(rp_node_find(keys, "missing"));
}

static char *whole_text(const rp_node *root) {
    static char text[4096];
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    expect_ok(rp_config_write_whole(root, file));
    fclose(file);
    return text;
}

static void defaults_are_noted(void **state) {
    (void)state;
    static const char *const texts[] = {
        "a: 1\n", "keys: {u32: 7}\n", "way: straight\n",
        "keys: {tenth: 1.0e-1}\nway: {fast: true, kind: straight}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rp_node *root = parse_text(texts[i]);
        char *given;
        char first[4096];
        rp_config_note_defaults(&arena, root);
        read_keys(root);
        read_keys(root); /* as often as you like */
        (void)snprintf(first, sizeof first, "%s", whole_text(root));
        for (const char *const *part =
                 (const char *const[]){"u32: 7", "u64: 18446744073709551615",
                                       "third: 0.3333333333333333,", "part: 0.1,", "yes: true",
                                       "name: 'a: b'", "word: some", "list: [1, 2]",
                                       "kind: straight", "fast: true", NULL};
             *part; part++) {
            if (!strstr(first, *part)) {
                fail_msg("'%s' is not in %s", *part, first);
            }
        }
        assert_null(strstr(first, "nothing"));
        assert_null(strstr(first, "outside"));
        assert_null(strstr(first, "empty"));
        expect_ok(rp_config_text(&arena, root, &given));
        assert_null(strstr(given, "u64")); /* not among what was given */
        root = parse_text(first);
        rp_config_note_defaults(&arena, root);
        read_keys(root);
        assert_string_equal(whole_text(root), first);
    }
}

static void a_tree_notes_nothing_unless_told(void **state) {
    (void)state;
    rp_node *root = parse_text("keys: {u32: 7}\nway: straight\n");
    rp_node *section;
    bool yes = true;
    expect_ok(rp_node_section(root, "empty", NULL, &section));
    assert_null(section);
    expect_ok(rp_node_section(root, "way", "straight", &section));
    assert_true(rp_node_is_scalar(section));
    expect_ok(rp_node_bool(rp_node_find(root, "keys"), "yes", &yes));
    expect_ok(rp_node_default(root, "list", "[1, 2]"));
    assert_string_equal(whole_text(root), "keys: {u32: 7}\nway: straight\n");
}

static void changes_are_told(void **state) {
    (void)state;
    static const struct {
        const char *before, *now, *text;
    } cases[] = {
        {"a: 1\nb: {c: x}\n", "b: {c: x}\na: 1.0\n", ""},
        {"a: 1\nb: {c: x}\n", "a: '1'\nb: {c: y}\n", "b.c: y (was x)"},
        {"a: 1\n", "b: [1, {c: 2}]\n", "b: [1, {c: 2}] (was nothing); a: nothing (was 1)"},
        {"a: [1]\n", "a: {b: 1}\n", "a: {b: 1} (was [1])"},
        {"a: 1\nb: 1\nc: 1\n", "a: 2\nb: 2\nc: 2\n", "a: 2 (was 1); b: 2 (was 1); and 1 more"},
        {"way: straight\n", "way: {kind: straight}\n", ""},
        {"way: bent\n", "way: {kind: straight}\n", "way: {kind: straight} (was bent)"},
        {"keys: {u32: 7}\n", "noted: 1", "noted: 1 (was nothing)"},
        {"keys: {u32: 8}\n", "noted: 1", "noted: 1 (was nothing); keys.u32: 7 (was 8)"},
    };
    char text[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_node *before = parse_text(cases[i].before);
        rp_node *now = parse_text(cases[i].now);
        if (strncmp(cases[i].now, "noted", 5) == 0) {
            rp_config_note_defaults(&arena, now);
            read_keys(now);
        }
        expect_ok(rp_config_changes(before, now, 2, text, sizeof text));
        assert_string_equal(text, cases[i].text);
    }
    const rp_node *before = parse_text("a: 1\n");
    expect_ok(rp_config_changes(before, parse_text("a: 2\n"), 2, text, 8));
    assert_string_equal(text, "a: 2 (w");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(a_tab_is_named),
        cmocka_unit_test(lists_of_numbers),
        cmocka_unit_test(absent_keys_leave_defaults),
        cmocka_unit_test(former_names_are_read),
        cmocka_unit_test(wrong_values_are_named),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(limits),
        cmocka_unit_test(files),
        cmocka_unit_test(set_from_the_command_line),
        cmocka_unit_test(add_to_a_list),
        cmocka_unit_test(written_text_reads_back),
        cmocka_unit_test(a_scalar_that_is_put_reads_back),
        cmocka_unit_test(order_and_style_do_not_count),
        cmocka_unit_test(defaults_are_noted),
        cmocka_unit_test(changes_are_told),
        cmocka_unit_test(a_tree_notes_nothing_unless_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
