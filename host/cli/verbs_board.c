/* Verbs about this machine's device. */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "agent/board.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "device/gemm.h"
#include "device/tune.h"

static rp_err open_board(rp_arena *arena, const rp_cli_args *args, rp_board *board,
                         rp_device **device) {
    rp_err err;
    RP_TRY(rp_board_find(arena, args->board, args->threads, board));
    rp_device_options options = {.platform = board->platform,
                                 .device = board->device,
                                 .threads = args->threads,
                                 .tuning_path = board->tuning_path};
    RP_TRY(rp_device_open(arena, &options, device));
fail:
    return err;
}

enum { SIDE = 512, REPEATS = 8 };

/* GFLOP/s of square products, all of them enqueued before the clock is read. */
static rp_err measure_gemm(rp_arena *arena, rp_device *device, double *gflops) {
    rp_darena *memory = NULL;
    rp_buffer *buffer[3];
    rp_buffer *workspace;
    rp_clock clock = rp_clock_real();
    rp_err err;
    RP_TRY(rp_darena_open(arena, device, "doctor", 0, 0, &memory));
    rp_mat mat[3];
    for (int i = 0; i < 3; i++) {
        RP_TRY(rp_darena_take(memory, SIDE * SIDE * sizeof(float), &buffer[i]));
        mat[i] = rp_mat_plain(buffer[i], 0, SIDE, SIDE);
    }
    size_t bytes = rp_gemm_workspace_bytes(rp_device_gemm(device), &mat[0], &mat[1], &mat[2]);
    RP_TRY(rp_darena_take(memory, bytes ? bytes : 1, &workspace));
    rp_epilogue plain = {0};
    int64_t start_ns = 0;
    for (int i = 0; i <= REPEATS; i++) {
        RP_TRY(rp_gemm_run(device, &mat[0], &mat[1], &mat[2], &plain, workspace));
        if (i == 0) {
            RP_TRY(rp_device_drain(device)); /* the first one builds kernels */
            start_ns = rp_clock_now_ns(&clock);
        }
    }
    RP_TRY(rp_device_drain(device));
    double seconds = (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-9;
    *gflops = 2.0 * SIDE * SIDE * SIDE * REPEATS / seconds * 1e-9;
fail:
    rp_darena_close(&memory);
    return err;
}

static void print_doctor(const rp_cli_args *args, const rp_board *board, const rp_device *device,
                         double gflops, double disk_gib) {
    const rp_device_facts *f = rp_device_facts_of(device);
    const double mib = 1.0 / (1 << 20);
    bool json = strcmp(args->format, "json") == 0;
    (void)printf(json ? "{\"version\": 1, \"board\": \"%s\", \"platform\": \"%s\", "
                        "\"device\": \"%s\", \"driver\": \"%s\", \"memory_mib\": %.0f, "
                        "\"alloc_max_mib\": %.0f, \"compute_units\": %u, \"gemm\": \"%s\", "
                        "\"gemm_gflops\": %.1f, \"selftest\": \"passed\", \"disk_gib\": %.1f}\n"
                      : "board        %s\nplatform     %s\ndevice       %s\ndriver       %s\n"
                        "memory       %.0f MiB, at most %.0f in one piece\ncompute units %u\n"
                        "gemm         %s, %.1f GFLOP/s at 512 x 512\n"
                        "self-test    passed: products equal a CPU's\ndisk         %.1f GiB free\n",
                 board->name, f->platform, f->name, f->driver, (double)f->memory_bytes * mib,
                 (double)f->alloc_bytes_max * mib, f->compute_units,
                 rp_gemm_choice_name(rp_device_gemm(device)), gflops, disk_gib);
}

rp_err rp_verb_doctor(const rp_cli_args *args) {
    rp_arena arena;
    rp_arena_init(&arena, "doctor", 0);
    rp_board board;
    rp_device *device = NULL;
    double gflops = 0;
    struct statvfs disk = {0};
    rp_err err;
    RP_TRY(open_board(&arena, args, &board, &device));
    RP_TRY(rp_device_selftest(device));
    RP_TRY(measure_gemm(&arena, device, &gflops));
    (void)statvfs(".", &disk);
    print_doctor(args, &board, device, gflops,
                 (double)disk.f_bavail * (double)disk.f_frsize / (1024.0 * 1024.0 * 1024.0));
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return err;
}

static void print_line(const char *text) {
    (void)fprintf(stderr, "%s\n", text);
}

/* Over the board's own tuning.json, or where --out says. */
rp_err rp_verb_tune(const rp_cli_args *args) {
    rp_arena arena;
    rp_arena_init(&arena, "tune", 0);
    rp_board board;
    rp_device *device = NULL;
    char *path;
    rp_err err;
    RP_TRY(open_board(&arena, args, &board, &device));
    RP_TRY(rp_arena_printf(&arena, &path, "%s/%s/tuning.json", rp_board_folder(), board.name));
    const char *out = args->out ? args->out : path;
    RP_TRY(rp_tune_run(&arena, device, (double)args->minutes, out, print_line));
    (void)printf("%s written: gemm %s\n", out, rp_gemm_choice_name(rp_device_gemm(device)));
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return err;
}
