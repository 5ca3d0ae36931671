/* Bytes as a history of faults: boards are lost and come back, errors of every kind end every
 * state, checkpoints are written. What is decided keeps its promises: a run stops only where it
 * must, goes on only with enough boards, and without a new checkpoint it ends in the end. */
#include "fuzz.h"

#include "control/fault_remedy.h"
#include "run/spares.h"

enum {
    BOARDS = 8,
    SPARES = 4,
    ENTRIES = BOARDS + SPARES,
    ADVANCE = 4,
    IN_A_ROW = 8,
    ON_THE_WAY = 4
};

typedef struct {
    const uint8_t *bytes;
    size_t count;
    rp_roster_entry roster[ENTRIES]; /* name: a letter, by which `lost` knows it */
    bool lost[ENTRIES];
    uint32_t boards, spares, tried, advance;
    rp_remedy_facts known; /* but for the fault, and what is counted here */
    bool greets;           /* the boards are greeted: only then one is absent */
    uint32_t remedies;     /* since the last checkpoint */
} history;

static uint32_t next(history *h, uint32_t below) {
    if (h->count == 0) {
        return 0;
    }
    h->count--;
    return *h->bytes++ % below;
}

static bool is_lost(const history *h, uint32_t place) {
    return h->lost[h->roster[place].name[0] - 'a'];
}

static uint32_t count_absent(const history *h) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < h->boards; k++) {
        count += is_lost(h, k);
    }
    return count;
}

static uint32_t count_untried(const history *h) {
    return rp_spares_untried(h->roster, h->boards, h->spares, h->tried);
}

static void begin(history *h) {
    static const char letters[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l";
    h->boards = 1 + next(h, BOARDS);
    h->spares = next(h, SPARES + 1);
    h->advance = next(h, ADVANCE + 1);
    const uint32_t is = next(h, 256);
    h->known = (rp_remedy_facts){.at_least = 1 + next(h, h->boards),
                                 .trains = (is & 1) == 0,
                                 .waits = (is & 2) == 0,
                                 .may_shrink = (is & 4) == 0,
                                 .places_stay = (is & 8) != 0,
                                 .had_boards = (is & 16) != 0, /* resumed */
                                 .has_boards = true};
    for (uint32_t i = 0; i < h->boards + h->spares; i++) {
        const bool dials = i < h->boards && next(h, 4) == 3;
        h->roster[i] = (rp_roster_entry){.name = &letters[2 * i], .dials = dials};
    }
    h->greets = true;
}

/* ---- what is done ---------------------------------------------------------------------------- */

static void check_roster(const history *h) {
    bool seen[ENTRIES] = {false};
    for (uint32_t i = 0; i < h->boards + h->spares; i++) {
        const uint32_t own = (uint32_t)(h->roster[i].name[0] - 'a');
        RP_ASSERT(own < ENTRIES && !seen[own]);
        seen[own] = true;
    }
}

/* came: by place, spares that have just taken one, and are to have their time. */
static void take_spares(history *h, bool came[BOARDS]) {
    for (uint32_t k = 0; k < h->boards && count_untried(h) > 0; k++) {
        if (is_lost(h, k)) {
            RP_ASSERT(rp_spares_take(h->roster, h->boards, h->spares, k));
            h->tried++;
            came[k] = true;
        }
    }
    h->greets = true;
}

static void leave(history *h, const rp_remedy_facts *f) {
    bool came[BOARDS] = {false};
    RP_ASSERT(f->had_boards && f->may_shrink && !f->places_stay && f->absent > 0);
    take_spares(h, came);
    for (uint32_t k = h->boards; k-- > 0;) {
        if (is_lost(h, k) && !came[k]) {
            rp_spares_leave(h->roster, &h->boards, &h->spares, k);
            h->tried++;
        }
    }
    RP_ASSERT(h->boards > 0 && h->boards >= f->at_least);
}

static void go_back(history *h, const rp_remedy_facts *f) {
    RP_ASSERT(!f->had_time || !rp_remedy_lacks_port(f->err, f->failed, f->of_board));
    RP_ASSERT(f->trains && f->fault_class != RP_FAULT_USER && f->fault_class != RP_FAULT_SECURITY);
    RP_ASSERT(f->in_a_row < IN_A_ROW && f->on_the_way < ON_THE_WAY * h->boards);
    h->known.on_the_way++;
    h->greets = true;
}

/* "Is enough of the ring left?" If it is, a run in which boards were lost does not stop. */
static void check_stop(const history *h, const rp_remedy_facts *f) {
    const bool is_away = f->err == RP_ERR_TIMEOUT || (f->err == RP_ERR_REFUSED && f->had_boards);
    const bool has_no_port = f->had_time && rp_remedy_lacks_port(f->err, f->failed, f->of_board);
    const bool is_absence = ((f->failed == RP_CONTROL_HELLO && is_away) || has_no_port) &&
                            f->waits && !f->interrupted && !f->places_stay && f->absent > 0;
    const uint32_t left = f->boards - f->absent + f->spares;
    RP_ASSERT(!is_absence || f->absent > f->spares);
    RP_ASSERT(!is_absence || !f->had_boards || !f->may_shrink || left < f->at_least || left == 0);
    const bool is_loss = f->failed == RP_CONTROL_TRAIN && f->err == RP_ERR_FAULT &&
                         f->fault_class == RP_FAULT_BOARD && f->trains && f->waits &&
                         !f->interrupted;
    RP_ASSERT(!is_loss || f->in_a_row >= IN_A_ROW || f->on_the_way >= ON_THE_WAY * h->boards);
}

/* All have come; one of them gets no port. */
static void lack_port(history *h) {
    for (uint32_t k = 0; k < h->boards; k++) {
        h->lost[h->roster[k].name[0] - 'a'] = false;
    }
    h->lost[h->roster[next(h, h->boards)].name[0] - 'a'] = true;
    h->greets = true;
}

/* False: the run is over. */
static bool meet(history *h, rp_err err, rp_control_state_id failed, bool of_board) {
    rp_remedy_facts facts = h->known;
    facts.err = err;
    facts.fault_class = rp_fault_classify(err, of_board, facts.begun);
    facts.failed = failed;
    facts.of_board = of_board;
    facts.had_time = next(h, 4) == 3;
    if (facts.had_time && rp_remedy_lacks_port(err, failed, of_board)) {
        lack_port(h);
    }
    facts.can_lessen = h->advance > 0;
    facts.boards = h->boards;
    facts.spares = count_untried(h);
    facts.absent = h->greets ? count_absent(h) : 0;
    const rp_remedy remedy = rp_remedy_choose(&facts);
    /* a roster that is wrong from the beginning is told */
    RP_ASSERT(err != RP_ERR_REFUSED || facts.had_boards || remedy == RP_REMEDY_STOP);
    RP_ASSERT(!facts.interrupted || remedy == RP_REMEDY_STOP || remedy == RP_REMEDY_LESS);
    switch (remedy) {
    case RP_REMEDY_LESS:
        RP_ASSERT(failed == RP_CONTROL_ASSIGN && h->advance > 0);
        h->advance--;
        h->greets = true;
        break;
    case RP_REMEDY_SPARES:
        RP_ASSERT(facts.absent > 0 && facts.absent <= facts.spares);
        RP_ASSERT(!facts.places_stay);
        take_spares(h, (bool[BOARDS]){false});
        break;
    case RP_REMEDY_FEWER:
        leave(h, &facts);
        break;
    case RP_REMEDY_BACK:
        go_back(h, &facts);
        break;
    default:
        check_stop(h, &facts);
        return false;
    }
    check_roster(h);
    /* each way back may try every board once, and lose it */
    RP_ASSERT(++h->remedies <=
              (IN_A_ROW + 1) * (ON_THE_WAY * BOARDS + 1) * (2 * ENTRIES + 1) + ADVANCE);
    return true;
}

/* ---- what happens ---------------------------------------------------------------------------- */

static bool happen(history *h) {
    const uint32_t entry = next(h, h->boards + h->spares);
    switch (next(h, 8)) {
    case 0:
    case 1:
        h->lost[entry] = true;
        return true;
    case 2:
        h->lost[entry] = false;
        return true;
    case 3: /* all have come, and are loaded */
        if (count_absent(h) == 0) {
            h->greets = false;
            h->known.begun = h->known.had_boards = true;
            h->known.in_a_row += h->known.on_the_way > 0;
            h->known.on_the_way = h->tried = 0;
        }
        return true;
    case 4:
        if (!h->greets) {
            h->known.in_a_row = h->remedies = 0;
        }
        return true;
    case 5: {
        const rp_err err = (rp_err)(RP_OK + 1 + next(h, RP_ERR_COUNT - 1));
        const bool of_board = next(h, 2) == 1;
        return meet(h, err, (rp_control_state_id)next(h, RP_CONTROL_RECOVER), of_board);
    }
    case 6:
        h->known.interrupted |= next(h, 16) == 1;
        return true;
    default: /* who is lost is missed: at work at once, or when it has had its time to come */
        if (count_absent(h) == 0) {
            return true;
        }
        return h->greets ? meet(h, next(h, 4) == 3 ? RP_ERR_REFUSED : RP_ERR_TIMEOUT,
                                RP_CONTROL_HELLO, false)
                         : meet(h, RP_ERR_FAULT, RP_CONTROL_TRAIN, true);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    history h = {.bytes = bytes, .count = count};
    begin(&h);
    while (h.count > 0 && happen(&h)) {
    }
    return 0;
}
