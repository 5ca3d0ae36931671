/* Rows of CSV files, and what is refused with file, line and column. */
#include "fixture.h"

#include "data/csv.h"

/* Every row as "line:field|field;" */
static char seen[4096];
static uint32_t rows_left;

static rp_err note_row(void *context, const rp_csv_row *row) {
    size_t used = strlen(seen);
    assert_ptr_equal(context, seen);
    assert_int_equal(row->line > 0, 1);
    used += (size_t)snprintf(seen + used, sizeof seen - used, "%u:", row->line);
    for (uint32_t i = 0; i < row->count; i++) {
        used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s", row->field[i],
                                 i + 1 < row->count ? "|" : ";");
    }
    return --rows_left > 0 ? RP_OK : rp_csv_fail(row, 0, "name", "something else");
}

static rp_err read_text(const char *text, size_t bytes, char delimiter) {
    write_file("x.csv", text, bytes);
    seen[0] = '\0';
    rows_left = 1000;
    return rp_csv_read(in_folder("x.csv"), delimiter, note_row, seen);
}

static void expect_rows(const char *text, char delimiter, const char *rows) {
    expect_ok(read_text(text, strlen(text), delimiter));
    assert_string_equal(seen, rows);
}

static void rows(void **state) {
    (void)state;
    expect_rows("", ',', "");
    expect_rows("a,b\nc,d", ',', "1:a|b;2:c|d;");
    expect_rows("a,b\r\n\r\n  \t\n# no,row\n  # nor this\nc,d\r\n", ',', "1:a|b;6:c|d;");
    expect_rows(" a b ,\tc\t, \n", ',', "1:a b|c|;");
    expect_rows(",\n", ',', "1:|;");
    expect_rows("\xef\xbb\xbf"
                "a,b\n",
                ',', "1:a|b;");
    expect_rows("a;b,c\n", ';', "1:a|b,c;");
    expect_rows("a\t b \t\tc\n", '\t', "1:a|b||c;");
}

static void quotes(void **state) {
    (void)state;
    expect_rows("\"a,b\",\" c \"\n", ',', "1:a,b| c ;");
    expect_rows("\"say \"\"hi\"\"\",x\n", ',', "1:say \"hi\"|x;");
    expect_rows("\"two\n# lines\n\nhere\",x\ny,z\n", ',', "1:two\n# lines\n\nhere|x;5:y|z;");
    expect_rows("\"\",x\n# comment \"\nlast", ',', "1:|x;3:last;");
}

static void expect_refused(const char *text, size_t bytes, rp_err wanted, const char *part) {
    expect_err(read_text(text, bytes, ','), wanted);
    expect_part(part);
}

static void refused(void **state) {
    (void)state;
    static char large[RP_CSV_FIELD_BYTES_MAX + 20000];
    expect_refused("a,b\nc,d\"e\n", 10, RP_ERR_FORMAT,
                   "x.csv:2:2: misplaced quote: expected quotes only around");
    expect_refused("a,\"b\"c\n", 7, RP_ERR_FORMAT,
                   "x.csv:1:2: misplaced quote: expected quotes only around");
    expect_refused("a,b\nc,\"d\ne\n", 11, RP_ERR_FORMAT,
                   "x.csv:2:2: the closing quote of this field is");
    expect_refused("a,b\0,c\n", 7, RP_ERR_FORMAT, "x.csv:1:2: expected text, found a zero byte");
    memset(large, 'x', sizeof large);
    expect_refused(large, sizeof large, RP_ERR_LIMIT, "x.csv:1:1: the field is longer than 65535");
    large[0] = '"';
    memset(large + 1, '\n', sizeof large - 1);
    expect_refused(large, sizeof large, RP_ERR_LIMIT, "a closing quote may be missing");
    expect_err(rp_csv_read(in_folder("none.csv"), ',', note_row, seen), RP_ERR_IO);
    expect_part("none.csv: cannot be opened");
    write_file("x.csv", "a,b\nc,d\n", 8);
    seen[0] = '\0';
    rows_left = 1;
    expect_err(rp_csv_read(in_folder("x.csv"), ',', note_row, seen), RP_ERR_FORMAT);
    expect_part("x.csv:1:1: column 'name': expected something else, found 'a'");
    assert_string_equal(seen, "1:a|b;"); /* and no other row */
}

static rp_err check_long_row(void *context, const rp_csv_row *row) {
    uint32_t *rows_seen = context;
    assert_int_equal(row->count, 5000);
    for (uint32_t i = 0; i < row->count; i++) {
        assert_int_equal(strtoul(row->field[i], NULL, 10), i * 1000 + *rows_seen);
    }
    ++*rows_seen;
    return RP_OK;
}

/* Rows longer than any piece that is read at once. */
static void long_rows(void **state) {
    (void)state;
    static char text[2 * 5000 * 12];
    size_t used = 0;
    uint32_t rows_seen = 0;
    for (int i = 0; i < 10000; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%d%c",
                                 i % 5000 * 1000 + i / 5000, i % 5000 == 4999 ? '\n' : ',');
    }
    write_file("x.csv", text, used);
    expect_ok(rp_csv_read(in_folder("x.csv"), ',', check_long_row, &rows_seen));
    assert_int_equal(rows_seen, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows, setup, teardown),
        cmocka_unit_test_setup_teardown(quotes, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
        cmocka_unit_test_setup_teardown(long_rows, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
