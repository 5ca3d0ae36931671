/* Bytes as a plan: what is read is written again and read to the same; a check of it ends. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

static void check_again(const rp_plan *plan) {
    char *text = NULL;
    size_t bytes = 0;
    rp_arena arena;
    rp_plan *again;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    FILE *file = open_memstream(&text, &bytes);
    RP_ASSERT(file);
    RP_ASSERT(rp_plan_write(plan, file) == RP_OK);
    (void)fclose(file);
    RP_ASSERT(rp_plan_parse(&arena, text, bytes, "again", &again) == RP_OK);
    RP_ASSERT(rp_plan_same(plan, again));
    free(text);
    rp_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    if (rp_plan_parse(&arena, (const char *)bytes, count, "fuzz", &plan) == RP_OK) {
        check_again(plan);
        uint32_t micro = plan->batch;
        for (uint32_t k = 0; k < plan->stage_count; k++) {
            const uint32_t own = plan->stage[k].micro_forward;
            micro = own < micro ? own : micro;
        }
        if (plan->stage_count <= 16 && plan->batch / micro <= 64) { /* a replay is long otherwise */
            const rp_err err = rp_plan_check(plan, NULL);
            RP_ASSERT(err != RP_ERR_MEMORY);
        }
    }
    rp_arena_finish(&arena);
    return 0;
}
