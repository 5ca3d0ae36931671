/* Runs a fuzz target once for each file named: the corpus as a test, without libFuzzer. */
#include <stdio.h>

#include "fuzz.h"

int main(int argc, char **argv) {
    static uint8_t bytes[1 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t count = fread(bytes, 1, sizeof bytes, file);
        (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(bytes, count);
    }
    printf("%d inputs\n", argc - 1);
    return argc > 1 ? 0 : 77;
}
