/* Samples divided among sites, split.json, and the site's part of a set. */
#include <math.h>

#include "data/partition.h"
#include "data/site_ids.h"
#include "fixture.h"

enum { ALL = 997, CLASSES = 10, SITES = 8 };

static int32_t label[ALL];
static uint32_t site[ALL], again[ALL];
static uint32_t number[SITES], table[SITES][CLASSES];

static rp_partition_samples samples_of(uint32_t sites) {
    for (uint32_t i = 0; i < ALL; i++) {
        label[i] = (int32_t)(i * 7 % CLASSES);
    }
    return (rp_partition_samples){
        .label = label, .count = ALL, .classes = CLASSES, .sites = sites, .least = 10, .seed = 1};
}

/* Divides, checks that the same arguments give the same sites, and counts. */
static void divide(const char *text, const rp_partition_samples *samples) {
    rp_partition_rule rule;
    expect_ok(rp_partition_parse(text, &rule));
    memset(site, 0xff, sizeof site);
    expect_ok(rp_partition_make(&rule, samples, site));
    expect_ok(rp_partition_make(&rule, samples, again));
    assert_memory_equal(site, again, sizeof site);
    memset(number, 0, sizeof number);
    memset(table, 0, sizeof table);
    for (uint32_t i = 0; i < ALL; i++) {
        assert_true(site[i] < samples->sites);
        number[site[i]]++;
        table[site[i]][label[i]]++;
    }
}

/* The vectors of NIID-Bench's and Flower's cut points: floor(cumulative share * samples). */
static void test_cut(void **state) {
    const double third[] = {0.11, 0.34, 0.55};
    const double quarter[] = {0.5, 0.25, 0.25};
    const double early[] = {1.0, 0.0, 0.0};
    uint32_t count[3];
    (void)state;
    rp_partition_cut(10, third, 3, count);
    assert_int_equal(count[0], 1);
    assert_int_equal(count[1], 3);
    assert_int_equal(count[2], 6);
    rp_partition_cut(7, quarter, 3, count);
    assert_int_equal(count[0], 3);
    assert_int_equal(count[1], 2);
    assert_int_equal(count[2], 2);
    rp_partition_cut(5, early, 3, count);
    assert_int_equal(count[0], 5);
    assert_int_equal(count[1] + count[2], 0);
    rp_partition_cut(0, third, 3, count);
    assert_int_equal(count[0] + count[1] + count[2], 0);
}

static void test_iid(void **state) {
    rp_partition_samples samples = samples_of(SITES);
    (void)state;
    divide("iid", &samples);
    for (uint32_t k = 0; k < SITES; k++) {
        assert_in_range(number[k], ALL / SITES, ALL / SITES + 1);
        for (uint32_t c = 0; c < CLASSES; c++) {
            assert_true(table[k][c] > 0);
        }
    }
    samples.seed = 2;
    divide("iid", &samples);
    static uint32_t before[ALL];
    memcpy(before, site, sizeof before);
    samples.seed = 3;
    divide("iid", &samples);
    assert_memory_not_equal(site, before, sizeof site);
}

static void test_quantity(void **state) {
    const rp_partition_samples samples = samples_of(4);
    (void)state;
    divide("quantity:linear", &samples); /* 1 : 2 : 3 : 4 */
    assert_int_equal(number[0], 99);
    assert_int_equal(number[1], 200);
    assert_int_equal(number[2], 299);
    assert_int_equal(number[3], 399);
    divide("quantity:square", &samples); /* 1 : 4 : 9 : 16 of 30 */
    assert_int_equal(number[0], 33);
    assert_int_equal(number[1], 133);
    divide("quantity:exp", &samples); /* 1 : 2 : 4 : 8 of 15 */
    assert_int_equal(number[0], 66);
    assert_int_equal(number[1], 133);
    divide("quantity:dirichlet:0.5", &samples);
    for (uint32_t k = 0; k < 4; k++) {
        assert_true(number[k] >= 10);
    }
}

static void test_classes(void **state) {
    const rp_partition_samples samples = samples_of(SITES);
    (void)state;
    divide("classes:2", &samples);
    for (uint32_t k = 0; k < SITES; k++) {
        uint32_t there = 0;
        for (uint32_t c = 0; c < CLASSES; c++) {
            there += table[k][c] > 0;
        }
        assert_int_equal(there, 2);
    }
    divide("classes:10", &samples);
    for (uint32_t k = 0; k < SITES; k++) {
        for (uint32_t c = 0; c < CLASSES; c++) {
            assert_in_range(table[k][c], 12, 13); /* 99 or 100 samples of a class */
        }
    }
}

static void test_shards(void **state) {
    const rp_partition_samples samples = samples_of(SITES);
    (void)state;
    divide("shards:2", &samples);
    for (uint32_t k = 0; k < SITES; k++) {
        uint32_t there = 0;
        assert_in_range(number[k], 2 * (ALL / 16), 2 * (ALL / 16 + 1));
        for (uint32_t c = 0; c < CLASSES; c++) {
            there += table[k][c] > 0;
        }
        assert_in_range(there, 1, 4); /* a shard has samples of at most two classes */
    }
}

/* The mean entropy of the sites' classes, relative to that of equal shares. */
static double evenness(void) {
    double sum = 0;
    for (uint32_t k = 0; k < SITES; k++) {
        for (uint32_t c = 0; c < CLASSES; c++) {
            const double p = (double)table[k][c] / number[k];
            sum -= p > 0 ? p * log(p) / log(CLASSES) : 0;
        }
    }
    return sum / SITES;
}

static void test_dirichlet(void **state) {
    rp_partition_samples samples = samples_of(SITES);
    double mixed = 0;
    double skewed = 0;
    (void)state;
    for (samples.seed = 1; samples.seed <= 10; samples.seed++) {
        divide("dirichlet:0.1", &samples);
        skewed += evenness() / 10;
        for (uint32_t k = 0; k < SITES; k++) {
            assert_true(number[k] >= 10);
        }
        divide("dirichlet:100", &samples);
        mixed += evenness() / 10;
    }
    assert_true(mixed > 0.97);
    assert_true(skewed > 0.2 && skewed < 0.6);
}

/* The share of a class at the first of two sites has the mean 1/2 and the variance of Beta(a, a).
 */
static void test_dirichlet_variance(void **state) {
    enum { DRAWS = 400 };
    rp_partition_samples samples = samples_of(2);
    double sum = 0;
    double squares = 0;
    (void)state;
    samples.least = 0;
    for (samples.seed = 1; samples.seed <= DRAWS; samples.seed++) {
        divide("dirichlet:0.5", &samples);
        for (uint32_t c = 0; c < CLASSES; c++) {
            const double share = (double)table[0][c] / (table[0][c] + table[1][c]);
            sum += share / (DRAWS * CLASSES);
            squares += share * share / (DRAWS * CLASSES);
        }
    }
    expect_close(sum, 0.5, 0, 0.02);
    expect_close(squares - sum * sum, 0.125, 0, 0.01); /* 1 / (4 (2 a + 1)) */
}

/* Each sample is in one part; another site holds out others. */
static void test_hold_out(void **state) {
    enum { COUNT = 11, HELD = 3 };
    uint32_t sample[COUNT];
    uint32_t held[2][COUNT + 1];
    uint32_t rest[COUNT + 1];
    rp_arena scratch;
    (void)state;
    rp_arena_init(&scratch, "hold out", 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        sample[i] = 10 * i;
    }
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t at[2] = {0};
        memset(held[k], 0xff, sizeof held[k]);
        memset(rest, 0xff, sizeof rest);
        expect_ok(rp_partition_hold_out(&scratch, sample, COUNT, 0.3, 5, k ? "site-1" : "site-0",
                                        held[k], rest));
        for (uint32_t i = 0; i < COUNT; i++) { /* both ascend, as the samples do */
            const bool out = held[k][at[0]] == sample[i];
            assert_true(out || rest[at[1]] == sample[i]);
            at[out ? 0 : 1]++;
        }
        assert_int_equal(at[0], HELD);
        assert_int_equal(held[k][HELD], UINT32_MAX);
    }
    assert_memory_not_equal(held[0], held[1], HELD * sizeof **held);
    rp_arena_finish(&scratch);
}

static void test_refusals(void **state) {
    static const char *const bad[] = {"",           "iid:1",        "dirichlet",
                                      "dirichlet:", "dirichlet:0",  "dirichlet:nan",
                                      "shards:0",   "shards:1x",    "classes:",
                                      "quantity",   "quantity:big", "quantity:dirichlet:-1"};
    rp_partition_samples samples = samples_of(SITES);
    rp_partition_rule rule;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(rp_partition_parse(bad[i], &rule), RP_ERR_USAGE);
        expect_part(bad[i]);
    }
    expect_ok(rp_partition_parse("classes:1", &rule));
    expect_err(rp_partition_make(&rule, &samples, site), RP_ERR_USAGE);
    expect_part("at least 2 to leave no class out");
    expect_ok(rp_partition_parse("shards:200", &rule));
    expect_err(rp_partition_make(&rule, &samples, site), RP_ERR_USAGE);
    expect_part("at least 1600 samples");
    expect_ok(rp_partition_parse("dirichlet:0.001", &rule));
    samples.least = 200;
    expect_err(rp_partition_make(&rule, &samples, site), RP_ERR_USAGE);
    expect_part("larger alpha");
    samples = samples_of(40);
    samples.count = 30; /* 3 samples of each class, which 8 sites have each */
    expect_ok(rp_partition_parse("classes:2", &rule));
    expect_err(rp_partition_make(&rule, &samples, site), RP_ERR_USAGE);
    samples.sites = 20;
    expect_err(rp_partition_make(&rule, &samples, site), RP_ERR_USAGE);
    expect_part("without one");
    samples.label = NULL;
    expect_err(rp_partition_make(&rule, &samples, site), RP_ERR_USAGE);
    expect_part("have no class");
}

/* ---- split.json ------------------------------------------------------------------------------ */

static const uint32_t first[] = {0, 1, 2, 5, 7, 8}, second[] = {3, 4}, held[] = {6, 9};

static void write_example(const char *digest) {
    const rp_site_samples sites[] = {{"left", first, NULL, 6, 0}, {"right", second, held, 2, 2}};
    const rp_split_list list = {"glyphs", digest, "iid", 3, 12, sites, 2};
    expect_ok(rp_split_file_write(in_folder("split.json"), &list));
}

static void test_file(void **state) {
    rp_split_list list;
    (void)state;
    write_example("0123456789abcdef");
    expect_ok(rp_split_file_read(&arena, in_folder("split.json"), &list));
    assert_string_equal(list.set, "glyphs");
    assert_string_equal(list.rule, "iid");
    assert_int_equal(list.seed, 3);
    assert_int_equal(list.samples, 12);
    assert_int_equal(list.sites, 2);
    const rp_site_samples *right = rp_split_list_find(&list, "right");
    assert_int_equal(list.site[0].train_count, 6);
    assert_memory_equal(list.site[0].train, first, sizeof first);
    assert_memory_equal(right->train, second, sizeof second);
    assert_int_equal(right->validation_count, 2);
    assert_memory_equal(right->validation, held, sizeof held);
    assert_null(rp_split_list_find(&list, "middle"));
}

static void write_bytes(const char *name, const char *bytes, size_t count) {
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void refuse_ids(const char *text, size_t bytes, const char *part) {
    rp_site_ids ids;
    write_bytes("ids", text, bytes);
    expect_err(rp_site_ids_read(&arena, in_folder("ids"), 3, &ids), RP_ERR_USAGE);
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

static void test_ids(void **state) {
    static const char zero[] = "a\0b\nc\nd\n";
    static const char last_zero[] = "a\nb\nc\0zzz";
    static const char last_zeros[] = "a\nb\nc\n\0";
    char lines[300];
    rp_site_ids ids;
    (void)state;
    write_text("ids", "b\r\na.1\nb\n\n");
    expect_ok(rp_site_ids_read(&arena, in_folder("ids"), 3, &ids));
    assert_int_equal(ids.sites, 2);
    assert_string_equal(ids.name[0], "a.1");
    assert_string_equal(ids.name[1], "b");
    assert_memory_equal(ids.site, ((const uint32_t[]){1, 0, 1}), 3 * sizeof *ids.site);
    write_text("ids", "a\na\na"); /* without an end of line */
    expect_ok(rp_site_ids_read(&arena, in_folder("ids"), 3, &ids));
    assert_int_equal(ids.sites, 1);
    refuse_ids("a\nb\n", 4, "each of 3 training samples, found 2");
    refuse_ids("a\nb\nc\nd\n", 8, "ids:4: expected the end");
    refuse_ids("a\n\nc\n", 5, "ids:2: expected the name");
    refuse_ids(zero, sizeof zero - 1, "ids:1: expected the name");
    /* only "\r\n", "\n" or the end of the file may follow a name */
    refuse_ids(last_zero, sizeof last_zero - 1, "ids:3: expected the name");
    refuse_ids(last_zeros, sizeof last_zeros - 1, "ids:4: expected the name");
    refuse_ids("a\rzzz\nb\nc\n", 10, "ids:1: expected the name");
    refuse_ids("a\r\r\nb\nc\n", 9, "ids:1: expected the name");
    refuse_ids("a\nb\nc\r", 6, "ids:3: expected the name");
    refuse_ids("a\nb\nc\rzzz", 9, "ids:3: expected the name");
    memset(lines, 'x', sizeof lines);
    memcpy(lines + RP_SITE_NAME_MAX, "\r\na\nb\n", 6); /* the longest name */
    write_bytes("ids", lines, RP_SITE_NAME_MAX + 6);
    expect_ok(rp_site_ids_read(&arena, in_folder("ids"), 3, &ids));
    assert_int_equal(strlen(ids.name[2]), RP_SITE_NAME_MAX);
    memset(lines, 'x', sizeof lines);
    lines[RP_SITE_NAME_MAX + 1] = '\n';
    refuse_ids(lines, RP_SITE_NAME_MAX + 2, "ids:1: expected the name");
    memset(lines, 'x', sizeof lines);
    refuse_ids(lines, sizeof lines, "ids:1: expected the name");
    expect_err(rp_site_ids_read(&arena, in_folder("none"), 3, &ids), RP_ERR_IO);
}

static void refuse_file(const char *sites, const char *part) {
    rp_split_list list;
    FILE *file = fopen(in_folder("split.json"), "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "{\"version\": 1, \"set\": \"glyphs\", \"digest\": \"0\", \"seed\": 1, \"rule\": "
                  "\"iid\", \"samples\": 10, \"sites\": %s}\n",
                  sites);
    (void)fclose(file);
    expect_err(rp_split_file_read(&arena, in_folder("split.json"), &list), RP_ERR_USAGE);
    expect_part(part);
}

static void test_file_refusals(void **state) {
    (void)state;
    refuse_file("[]", "1 to 1024 sites");
    refuse_file("7", "1 to 1024 sites");
    refuse_file("[{\"name\": \"a\"}]", "site 'a': expected a list of samples");
    refuse_file("[{\"name\": \"a\", \"train\": []}]", "has no training sample");
    refuse_file("[{\"name\": \"../a\", \"train\": [1]}]", "expected a name");
    refuse_file("[{\"name\": \"a\\u0000\", \"train\": [1]}]", "not allowed");
    refuse_file("[{\"name\": \"a\", \"train\": [10]}]", "from 0 to 9");
    refuse_file("[{\"name\": \"a\", \"train\": [-1]}]", "from 0 to 9");
    refuse_file("[{\"name\": \"a\", \"train\": [\"3-1\"]}]", "from 0 to 9");
    refuse_file("[{\"name\": \"a\", \"train\": [\"0-99999999999999999999\"]}]", "from 0 to 9");
    refuse_file("[{\"name\": \"a\", \"train\": [1.5]}]", "from 0 to 9");
    refuse_file("[{\"name\": \"a\", \"train\": [3, 1]}]", "ascending");
    refuse_file("[{\"name\": \"a\", \"train\": [3, 3]}]", "ascending");
    refuse_file("[{\"name\": \"a\", \"train\": [3]}, {\"name\": \"b\", \"train\": [\"2-4\"]}]",
                "sample 3 occurs twice");
    refuse_file("[{\"name\": \"a\", \"train\": [3]}, {\"name\": \"a\", \"train\": [4]}]",
                "no other site has");
}

/* ---- a site's part of a set ------------------------------------------------------------------ */

static void open_site(rp_data *data, const char *keys, rp_err want, const char *part) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "{set: glyphs, train: 12, test: 4, site: {split: %%/split.json, %s}}", keys);
    if (want == RP_OK) {
        expect_ok(open_data(data, text, NULL, true));
    } else {
        expect_err(open_data(data, text, NULL, true), want);
        expect_part(part);
    }
}

static void test_site(void **state) {
    char digest[RP_SPLIT_DIGEST];
    rp_data data;
    (void)state;
    expect_ok(open_data(&data, "{set: glyphs, train: 12, test: 4}", NULL, true));
    expect_ok(rp_data_split_digest(&data, digest));
    rp_data_close(&data);
    write_example(digest);
    open_site(&data, "name: right", RP_OK, "");
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 2);
    assert_int_equal(data.count[RP_SPLIT_VALIDATION], 2);
    assert_int_equal(data.count[RP_SPLIT_TEST], 4);
    assert_memory_equal(data.part[RP_SPLIT_TRAIN], second, sizeof second);
    assert_memory_equal(data.part[RP_SPLIT_VALIDATION], held, sizeof held);
    rp_data_close(&data);
    /* a run folder's run.yaml has the key's default */
    expect_ok(open_data(&data,
                        "{set: glyphs, train: 12, test: 4, validation: 0, site: {split: "
                        "%/split.json, name: right}}",
                        NULL, true));
    assert_int_equal(data.count[RP_SPLIT_VALIDATION], 2);
    rp_data_close(&data);
    expect_err(open_data(&data,
                         "{set: glyphs, train: 12, test: 4, validation: 2, site: {split: "
                         "%/split.json, name: right}}",
                         NULL, true),
               RP_ERR_USAGE);
    open_site(&data, "name: other", RP_ERR_USAGE, "from 'left' to 'right'");
    open_site(&data, "name: left, more: 1", RP_ERR_USAGE, "more");
    write_example("0000000000000000");
    open_site(&data, "name: left", RP_ERR_USAGE, "ringpipe data split");
}

/* Samples that `validation` holds out of a site's part are the site's. */
static void test_site_validation(void **state) {
    char digest[RP_SPLIT_DIGEST];
    bool seen[12] = {false};
    rp_data data;
    (void)state;
    expect_ok(open_data(&data, "{set: glyphs, train: 12, test: 4}", NULL, true));
    expect_ok(rp_data_split_digest(&data, digest));
    rp_data_close(&data);
    write_example(digest);
    expect_ok(open_data(&data,
                        "{set: glyphs, train: 12, test: 4, validation: 2, site: {split: "
                        "%/split.json, name: left}}",
                        NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 4);
    assert_int_equal(data.count[RP_SPLIT_VALIDATION], 2);
    for (uint32_t i = 0; i < 4; i++) {
        seen[data.part[RP_SPLIT_TRAIN][i]] = true;
    }
    for (uint32_t i = 0; i < 2; i++) {
        seen[data.part[RP_SPLIT_VALIDATION][i]] = true;
    }
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(seen[first[i]]);
    }
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_iid),
        cmocka_unit_test(test_quantity),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_dirichlet),
        cmocka_unit_test(test_dirichlet_variance),
        cmocka_unit_test(test_hold_out),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_site, setup, teardown),
        cmocka_unit_test_setup_teardown(test_site_validation, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
