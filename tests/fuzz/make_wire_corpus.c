/* Writes the corpus of fuzz_wire into a folder: a sound frame of each kind, and some that are not.
 * Run it after a change of the wire:  bin/make_wire_corpus tests/fuzz/corpus/wire */
#include <stdio.h>
#include <stdlib.h>

#include "wire/samples.h"

static void write_file(const char *folder, const char *name, const void *bytes, size_t count) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static void write_sound(const char *folder, rp_kind kind) {
    rp_Frame frame;
    rp_part parts[RP_PARTS_MAX];
    uint8_t bytes[RP_FRAME_BYTES_MAX];
    size_t count;
    const uint32_t part_count = sample_frame(kind, &frame, parts);
    if (rp_frame_encode(&frame, parts, part_count, bytes, &count) != RP_OK) {
        exit(1);
    }
    write_file(folder, rp_kind_name(kind), bytes, count);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        (void)fprintf(stderr, "usage: make_wire_corpus FOLDER\n");
        return 2;
    }
    static const uint8_t endless_varint[] = {8,   2,   16,  255, 255, 255, 255, 255,
                                             255, 255, 255, 255, 255, 255, 255, 255};
    static const uint8_t nine_parts[] = {8, 2,  74, 0,  74, 0,  74, 0,  74, 0,  74,
                                         0, 74, 0,  74, 0,  74, 0,  74, 0,  90, 0};
    static const uint8_t two_bodies[] = {8, 2, 162, 1, 2, 8, 5, 170, 1, 2, 8, 6};
    static const uint8_t text_without_end[] = {8, 2, 226, 1, 8, 26, 127, 'a', 'b', 'c'};
    static const uint8_t two_versions[] = {8, 2, 24, 1, 8, 1, 138, 3, 2, 8, 5};
    static const uint8_t version_1[] = {8, 1, 16, 16, 25, 1, 2, 3, 4, 5, 6, 7, 8};
    for (int kind = 0; kind < SAMPLE_KINDS_END; kind++) {
        if (rp_kind_facts_of((rp_kind)kind)->name) {
            write_sound(argv[1], (rp_kind)kind);
        }
    }
    write_file(argv[1], "endless-varint", endless_varint, sizeof endless_varint);
    write_file(argv[1], "nine-parts", nine_parts, sizeof nine_parts);
    write_file(argv[1], "two-bodies", two_bodies, sizeof two_bodies);
    write_file(argv[1], "text-without-end", text_without_end, sizeof text_without_end);
    write_file(argv[1], "two-versions", two_versions, sizeof two_versions);
    write_file(argv[1], "version-1", version_1, sizeof version_1);
    return 0;
}
