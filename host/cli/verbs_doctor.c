/* doctor: checks this machine's device. The work runs in a child process, because a driver may
 * abort or hang; the child passes its findings as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/json_print.h"
#include "cli/open_board.h"
#include "cli/probe.h"
#include "device/gemm.h"
#include "device/peak.h"

enum { SECONDS_MAX = 300 };

/* ---- in the child ---------------------------------------------------------------------------- */

static json_t *tuning_object(const rp_device *device) {
    const rp_tuning_origin *origin = rp_device_tuning_origin(device);
    json_t *object = json_pack("{s:s?}", "applied", origin->applied);
    if (origin->ignored) {
        (void)json_object_set_new(object, "ignored",
                                  json_pack("{s:s, s:s, s:s}", "path", origin->ignored, "device",
                                            origin->ignored_device, "driver",
                                            origin->ignored_driver));
    }
    return object;
}

/* Names of a driver may not be UTF-8, which jansson requires. */
static json_t *name_of(const char *text) {
    json_t *string = json_string(text);
    return string ? string : json_string("?");
}

static json_t *facts_object(const rp_board *board, const rp_device *device, double gflops,
                            double peak) {
    const rp_device_facts *f = rp_device_facts_of(device);
    const double mib = 1.0 / (1 << 20);
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:f, s:f, s:i, s:s, s:f, s:f, s:f, s:o, s:s}",
                     "version", 1, "board", name_of(board->name), "platform", name_of(f->platform),
                     "device", name_of(f->name), "driver", name_of(f->driver), "memory_mib",
                     (double)f->memory_bytes * mib, "alloc_max_mib",
                     (double)f->alloc_bytes_max * mib, "compute_units", (int)f->compute_units,
                     "gemm", rp_gemm_choice_name(rp_device_gemm(device)), "gemm_gflops", gflops,
                     "peak_gflops", peak, "gemm_share", peak > 0 ? gflops / peak : 0, "tuning",
                     tuning_object(device), "selftest", "passed");
}

static rp_err examine(const rp_probe *probe, const void *context, FILE *result) {
    const rp_cli_args *args = context;
    rp_arena arena;
    rp_board board;
    rp_device *device = NULL;
    double gflops = 0;
    double peak = 0;
    rp_err err;
    rp_arena_init(&arena, "doctor", 0);
    rp_probe_say(probe, "opening the device");
    RP_TRY(rp_cli_open_board(&arena, args, &board, &device));
    rp_probe_say(probe, "computing the self-test");
    RP_TRY(rp_device_selftest(device));
    rp_probe_say(probe, "measuring");
    RP_TRY(rp_device_measure_gemm(&arena, device, 0.2, &gflops));
    RP_TRY(rp_device_measure_peak(device, 0.1, &peak));
    json_t *facts = facts_object(&board, device, gflops, peak);
    const bool written = facts && json_dumpf(facts, result, JSON_REAL_PRECISION(6)) == 0;
    json_decref(facts);
    err = written ? RP_OK : rp_fail(RP_ERR_MEMORY, "doctor: no memory for the findings");
    rp_probe_say(probe, "closing the device");
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return err;
}

/* ---- in the parent --------------------------------------------------------------------------- */

static const char *text_of(const json_t *map, const char *key) {
    const char *text = json_string_value(json_object_get(map, key));
    return text ? text : "?";
}

static double number_of(const json_t *map, const char *key) {
    return json_number_value(json_object_get(map, key));
}

static void print_tuning(const json_t *tuning) {
    const char *applied = json_string_value(json_object_get(tuning, "applied"));
    const json_t *ignored = json_object_get(tuning, "ignored");
    (void)printf("tuning       %s\n", applied ? applied : "none: CLBlast's own parameters");
    if (ignored) {
        (void)printf("             not applied: %s is for %s, driver %s\n",
                     text_of(ignored, "path"), text_of(ignored, "device"),
                     text_of(ignored, "driver"));
    }
    if (!applied) {
        (void)printf("             `ringpipe tune` finds parameters for this device\n");
    }
}

static void print_text(const json_t *found) {
    (void)printf("board        %s\nplatform     %s\ndevice       %s\ndriver       %s\n"
                 "memory       %.0f MiB, at most %.0f in one allocation\ncompute units %.0f\n",
                 text_of(found, "board"), text_of(found, "platform"), text_of(found, "device"),
                 text_of(found, "driver"), number_of(found, "memory_mib"),
                 number_of(found, "alloc_max_mib"), number_of(found, "compute_units"));
    (void)printf("gemm         %s, %.1f GFLOP/s at 512 x 512: %.0f %% of the device's measured "
                 "peak, %.1f\n",
                 text_of(found, "gemm"), number_of(found, "gemm_gflops"),
                 100 * number_of(found, "gemm_share"), number_of(found, "peak_gflops"));
    print_tuning(json_object_get(found, "tuning"));
    (void)printf("self-test    passed: products equal those of a CPU\ndisk         %.1f GiB free\n",
                 number_of(found, "disk_gib"));
}

rp_err rp_verb_doctor(rp_arena *arena, const rp_cli_args *args) {
    struct statvfs disk = {0};
    json_t *found = NULL;
    char *text;
    rp_err err;
    if (args->roster || args->listen || args->where.count > 0) {
        return rp_cli_report_reach(arena, args);
    }
    RP_TRY(rp_probe_run(arena, SECONDS_MAX, examine, args, &text));
    found = json_loads(text, 0, NULL);
    if (!found) {
        RP_TRY(rp_fail(RP_ERR_DEVICE, "doctor: the findings of the probe cannot be read"));
    }
    (void)statvfs(".", &disk);
    (void)json_object_set_new(
        found, "disk_gib",
        json_real((double)disk.f_bavail * (double)disk.f_frsize / (1024.0 * 1024.0 * 1024.0)));
    if (rp_cli_is_json(args)) {
        err = rp_json_print(json_incref(found), JSON_REAL_PRECISION(6), stdout);
    } else {
        print_text(found);
    }
fail:
    json_decref(found);
    return err;
}
