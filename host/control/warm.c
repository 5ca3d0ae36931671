/* `ringpipe boards warm`: the ring is brought up as for a run, as far as its kernels. Boards
 * measure what a plan needs, build what their stages need, keep that in their caches, and forget
 * the rest. All of it has one deadline, which the boards know: each gives up by itself, and says in
 * what. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/json_print.h"
#include "control/controller_own.h"

static const int64_t SAY_EVERY_NS = 5 * RP_NS_PER_S;
/* A board ends its part up to a second before the host does; less is not worth another try. */
static const int64_t LEAST_NS = 2 * RP_NS_PER_S;

static bool is_warming(const rp_controller *c) {
    return c->options.purpose == RP_PURPOSE_WARM;
}

static int64_t left_ns(const rp_controller *c) {
    const int64_t left_ns = c->warm.end_ns - c->ring.now_ns;
    return left_ns > 0 ? left_ns : 0;
}

/* A board says itself that its time is over; one whose software does not know that is late here. */
void rp_warm_begin(rp_controller *c) {
    if (!is_warming(c)) {
        return;
    }
    if (c->warm.end_ns == 0) {
        c->warm.end_ns = c->ring.now_ns + c->options.within_s * RP_NS_PER_S;
    }
    c->machine.timeout_ns = left_ns(c) + RP_RING_HELLO_NS;
}

/* A spare that is away takes no time from the rest. */
int64_t rp_warm_patience_ns(const rp_controller *c) {
    const int64_t since_ns = c->ring.greeted_ns ? c->ring.greeted_ns : c->ring.now_ns;
    const int64_t rest_ns = c->warm.end_ns - since_ns;
    return !c->warm.again || c->warm.row ? 0 : rest_ns > 0 ? rest_ns : 1;
}

/* Only a board that is lost: what a board says itself would come again. */
bool rp_warm_may_go_again(const rp_controller *c) {
    return is_warming(c) && c->warm.end_ns != 0 && left_ns(c) >= LEAST_NS &&
           c->machine.interrupts == 0 && c->machine.fault.err == RP_ERR_FAULT &&
           c->machine.fault.fault_class == RP_FAULT_BOARD &&
           c->machine.fault.board != RP_FAULT_NO_BOARD;
}

uint32_t rp_warm_order_s(const rp_controller *c) {
    const int64_t left_s = left_ns(c) / RP_NS_PER_S;
    return !is_warming(c) ? 0 : left_s > 0 ? (uint32_t)left_s : 1;
}

/* Kernels that are ready, of both phases; they grow as long as something happens. */
static uint64_t count_ready(const rp_controller *c) {
    uint64_t ready = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        ready += c->ring.board[k].built.ready + c->ring.board[k].building.ready;
    }
    return ready;
}

void rp_warm_say(rp_controller *c) {
    const uint64_t ready = is_warming(c) ? count_ready(c) : 0;
    if (!is_warming(c) || ready == c->warm.said_ready ||
        c->ring.now_ns - c->warm.said_ns < SAY_EVERY_NS) {
        return;
    }
    c->warm.said_ready = ready;
    c->warm.said_ns = c->ring.now_ns;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        rp_controller_print(c, "%s%s: %u of %u kernels", k ? ", " : "", board->name,
                            board->built.ready + board->building.ready,
                            board->built.kernels + board->building.kernels);
    }
    rp_controller_print(c, "; %" PRId64 " s left\n", left_ns(c) / RP_NS_PER_S);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Names of the ring's boards whose places a spare has built for, or has not. */
static void show_places(const rp_controller *c, const rp_warm_row *spare, const char *text,
                        bool built) {
    const char *before = text;
    for (uint32_t k = 0; k < c->warm.places; k++) {
        if ((spare->took[k] != 0) == built) {
            (void)fprintf(c->env.result, "%s%s", before, c->warm.row[k].name);
            before = ", ";
        }
    }
}

static void show_row(const rp_controller *c, const rp_warm_row *row) {
    const rp_board_building *built = &row->built;
    if (built->ready == 0) {
        (void)fprintf(c->env.result, "%s: nothing was %s", row->name,
                      row->missing ? "built" : "left to build");
        return;
    }
    (void)fprintf(c->env.result, "%s: %u kernels built in %.1f s, %u found in the cache in %.1f s",
                  row->name, built->built, (double)built->build_ns * 1e-9,
                  built->ready - built->built, (double)built->read_ns * 1e-9);
}

static void show_text(const rp_controller *c) {
    const rp_warm *warm = &c->warm;
    for (uint32_t k = 0; k < warm->places; k++) {
        show_row(c, &warm->row[k]);
        (void)fputc('\n', c->env.result);
    }
    for (uint32_t i = 0; i < warm->spares; i++) {
        const rp_warm_row *row = &warm->row[warm->places + i];
        show_row(c, row);
        show_places(c, row, ", as a spare for ", true);
        if (row->missing) {
            show_places(c, row, ", not for ", false);
            (void)fprintf(c->env.result, ": %s", row->missing);
        }
        (void)fputc('\n', c->env.result);
    }
}

static json_t *row_json(const rp_warm_row *row) {
    const rp_board_building *built = &row->built;
    return json_pack("{s:s, s:I, s:I, s:f, s:f}", "name", row->name, "built",
                     (json_int_t)built->built, "found", (json_int_t)(built->ready - built->built),
                     "build_s", (double)built->build_ns * 1e-9, "read_s",
                     (double)built->read_ns * 1e-9);
}

static json_t *spare_json(const rp_controller *c, const rp_warm_row *row) {
    json_t *places = json_array();
    json_t *object = row_json(row);
    for (uint32_t k = 0; k < c->warm.places; k++) {
        if (row->took[k]) {
            (void)json_array_append_new(places, json_string(c->warm.row[k].name));
        }
    }
    (void)json_object_set_new(object, "for", places);
    (void)json_object_set_new(object, "missing",
                              row->missing ? json_string(row->missing) : json_null());
    return object;
}

static rp_err show_json(const rp_controller *c) {
    const rp_warm *warm = &c->warm;
    json_t *boards = json_array();
    json_t *spares = json_array();
    bool missing = false;
    for (uint32_t k = 0; k < warm->places; k++) {
        (void)json_array_append_new(boards, row_json(&warm->row[k]));
    }
    for (uint32_t i = 0; i < warm->spares; i++) {
        const rp_warm_row *row = &warm->row[warm->places + i];
        (void)json_array_append_new(spares, spare_json(c, row));
        missing = missing || row->missing;
    }
    json_t *root =
        json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "status",
                  missing ? "incomplete" : "finished", "boards", boards, "spares", spares);
    return rp_json_print(root, JSON_REAL_PRECISION(9), c->env.result);
}

rp_err rp_warm_show(const rp_controller *c) {
    if (!c->env.result) {
        return RP_OK;
    }
    if (c->options.format == RP_FORMAT_JSON) {
        return show_json(c);
    }
    show_text(c);
    return RP_OK;
}
