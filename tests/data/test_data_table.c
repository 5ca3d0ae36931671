#include "fixture.h"

#include <math.h>

#include <jansson.h>

#include "data/describe.h"

static const char keys[] = "{set: table, path: %, shuffle: false}";

static void rows_for_mse(void **state) {
    (void)state;
    float x[3 * 2];
    float y[3 * 2];
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    const uint32_t index[] = {0, 2, 1};
    write_text("train.csv",
               "# x0,x1,y0,y1\r\n1,2,3,4\r\n\n  # more\n -1.5e-1 ,\t2.0, .5,+7\n5,6,7,8");
    expect_ok(open_data(&data, keys, &input, false));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    assert_int_equal(data.count[RP_SPLIT_TEST], 0);
    assert_int_equal(data.classes, 0);
    assert_int_equal(data.target_width, 2);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 3, true, x, NULL, y));
    const float want_x[] = {1, 2, 5, 6, -0.15f, 2};
    const float want_y[] = {3, 4, 7, 8, 0.5f, 7};
    expect_close_all(x, want_x, 6, 0, 0);
    expect_close_all(y, want_y, 6, 0, 0);
    rp_data_close(&data);
}

static void rows_with_classes(void **state) {
    (void)state;
    float x[4];
    int32_t label;
    rp_data data;
    const rp_shape input = rp_shape_3(1, 2, 2);
    const uint32_t one = 1;
    write_text("train.csv", "1,2,3,4,0\n5,6,7,8,2\n");
    write_text("test.csv", "1,2,3,4,1\n0,0,0,0,2\n");
    expect_ok(open_data(&data, keys, &input, true));
    assert_int_equal(data.classes, 3);
    assert_int_equal(data.target_width, 1);
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    assert_true(rp_shape_equal(&data.sample, &input));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &one, 1, true, x, &label, NULL));
    assert_int_equal(label, 2);
    expect_close(x[3], 8, 0, 0);
    rp_data_close(&data);
}

static void bad_rows(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool classes;
        const char *part;
    } bad[] = {
        {"", false, "train.csv: has no rows"},
        {"# only a comment\n\n", false, "train.csv: has no rows"},
        {"1,2\n", false,
         "expected 2 x columns (the model's input) and at least one y column, found 2"},
        {"1,2,3,4\n", true, "and one class, found 4 columns"},
        {"1,2,3\n4,5\n", false, "train.csv:2:2: expected 3 fields in a row, found 2"},
        {"1,2,3\n4,5,6,7\n", false, "train.csv:2:4: expected 3 fields in a row"},
        {"1,2,3\n\n4,x,6\n", false, "train.csv:3:2: expected a finite number, found 'x'"},
        {"1,2,\n", false, "train.csv:1:3: expected a finite number, found ''"},
        {"1,nan,3\n", false,
         "train.csv:1:2: expected a finite number (if it marks a missing value"},
        {"1,inf,3\n", false, "found 'inf'"},
        {"1,0x10,3\n", false, "found '0x10'"},
        {"1,1e99,3\n", false, "found '1e99'"},
        {"1,1,3\n1,1 2,3\n", false, "found '1 2'"},
        {"1,1,3\n1,1-2,3\n", false, "found '1-2'"},
        {"1;2\t3\n", false, "found only one column, '1;2"},
        {"1,2,1.0\n", true, "train.csv:1:3: expected a class from 0 to 65535, found '1.0'"},
        {"1,2,-1\n", true, "expected a class from 0 to 65535, found '-1'"},
        {"1,2,65536\n", true, "expected a class from 0 to 65535, found '65536'"},
        {"1,2,4294967296\n", true, "expected a class"},
        {"1,2,0000000000000000000000000000000000000000000000000000000000000000000000000000003\n",
         false, "train.csv:1:3: expected a number"},
    };
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("train.csv", bad[i].text);
        expect_err(open_data(&data, keys, &input, bad[i].classes), RP_ERR_FORMAT);
        expect_part(bad[i].part);
    }
    write_file("train.csv", "1,2\0,3\n", 7);
    expect_err(open_data(&data, keys, &input, false), RP_ERR_FORMAT);
}

static void bad_sets(void **state) {
    (void)state;
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    const rp_shape unknown = {0};
    expect_err(open_data(&data, keys, &input, false), RP_ERR_IO);
    expect_part("train.csv: cannot be opened");
    mkdir(in_folder("train.csv"), 0700);
    expect_err(open_data(&data, keys, &input, false), RP_ERR_IO);
    rmdir(in_folder("train.csv"));
    write_text("train.csv", "1,2,3\n");
    write_text("test.csv", "1,2,3,4\n");
    expect_err(open_data(&data, keys, &input, false), RP_ERR_FORMAT);
    expect_part("test.csv:1: expected 3 columns as in the training file, found 4");
    unlink(in_folder("test.csv"));
    expect_err(open_data(&data, keys, &unknown, false), RP_ERR_USAGE);
    expect_err(open_data(&data, keys, NULL, false), RP_ERR_USAGE);
    expect_part("a table needs `target`, or a model whose `input` is a list of sizes");
    expect_err(open_data(&data, "{set: table, path: %, augment: flip}", &input, false),
               RP_ERR_USAGE);
    expect_part("augment: needs images, but samples of data set 'table' are not images");
    expect_err(open_data(&data, "{set: table, path: %, mean: [1]}", &input, false), RP_ERR_USAGE);
    expect_ok(open_data(&data, keys, &input, false));
    rp_data_close(&data);
}

/* A header is a first row without a number; names of classes are sorted. */
static void header_and_class_names(void **state) {
    (void)state;
    float x[4 * 2];
    int32_t label[4];
    rp_data data;
    const uint32_t index[] = {0, 1, 2, 3};
    const rp_shape input = {0}; /* follows the file */
    write_text("train.csv", "width, height,species\n1,2,setosa\n3,4,\"virginica, the\"\n"
                            "5,6,setosa\n7,8,canina\n");
    write_text("test.csv", "species,height,width\ncanina,2,1\n");
    expect_ok(open_data(&data, keys, &input, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 4);
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){1, {2}}));
    assert_int_equal(data.classes, 3);
    assert_string_equal(data.class_name[0], "canina");
    assert_string_equal(data.class_name[1], "setosa");
    assert_string_equal(data.class_name[2], "virginica, the");
    assert_string_equal(data.fields->field[0].name, "width");
    assert_string_equal(data.fields->field[1].name, "height");
    assert_string_equal(data.y_name[0], "species");
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 4, true, x, label, NULL));
    assert_true(label[0] == 1 && label[1] == 2 && label[2] == 1 && label[3] == 0);
    expect_close(x[3], 4, 0, 0);
    /* Columns of the test file go by their names. */
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, index, 1, false, x, label, NULL));
    assert_int_equal(label[0], 0);
    expect_close(x[0], 1, 0, 0);
    expect_close(x[1], 2, 0, 0);
    rp_data_close(&data);
}

static void chosen_columns(void **state) {
    (void)state;
    float x[2];
    float y[2];
    int32_t label;
    rp_data data;
    const rp_shape input = rp_shape_1(2);
    const uint32_t one = 1;
    write_text("train.csv", "id;price;a;b\n7;10;1;2\n8;20;3;4\n");
    expect_ok(open_data(&data,
                        "{set: table, path: %, delimiter: semicolon, target: price, drop: id}",
                        &input, false));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &one, 1, false, x, NULL, y));
    expect_close(x[0], 3, 0, 0);
    expect_close(x[1], 4, 0, 0);
    expect_close(y[0], 20, 0, 0);
    rp_data_close(&data);
    expect_ok(open_data(
        &data, "{set: table, path: %, delimiter: semicolon, target: [b, price], drop: [id]}", NULL,
        false));
    assert_int_equal(data.target_width, 2);
    rp_data_close(&data);
    /* Without a header, by number; a file in place of a folder; classes in an order of one's own.
     */
    write_text("all.csv", "2\tlow\t5\n3\thigh\t6\n");
    write_text("more.csv", "4\thigh\t7\n");
    expect_ok(open_data(&data,
                        "{set: table, path: %/all.csv, test: %/more.csv, delimiter: tab, target: 2,"
                        " classes: [low, middle, high]}",
                        &input, true));
    assert_int_equal(data.classes, 3);
    assert_null(data.fields->field[0].name);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &one, 1, false, x, &label, NULL));
    assert_int_equal(label, 2);
    expect_close(x[1], 6, 0, 0);
    rp_data_close(&data);
}

/* With two inputs and classes. */
static const struct {
    const char *keys, *text;
    rp_err err;
    const char *part;
} refused[] = {
    {"", "a,b,c\n1,7,2\n1,x,2\n", RP_ERR_FORMAT,
     "train.csv:3:2: column 'b': expected a finite number, found 'x'"},
    {"", "a,b,c\n1,x,u\n1,7,u\n", RP_ERR_FORMAT,
     "train.csv:3:2: column 'b': expected a text, as in the rows before, found '7'"},
    {"", "a,b,c\n1,x,u\n1,,u\n", RP_ERR_FORMAT,
     "expected a text, as in the rows before (if it marks a missing value,"},
    {"", "a,b,c\n1,x,u\n1,y,u\n", RP_ERR_FORMAT,
     "expected 2 input values (the model's input), found 2 columns with 3 values"},
    {", missing: NA", "a,b,c\n1,2,NA\n", RP_ERR_FORMAT, "a class, which may not be missing"},
    {", missing: NA", "a,b,c\n1,NA,u\n", RP_ERR_FORMAT,
     "train.csv: column 2 'b' has no value in any row; remove it with `drop`"},
    {", missing: {a: b}", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "missing: expected a list"},
    {"", "a,b,a\n1,2,u\n", RP_ERR_FORMAT, "train.csv:1: the header has two columns named 'a'"},
    {"", "a,b,c\n", RP_ERR_FORMAT, "train.csv: has no rows"},
    {"", "a,b,c\n1,2,u\n3,4,5\n", RP_ERR_FORMAT,
     "train.csv:3:3: column 'c': expected the name of a class, as in the rows before, found "
     "'5'"},
    {"", "1,2,5\n1,2,u\n", RP_ERR_FORMAT, "train.csv:2:3: expected a class from 0 to 65535"},
    {"", "a,b,c\n1,2,u\n1,2,\n", RP_ERR_FORMAT, "train.csv:3:3: column 'c': expected the name"},
    {", header: true", "1,2,3\n1,2,3,4\n", RP_ERR_FORMAT, "train.csv:2:4: expected 3 fields"},
    {", header: false", "1,b,c\nd,b,c\n", RP_ERR_FORMAT, "train.csv:2:1: expected a finite number"},
    {", target: d", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "target: "},
    {", target: 4", "1,2,3\n", RP_ERR_USAGE, "has no header, so columns are numbered from 1"},
    {", target: [a, a]", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "column 'a' is named twice"},
    {", drop: a", "a,b,c\n1,2,u\n", RP_ERR_FORMAT, "expected 2 x columns"},
    {", classes: [u, v]", "a,b,c\n1,2,w\n", RP_ERR_FORMAT,
     "column 'c': expected one of the names in `classes`, found 'w'"},
    {", classes: [u, u]", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "'u' is listed twice"},
    {", delimiter: colon", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "one of: auto comma semicolon tab"},
    {", delimiter: comma", "a;b;c\n1;2;u\n", RP_ERR_FORMAT,
     "found only one column, 'a;b;c': check `delimiter`"},
    {", delimiter: tab, target: label", "a;b;label\n1;2;u\n", RP_ERR_USAGE,
     "the file has one column, 'a;b;label': check `delimiter`"},
    {", target: labels", "a,b,label\n1,2,u\n", RP_ERR_USAGE,
     "has no column 'labels'; did you mean 'label'?"},
    {", target: label, columns: [a, c]", "a,b,label\n1,2,u\n", RP_ERR_USAGE, "columns[1]: "},
    {", target: c, columns: [a, c]", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "column 'c' is named twice"},
    {", columns: [a, b]", "a,b,c\n1,2,u\n", RP_ERR_USAGE, "columns: needs `target`"},
    {", target: c, columns: [a], drop: b", "a,b,c\n1,2,u\n", RP_ERR_USAGE,
     "columns: excludes `drop`"},
    {"", "a,l\xe4nge,c\n1,2,u\n", RP_ERR_FORMAT,
     "train.csv:1:2: expected a name in UTF-8, found 'l\\xe4nge'"},
    {"", "a,b,c\n1,2,h\xe4lt\n", RP_ERR_FORMAT,
     "train.csv:2:3: column 'c': expected the name of a class in UTF-8, found 'h\\xe4lt'"},
    {"", "a,b,c\n1,\xe4,u\n", RP_ERR_FORMAT,
     "train.csv:2:2: column 'b': expected UTF-8, found '\\xe4'"},
    {"", "a,,\n1,2,u\n", RP_ERR_FORMAT,
     "two columns without a name; name them, or drop both with `drop"},
    {"", ",0,1\n1,2,3\n", RP_ERR_FORMAT,
     "(if this row has the names of columns, set `header: true`)"},
    {"", "1,2,3\n,2,3\n", RP_ERR_FORMAT, "list it in data.missing), found ''"},
    {", target: y", "id,2019,y\n1,2,u\n", RP_ERR_USAGE,
     "unknown column 'y'; if the first row has names, set `header: true`"},
    {", mean: [1]", "1,2,0\n", RP_ERR_USAGE, "expected a list of 2 numbers, one for each column"},
};

static void bad_columns(void **state) {
    (void)state;
    rp_data data;
    char text[256];
    const rp_shape input = rp_shape_1(2);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        write_text("train.csv", refused[i].text);
        (void)snprintf(text, sizeof text, "{set: table, path: %%%s}", refused[i].keys);
        expect_err(open_data(&data, text, &input, true), refused[i].err);
        expect_part(refused[i].part);
    }
    write_text("train.csv", "a,b,c\n1,2,u\n");
    write_text("test.csv", "a,b,c\n1,2,other\n");
    expect_err(open_data(&data, keys, &input, true), RP_ERR_FORMAT);
    expect_part("test.csv:2:3: column 'c': expected a class of the training file, found 'oth");
    write_text("test.csv", "a,d,c\n1,2,u\n");
    expect_err(open_data(&data, keys, &input, true), RP_ERR_FORMAT);
    expect_part("test.csv:1: expected a column 'b' as in the training file");
    expect_err(open_data(&data, "{set: table, path: %/train.csv, test: %/none.csv}", &input, true),
               RP_ERR_IO);
    expect_part("none.csv: cannot be opened");
    expect_err(open_data(&data, "{set: table, path: %, classes: [u]}", &input, false),
               RP_ERR_USAGE);
    expect_part("classes: needs `loss: cross-entropy`");
}

static bool has_note(const rp_data *data, const char *part) {
    for (uint32_t i = 0; i < data->notes.count; i++) {
        if (strstr(data->notes.text[i], part)) {
            return true;
        }
    }
    return false;
}

/* What is taken as it is, and may not be meant, is said. */
static void notes(void **state) {
    (void)state;
    static const struct {
        const char *rest, *text, *part; /* NULL: nothing is said */
    } cases[] = {
        {"", "a,b,c\n1,2,u\n3,4,v\n", NULL},
        {"", "a;b;c\n1;2;u\n3;4;v\n", "fields are separated as by `delimiter: semicolon`"},
        {"", "# x;y\n\n\"a,\n\"\tb\tc\n1\t2\tu\n3\t4\tv\n", "`delimiter: tab`"},
        {", delimiter: semicolon", "a;b;c\n1;2;u\n3;4;v\n", NULL},
        {", target: 3", "0,1,2\n1,2,1\n3,4,0\n", "the first row, which counts the columns"},
        {", target: 3", "1,2,3\n1,2,1\n3,4,0\n2,2,2\n", "the first row, which counts the columns"},
        {", header: true, target: \"2\"", "0,1,2\n1,2,1\n3,4,0\n", NULL},
        {", header: false, target: 3", "0,1,2\n1,2,1\n3,4,0\n", NULL},
        {"", ",b,c\n1,2,u\n3,4,v\n", "column 1 has no name and is an input; `drop: [\"\"]`"},
        {", drop: [\"\"]", ",b,,c\n1,2,2,u\n3,4,5,v\n", NULL},
        {"", "a,b,c\n1,2,0\n3,4,60000\n",
         "59999 of 60001 classes have no training sample: 1, 2, 3, 4, 5, ...; if the numbers are "
         "not classes, list the names"},
        {"", "a,b,c\n1,2,0\n3,4,0\n", "all training samples have one class, 0"},
        {", classes: [u, v, w]", "a,b,c\n1,2,u\n3,4,w\n",
         "1 of 3 classes have no training sample: v"},
        {"", "a,b,c\nred,2,u\nblue,4,v\n",
         "column 1 'a' has texts; each becomes an input of 0 or 1 (2: blue, red)"},
        {", missing: [NA, \"\"]", "a,b,c\n1,2,u\nNA,4,v\n3,,v\n", "2 values in 3 rows are missing"},
        {"", "kind,colour,y\na,red,u\nb,blue,v\n", "the first row is taken as names of columns"},
        {"", "a,b,y\n1,1000000007,0\n1,1000000003,1\n",
         "input 2 'b' has a value of 1000000007, which is rounded to 1000000000; `normalise: "
         "measured`"},
        {"", "1000000007,0\n1000000003,1\n",
         "input 1 has a value of 1000000007, which is rounded to 1000000000; `normalise: "
         "measured`"},
        {", normalise: measured", "1000000007,0\n1000000003,1\n", NULL},
    };
    char text[256];
    rp_data data;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("train.csv", cases[i].text);
        (void)snprintf(text, sizeof text, "{set: table, path: %%%s}", cases[i].rest);
        expect_ok(open_data(&data, text, NULL, true));
        if (cases[i].part ? !has_note(&data, cases[i].part) : data.notes.count > 0) {
            fail_msg("case %zu: %s", i, data.notes.count ? data.notes.text[0] : "no note");
        }
        rp_data_close(&data);
    }
    /* A class whose samples are all held out. */
    write_text("train.csv", "1,0\n2,1\n");
    expect_ok(open_data(&data, "{set: table, path: %, validation: 1}", NULL, true));
    assert_true(has_note(&data, "1 of 2 classes have no training sample"));
    rp_data_close(&data);
}

/* Columns of texts: an input for each text of the training file; missing values; chosen columns. */
static void texts_and_missing_values(void **state) {
    (void)state;
    float x[4 * 5];
    rp_data data;
    const uint32_t index[] = {0, 1, 2, 3};
    write_text("train.csv", "id,n,colour,kind\n1,2,red,u\n2,NA,blue,v\n3,4,?,u\n4,9,green,v\n");
    write_text("test.csv", "kind,colour,n\nu,green,NA\nv,NA,1\n");
    expect_ok(open_data(&data,
                        "{set: table, path: %, target: kind, columns: [colour, n], "
                        "missing: [NA, '?']}",
                        NULL, true));
    assert_true(rp_shape_equal(&data.sample, &(rp_shape){1, {4}}));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 4, true, x, NULL, NULL));
    /* n, blue, green, red */
    const float want[] = {2, 0, 0, 1, 5, 1, 0, 0, 4, 0, 0, 0, 9, 0, 1, 0};
    expect_close_all(x, want, 16, 0, 0);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, index, 2, false, x, NULL, NULL));
    expect_close_all(x, ((const float[]){5, 0, 1, 0, 1, 0, 0, 0}), 8, 0, 0);
    rp_data_close(&data);
    /* What is 0 or 1 is not normalised. */
    expect_ok(open_data(&data,
                        "{set: table, path: %, target: kind, columns: [n, colour], "
                        "missing: [NA, '?'], normalise: measured}",
                        NULL, true));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 4, false, x, NULL, NULL));
    const float deviation = sqrtf((9 + 1 + 16) / 4.0f);
    expect_close(x[0], -3 / deviation, 1e-6, 0);
    expect_close(x[4], 0, 0, 0);
    expect_close_all(x + 5, ((const float[]){1, 0, 0}), 3, 0, 0);
    rp_data_close(&data);
    write_text("test.csv", "kind,colour,n\nu,gren,1\n");
    expect_err(
        open_data(&data, "{set: table, path: %, target: kind, missing: [NA, '?']}", NULL, true),
        RP_ERR_FORMAT);
    expect_part("test.csv:1: expected a column 'id' as in the training file");
    expect_err(open_data(&data, "{set: table, path: %, target: kind, drop: id, missing: [NA, '?']}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("test.csv:2:2: column 'colour': expected one of the 3 texts of the training file "
                "(as 'green'), found 'gren'");
    write_text("test.csv", "kind,colour,n,n\nu,green,1,2\n");
    expect_err(open_data(&data, "{set: table, path: %, target: kind, drop: id, missing: [NA, '?']}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("test.csv:1: the header has two columns named 'n'");
    write_text("test.csv", "kind,color,n\nu,green,1\n");
    expect_err(open_data(&data, "{set: table, path: %, target: kind, drop: id, missing: [NA, '?']}",
                         NULL, true),
               RP_ERR_FORMAT);
    expect_part("expected a column 'colour' as in the training file; did you mean 'color'?");
}

/* Rows of texts that are samples, where there is no header. */
static void texts_without_a_header(void **state) {
    (void)state;
    rp_data data;
    write_text("train.csv", "NA,red,u\n2,blue,v\n");
    write_text("test.csv", "NA,blue,v\n3,red,u\n");
    expect_ok(open_data(&data, "{set: table, path: %, missing: NA}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 2);
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    rp_data_close(&data);
    write_text("train.csv", "S,red,u\nM,blue,v\n");
    write_text("test.csv", "M,red,v\nS,red,u\n");
    expect_ok(open_data(&data, "{set: table, path: %, header: false}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 2);
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    rp_data_close(&data);
}

/* A class of the test file alone would have an output that is never trained. */
static void a_class_of_the_test_file_alone(void **state) {
    (void)state;
    rp_data data;
    write_text("train.csv", "1,0\n2,1\n");
    write_text("test.csv", "1,0\n2,2\n");
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("test.csv:2:2: expected a class of the training file, from 0 to 1, found '2'");
}

/* Mean and deviation are those of the training part, without what is held out and the test part. */
static void normalisation_is_measured(void **state) {
    (void)state;
    char text[1024];
    size_t used = 0;
    rp_data data;
    const rp_shape input = rp_shape_1(3);
    for (int i = 0; i < 20; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.0f,5,%d\n", i * i,
                                 1e6 + i % 3, i);
    }
    write_text("train.csv", text);
    write_text("test.csv", "1000,0,0,1\n");
    expect_ok(open_data(&data, "{set: table, path: %, normalise: measured, validation: 5}", &input,
                        false));
    double sum[3] = {0};
    double square[3] = {0};
    float x[3];
    for (uint32_t i = 0; i < 15; i++) { /* without the norm, as they stand in the file */
        const int row = (int)data.part[RP_SPLIT_TRAIN][i];
        const double value[] = {row * row, 1e6 + row % 3, 5};
        for (int c = 0; c < 3; c++) {
            sum[c] += value[c] / 15;
        }
    }
    for (uint32_t i = 0; i < 15; i++) {
        const int row = (int)data.part[RP_SPLIT_TRAIN][i];
        const double value[] = {row * row, 1e6 + row % 3, 5};
        for (int c = 0; c < 3; c++) {
            square[c] += (value[c] - sum[c]) * (value[c] - sum[c]) / 15;
        }
    }
    for (int c = 0; c < 3; c++) {
        expect_close(data.norm.mean[c], sum[c], 1e-6, 0);
        expect_close(data.norm.deviation[c], c == 2 ? 1 : sqrt(square[c]), 1e-6, 0);
    }
    const uint32_t zero = 0;
    float y;
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &zero, 1, false, x, NULL, &y));
    expect_close(x[0], (1000 - sum[0]) / sqrt(square[0]), 1e-5, 0);
    expect_close(y, 1, 0, 0); /* targets stay */
    rp_data_close(&data);
    expect_err(open_data(&data, "{set: table, path: %, normalise: measured, mean: [0, 0, 0]}",
                         &input, false),
               RP_ERR_USAGE);
    expect_part("normalise: excludes `mean` and `std`");
    expect_ok(open_data(&data, "{set: table, path: %, std: [2, 2, 2]}", &input, false));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, &zero, 1, false, x, NULL, &y));
    expect_close(x[0], 500, 0, 0);
    rp_data_close(&data);
}

/* data.json: enough to read a sample and print a class without the set. */
static void description(void **state) {
    (void)state;
    static char text[4096];
    rp_data data;
    write_text("train.csv", "a,b,c\n1,2,u\n3,5,v\n");
    expect_ok(
        open_data(&data, "{set: table, path: %, normalise: measured, validation: 1}", NULL, true));
    data.norm.mean[0] = 0.1f;
    expect_ok(rp_data_describe(&data, in_folder("data.json")));
    FILE *file = fopen(in_folder("data.json"), "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_int_equal(access(in_folder("data.json.tmp"), F_OK), -1);
    json_error_t problem;
    json_t *object = json_loads(text, 0, &problem);
    assert_non_null(object);
    const char *set;
    const char *class_1;
    const char *x_1;
    const char *y_0;
    json_int_t samples[3];
    double mean[2];
    json_int_t classes;
    assert_int_equal(
        json_unpack(object, "{s:s, s:I, s:[ss], s:[ss], s:[s], s:[FF], s:[FF], s:{s:I,s:I,s:I}}",
                    "set", &set, "classes", &classes, "class_names", &set, &class_1, "x_names",
                    &set, &x_1, "y_names", &y_0, "mean", &mean[0], &mean[1], "std", &mean[1],
                    &mean[1], "samples", "train", &samples[0], "validation", &samples[1], "test",
                    &samples[2]),
        0);
    assert_true((float)mean[0] == 0.1f); /* to the bit */
    assert_int_equal(classes, 2);
    assert_string_equal(class_1, "v");
    assert_string_equal(x_1, "b");
    assert_string_equal(y_0, "c");
    assert_true(samples[0] == 1 && samples[1] == 1 && samples[2] == 0);
    json_decref(object);
    expect_err(rp_data_describe(&data, in_folder("none/data.json")), RP_ERR_IO);
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_for_mse, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_with_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(header_and_class_names, setup, teardown),
        cmocka_unit_test_setup_teardown(chosen_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(notes, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_and_missing_values, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_without_a_header, setup, teardown),
        cmocka_unit_test_setup_teardown(a_class_of_the_test_file_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(normalisation_is_measured, setup, teardown),
        cmocka_unit_test_setup_teardown(description, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_sets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
