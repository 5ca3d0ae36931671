#include "device/tuning.h"

#include <jansson.h>
#include <string.h>

const char *rp_gemm_choice_name(rp_gemm_choice choice) {
    return choice == RP_GEMM_PANEL ? "panel" : "clblast";
}

rp_tuning rp_tuning_default(void) {
    return (rp_tuning){.gemm = RP_GEMM_CLBLAST, .panel = {.rows = 8, .depth = 256, .columns = 128}};
}

const char *rp_tuning_defines(const rp_tuning *tuning, const char *program) {
    for (uint32_t i = 0; i < tuning->program_count; i++) {
        if (strcmp(tuning->programs[i].name, program) == 0) {
            return tuning->programs[i].defines;
        }
    }
    return NULL;
}

static rp_err read_choice(const char *path, json_t *root, rp_tuning *out) {
    json_t *gemm = json_object_get(root, "gemm");
    const char *text = json_string_value(gemm);
    if (!gemm) {
        return RP_OK;
    }
    for (int choice = RP_GEMM_CLBLAST; choice <= RP_GEMM_PANEL; choice++) {
        if (text && strcmp(text, rp_gemm_choice_name((rp_gemm_choice)choice)) == 0) {
            out->gemm = (rp_gemm_choice)choice;
            return RP_OK;
        }
    }
    return rp_fail(RP_ERR_FORMAT, "%s: gemm: expected \"clblast\" or \"panel\"", path);
}

static bool panel_fits(const rp_tuning_panel *panel) {
    return (panel->rows == 8 || panel->rows == 12) && panel->depth >= 64 && panel->depth <= 1024 &&
           panel->depth % 16 == 0 && panel->columns >= 32 && panel->columns <= 128 &&
           panel->columns % 32 == 0;
}

static rp_err read_panel(const char *path, json_t *root, rp_tuning *out) {
    json_t *panel = json_object_get(root, "panel");
    if (!panel) {
        return RP_OK;
    }
    json_int_t rows = 0;
    json_int_t depth = 0;
    json_int_t columns = 0;
    json_error_t error;
    if (json_unpack_ex(panel, &error, JSON_STRICT, "{s:I, s:I, s:I}", "rows", &rows, "depth",
                       &depth, "columns", &columns) != 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: panel: %s (expected rows, depth, columns)", path,
                       error.text);
    }
    if (rows < 0 || rows > 64 || depth < 0 || depth > 65536 || columns < 0 || columns > 65536) {
        return rp_fail(RP_ERR_FORMAT, "%s: panel: a number is out of range", path);
    }
    out->panel = (rp_tuning_panel){(uint32_t)rows, (uint32_t)depth, (uint32_t)columns};
    if (!panel_fits(&out->panel)) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: panel: expected rows 8 or 12, depth 64..1024 in steps of 16, columns "
                       "32, 64, 96 or 128",
                       path);
    }
    return RP_OK;
}

static rp_err read_values(rp_arena *arena, const char *path, const char *kernel, json_t *map,
                          rp_tuning_clblast *out) {
    if (!json_is_object(map) || json_object_size(map) == 0 ||
        json_object_size(map) > RP_TUNING_VALUES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: clblast.%s: expected 1 to %d numbers", path, kernel,
                       RP_TUNING_VALUES_MAX);
    }
    char *copy;
    rp_err err;
    RP_TRY(rp_arena_string(arena, kernel, &copy));
    *out = (rp_tuning_clblast){.kernel = copy};
    const char *name;
    json_t *value;
    json_object_foreach(map, name, value) {
        json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < 0 || number > 1000000) {
            return rp_fail(RP_ERR_FORMAT, "%s: clblast.%s.%s: expected a number in 0..1000000",
                           path, kernel, name);
        }
        RP_TRY(rp_arena_string(arena, name, &copy));
        out->name[out->count] = copy;
        out->value[out->count++] = (size_t)number;
    }
    return RP_OK;
fail:
    return err;
}

static rp_err read_clblast(rp_arena *arena, const char *path, json_t *root, rp_tuning *out) {
    json_t *map = json_object_get(root, "clblast");
    if (!map) {
        return RP_OK;
    }
    if (!json_is_object(map) || json_object_size(map) > RP_TUNING_KERNELS_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: clblast: expected a map of at most %d kernels", path,
                       RP_TUNING_KERNELS_MAX);
    }
    const char *kernel;
    json_t *values;
    json_object_foreach(map, kernel, values) {
        rp_err err = read_values(arena, path, kernel, values, &out->clblast[out->clblast_count]);
        if (err != RP_OK) {
            return err;
        }
        out->clblast_count++;
    }
    return RP_OK;
}

static rp_err read_programs(rp_arena *arena, const char *path, json_t *root, rp_tuning *out) {
    json_t *map = json_object_get(root, "programs");
    if (!map) {
        return RP_OK;
    }
    if (!json_is_object(map) || json_object_size(map) > RP_TUNING_PROGRAMS_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: programs: expected a map of at most %d texts", path,
                       RP_TUNING_PROGRAMS_MAX);
    }
    rp_err err;
    const char *name;
    json_t *defines;
    json_object_foreach(map, name, defines) {
        if (!json_is_string(defines) || json_string_length(defines) > 100) {
            return rp_fail(RP_ERR_FORMAT, "%s: programs.%s: expected up to 100 characters of -D",
                           path, name);
        }
        char *name_copy;
        char *defines_copy;
        RP_TRY(rp_arena_string(arena, name, &name_copy));
        RP_TRY(rp_arena_string(arena, json_string_value(defines), &defines_copy));
        out->programs[out->program_count++] = (rp_tuning_program){name_copy, defines_copy};
    }
    return RP_OK;
fail:
    return err;
}

/* A name that is not text is ignored. */
static rp_err read_names(rp_arena *arena, json_t *root, rp_tuning *out) {
    static const char *const keys[] = {"device", "driver"};
    const char **to[] = {&out->device, &out->driver};
    rp_err err = RP_OK;
    for (int i = 0; i < 2; i++) {
        const char *text = json_string_value(json_object_get(root, keys[i]));
        char *copy;
        if (text) {
            RP_TRY(rp_arena_string(arena, text, &copy));
            *to[i] = copy;
        }
    }
fail:
    return err;
}

rp_err rp_tuning_read(rp_arena *arena, const char *path, rp_tuning *out) {
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        return rp_fail(json_error_code(&error) == json_error_cannot_open_file ? RP_ERR_IO
                                                                              : RP_ERR_FORMAT,
                       "%s:%d: %s", path, error.line, error.text);
    }
    rp_err err = RP_OK;
    *out = rp_tuning_default();
    if (!json_is_object(root)) {
        RP_TRY(rp_fail(RP_ERR_FORMAT, "%s: expected a map", path));
    }
    RP_TRY(read_choice(path, root, out));
    RP_TRY(read_panel(path, root, out));
    RP_TRY(read_clblast(arena, path, root, out));
    RP_TRY(read_programs(arena, path, root, out));
    RP_TRY(read_names(arena, root, out));
fail:
    json_decref(root);
    return err;
}
