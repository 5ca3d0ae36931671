#ifndef RP_TESTS_ONE_OF_H
#define RP_TESTS_ONE_OF_H

/* One test file of a test program: its name, and its main(), with or without words. */
typedef struct {
    const char *name;
    int (*run)(void);
    int (*run_words)(int argc, char **argv);
} rp_one_of_test;

/* Generated from rp_tests() of the room; ends with a row without a name. */
extern const rp_one_of_test rp_tests_here[];

#endif
