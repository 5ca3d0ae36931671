/* main() of a test program: `tests_<room> TEST [WORD...]` runs one test file of the room. */
#include "one_of.h"

#include <stdio.h>
#include <string.h>

static void print_names(FILE *out) {
    for (const rp_one_of_test *test = rp_tests_here; test->name; test++) {
        fprintf(out, "%s\n", test->name);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        print_names(stdout);
        return 0;
    }
    for (const rp_one_of_test *test = rp_tests_here; argc >= 2 && test->name; test++) {
        if (strcmp(test->name, argv[1]) == 0) {
            return test->run ? test->run() : test->run_words(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "usage: %s TEST, where TEST is one of\n", argv[0]);
    print_names(stderr);
    return 2;
}
