/* What the controller accepts from boards: every kind of message in every state, versions and
 * features of the wire, a full link, and numbers out of range. */
#include <math.h>

#include "states.h"
#include "wire/trace.h"

/* What a state takes, kind by kind; HELLO, FAULT and COPIED everywhere. */
static bool is_taken(rp_control_state_id state, rp_kind kind) {
    const bool adopts = state == RP_CONTROL_ADOPT; /* boards at work for a host that has died */
    /* or for a segment that the controller has given up */
    const bool late = adopts || state == RP_CONTROL_HELLO;
    const bool trains = state == RP_CONTROL_TRAIN || state == RP_CONTROL_DRAIN || late;
    const bool passes = state == RP_CONTROL_EVALUATE || state == RP_CONTROL_STATISTICS || late;
    switch (kind) {
    case RP_KIND_HELLO:
    case RP_KIND_FAULT:
    case RP_KIND_COPIED:
    case RP_KIND_TRIAL_DONE:
    case RP_KIND_TRIAL_BYTES:
        return true;
    case RP_KIND_PROFILE_DONE:
        return state == RP_CONTROL_PROFILE;
    case RP_KIND_BUILDING:
        return state == RP_CONTROL_PROFILE || state == RP_CONTROL_ASSIGN ||
               state == RP_CONTROL_VERIFY;
    case RP_KIND_RECORD:
    case RP_KIND_RECOMPUTED:
        return state == RP_CONTROL_VERIFY;
    case RP_KIND_READY:
        return state == RP_CONTROL_ASSIGN;
    case RP_KIND_STEP_DONE:
    case RP_KIND_NORMS:
    case RP_KIND_PREDICTION_ERROR:
    case RP_KIND_SKIPPED:
        return trains;
    case RP_KIND_EVALUATE_DONE:
        return state == RP_CONTROL_EVALUATE || late;
    case RP_KIND_HELD:
        return adopts;
    case RP_KIND_TRACE:
    case RP_KIND_WAITING:
    case RP_KIND_FINISHED:
        return trains || passes;
    case RP_KIND_TENSOR:
    case RP_KIND_IN_FLIGHT:
    case RP_KIND_TENSORS_END:
        return state == RP_CONTROL_SAVE || state == RP_CONTROL_RESCUE;
    default:
        return false;
    }
}

static void every_kind_is_taken_or_refused(void **state) {
    (void)state;
    uint32_t taken = 0;
    for (uint32_t kind = 0; kind < 64; kind++) {
        const rp_kind_facts *facts = rp_kind_facts_of((rp_kind)kind);
        for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
            const bool takes = rp_accept_takes((rp_kind)kind, (rp_control_state_id)s);
            assert_int_equal(takes, is_taken((rp_control_state_id)s, (rp_kind)kind));
            assert_true(!takes || facts->name); /* of a kind that there is */
            assert_true(!takes || facts->from != RP_FROM_HOST);
            taken += takes;
        }
    }
    assert_true(taken > 2 * RP_CONTROL_STATES);
}

/* A message of the kind, with parts that the wire takes. */
static void send_kind(test_board *b, rp_kind kind) {
    static const double numbers[3] = {1, 2, 3};
    static const uint64_t counts[1] = {1};
    const rp_kind_facts *facts = rp_kind_facts_of(kind);
    rp_Frame frame = {.which_body = (pb_size_t)kind};
    rp_part part = rp_part_of_bytes(numbers, 8);
    if (facts->parts == RP_PARTS_F64) {
        part = rp_part_of_array(RP_DTYPE_F64, numbers, 3);
    } else if (facts->parts == RP_PARTS_U64) {
        part = rp_part_of_array(RP_DTYPE_U64, counts, 1);
    } else if (facts->parts == RP_PARTS_TENSOR) {
        part = rp_part_of_array(RP_DTYPE_F32, numbers, 2);
    }
    board_send(b, frame, facts->parts_min > 0 ? &part : NULL);
}

static void a_message_at_a_wrong_time_is_refused_with_a_text(void **state) {
    (void)state;
    for (size_t i = 1; i < WAITS; i++) {
        for (uint32_t kind = 1; kind < 48; kind++) {
            const rp_kind_facts *facts = rp_kind_facts_of((rp_kind)kind);
            if (!facts->name || facts->from == RP_FROM_HOST ||
                facts->of_class != RP_CLASS_CONTROL || is_taken(waits[i].state, (rp_kind)kind)) {
                continue;
            }
            reach_row(i);
            send_kind(&ring.board[0], (rp_kind)kind);
            expect_err(ring_end(&ring, 100), RP_ERR_PEER);
            assert_non_null(strstr(ring.fault.text, facts->name));
            assert_non_null(
                strstr(ring.fault.text, "which the controller does not expect in state"));
            ring_close(&ring);
        }
    }
}

/* What would be taken once is refused twice; a second HELLO is an answer to an older greeting. */
static void a_message_that_comes_twice_is_refused(void **state) {
    (void)state;
    static const struct {
        rp_control_state_id state;
        rp_kind kind;
        const char *text;
    } cases[] = {
        {RP_CONTROL_ASSIGN, RP_KIND_READY, "sent READY without being asked"},
        {RP_CONTROL_TRAIN, RP_KIND_FINISHED, "has finished its segment twice"},
        {RP_CONTROL_SAVE, RP_KIND_TENSORS_END, "ended its tensors twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring(NULL);
        ring.mute = cases[i].state == RP_CONTROL_ASSIGN  ? RP_KIND_ASSIGN
                    : cases[i].state == RP_CONTROL_TRAIN ? RP_KIND_START
                                                         : RP_KIND_SAVE;
        assert_true(ring_reach(&ring, cases[i].state));
        ring_step(&ring, RP_NS_PER_MS);
        ring.board[0].run = ring.c->ring.identity;
        send_kind(&ring.board[0], cases[i].kind);
        ring_step(&ring, RP_NS_PER_MS);
        assert_int_equal(ring.c->machine.fault.err, RP_OK);
        send_kind(&ring.board[0], cases[i].kind);
        expect_err(ring_end(&ring, 100), RP_ERR_PEER);
        assert_non_null(strstr(ring.fault.text, cases[i].text));
        ring_close(&ring);
    }
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    send_kind(&ring.board[0], RP_KIND_HELLO);
    expect_ok(ring_end(&ring, 200));
    assert_string_equal(ring.trail, good_run);
    ring_close(&ring);
}

/* What is left of an assignment that is over does no harm. */
static void an_older_term_is_dropped(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    const rp_run_identity now = ring.board[0].run;
    ring.board[0].run.term--;
    send_kind(&ring.board[0], RP_KIND_READY);
    ring.board[0].run = now;
    expect_ok(ring_end(&ring, 200));
    ring_close(&ring);
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.board[0].run.term++;
    send_kind(&ring.board[0], RP_KIND_READY);
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_non_null(strstr(ring.fault.text, "controller has taken over the run"));
    ring_close(&ring);
}

/* A board that was suspended may not know yet that its segment was given up. */
static void late_reports_do_no_harm(void **state) {
    (void)state;
    static const rp_kind kinds[] = {RP_KIND_STEP_DONE, RP_KIND_TRACE, RP_KIND_WAITING,
                                    RP_KIND_FINISHED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        open_ring(NULL);
        assert_true(ring_reach(&ring, RP_CONTROL_HELLO));
        send_kind(&ring.board[0], kinds[i]);
        expect_ok(ring_end(&ring, 200));
        assert_string_equal(ring.trail, good_run);
        ring_close(&ring);
    }
}

/* A board may speak more than we do, and not all else: then both are named, and who is older. */
static void versions_of_the_wire_must_meet(void **state) {
    (void)state;
    char both[200];
    open_ring(NULL);
    ring.board[1].wire = (rp_wire_range){1, RP_WIRE_MAX + 5};
    expect_ok(ring_end(&ring, 200));
    ring_close(&ring);
    open_ring(NULL);
    ring.board[1].wire = (rp_wire_range){RP_WIRE_MAX + 1, RP_WIRE_MAX + 5};
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    (void)snprintf(both, sizeof both,
                   "board 1 (ringpipe 7.0) speaks wire versions %d to %d, this host (ringpipe %s) "
                   "and its other boards %d to %d: update ringpipe on the host",
                   RP_WIRE_MAX + 1, RP_WIRE_MAX + 5, RP_VERSION, RP_WIRE_MIN, RP_WIRE_MAX);
    assert_non_null(strstr(ring.fault.text, both));
    ring_close(&ring);
}

/* A board that was built before plans were sent is refused at HELLO, before it builds anything. */
static void a_board_must_read_plans(void **state) {
    (void)state;
    open_ring(NULL);
    ring.board[1].features = 0;
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    assert_non_null(strstr(ring.fault.text, "board 1 (ringpipe 7.0) does not read a plan"));
    assert_non_null(strstr(ring.fault.text, "update ringpipe on the board"));
    assert_int_equal(ring.board[1].orders[RP_KIND_ASSIGN], 0);
    ring_close(&ring);
}

/* ---- a full link ----------------------------------------------------------------------------- */

/* Behind a full link messages wait, in order and no more than the bound; then they are a fault. */
static void messages_wait_for_room(void **state) {
    (void)state;
    uint32_t sent = 0;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    rp_ring *boards = &ring.c->ring;
    test_board *b = &ring.board[0];
    while (boards->board[0].queue.count < RP_RING_PENDING_MAX) {
        const rp_Frame frame = {.which_body = RP_KIND_STOP, .body.stop = {.step = sent++}};
        expect_ok(rp_ring_post(boards, 0, &frame, NULL));
        assert_true(sent < 1000);
    }
    const rp_Frame more = {.which_body = RP_KIND_STOP, .body.stop = {.step = sent}};
    expect_err(rp_ring_post(boards, 0, &more, NULL), RP_ERR_FAULT);
    rp_Frame offered = more;
    expect_err(rp_ring_offer(boards, 0, &offered, NULL, 0), RP_ERR_AGAIN);
    const int64_t late_ns = rp_clock_now_ns(&ring.clock) + RP_RING_HELLO_NS + 1;
    assert_true(rp_ring_deadline_ns(boards) <= late_ns);
    boards->now_ns = late_ns;
    expect_err(rp_ring_step(boards, 0), RP_ERR_TIMEOUT);
    boards->now_ns = rp_clock_now_ns(&ring.clock);
    assert_string_equal(rp_err_message(), "board 0 accepts no message");
    for (uint32_t got = 0, rounds = 0; got < sent; rounds++) {
        rp_message *message;
        assert_true(rounds < 1000);
        expect_ok(rp_link_step(b->control));
        while (rp_link_recv(b->control, &message) == RP_OK) {
            if (rp_frame_kind(&message->frame) == RP_KIND_STOP) {
                assert_int_equal(message->frame.body.stop.step, got++);
            }
            rp_link_release(b->control, &message);
        }
        expect_ok(rp_ring_step(boards, 0));
        ring.clock.stepped_ns += RP_NS_PER_MS;
    }
    assert_int_equal(boards->board[0].queue.count, 0);
    ring_close(&ring);
}

/* Sums and differences of them must fit, whatever a board sends. */
static void numbers_of_boards_are_bounded(void **state) {
    (void)state;
    static const int64_t no_times[] = {INT64_MIN, INT64_MIN / 3, INT64_MAX / 3, INT64_MAX};
    static const rp_message absurd_ready = {
        .frame = {.which_body = RP_KIND_READY,
                  .body.ready = {.device_bytes = UINT64_MAX,
                                 .weight_bytes = UINT64_MAX,
                                 .resident_bytes = (uint64_t)1 << 63}}};
    static const uint64_t applied[1];
    rp_message absurd_end = {.frame = {.which_body = RP_KIND_FINISHED,
                                       .body.finished = {.busy_ns = INT64_MAX,
                                                         .microbatches = UINT64_MAX,
                                                         .device_bytes_max = UINT64_MAX,
                                                         .in_flight_bytes = UINT64_MAX,
                                                         .link_count = 2,
                                                         .link = {{.peer = UINT32_MAX, .bytes = 5},
                                                                  {.peer = 1,
                                                                   .bytes = UINT64_MAX,
                                                                   .busy_s = (double)NAN}}}},
                             .part = {rp_part_of_array(RP_DTYPE_U64, applied, 1)},
                             .part_count = 1};
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    rp_board_state *board = &ring.c->ring.board[0];
    board->ready = false;
    board->facts_before.busy_ns = 5;
    expect_ok(rp_accept_message(ring.c, 0, &absurd_ready));
    expect_err(rp_accept_message(ring.c, 0, &absurd_end),
               RP_ERR_PEER); /* 0 would mean: none in flight */
    absurd_end.frame.body.finished.in_flight_bytes = 0;
    board->train.finished = false;
    expect_ok(rp_accept_message(ring.c, 0, &absurd_end));
    assert_int_equal(
        board->memory.device_bytes + board->memory.weight_bytes + board->memory.resident_bytes, 0);
    assert_int_equal(board->facts.busy_ns, 5);
    assert_int_equal(board->facts.microbatches + board->facts.device_bytes_max, 0);
    assert_int_equal(board->train.in_flight_bytes + board->facts.link_count, 1);
    assert_int_equal(board->facts.link[0].peer, 1);
    assert_int_equal(board->facts.link[0].bytes, 0);
    assert_true(board->facts.link[0].busy_s == 0);
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        const rp_message greeting = {.frame = {.which_body = RP_KIND_HELLO,
                                               .body.hello = {.clock_ns = no_times[i],
                                                              .wire_min = RP_WIRE_MIN,
                                                              .wire_max = RP_WIRE_MAX,
                                                              .features = RP_WIRE_FEATURES}}};
        const rp_trace_record op = {.start_ns = no_times[i], .end_ns = no_times[i]};
        uint8_t bytes[RP_TRACE_BYTES];
        rp_trace_pack(&op, bytes);
        const rp_message trace = {.frame = {.which_body = RP_KIND_TRACE},
                                  .part = {rp_part_of_bytes(bytes, sizeof bytes)},
                                  .part_count = 1};
        expect_err(rp_accept_message(ring.c, 0, &trace), RP_ERR_PEER);
        board->hello = false;
        board->device = NULL;
        expect_err(rp_accept_message(ring.c, 0, &greeting), RP_ERR_PEER);
    }
    ring_close(&ring);
}

/* Energy adds up over assignments, of which each counts from 0; what cannot be is unknown. */
static void sensors_of_boards(void **state) {
    (void)state;
    rp_message trace = {.frame = {.which_body = RP_KIND_TRACE,
                                  .body.trace = {.heat_c = 61, .power_w = 7.5f, .energy_j = 30}},
                        .part_count = 1};
    rp_message end = {.frame = {.which_body = RP_KIND_FINISHED}};
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    rp_board_state *board = &ring.c->ring.board[0];
    board->facts_before.energy_j = 100;
    expect_ok(rp_accept_message(ring.c, 0, &trace));
    expect_close(board->sensors.heat_c, 61, 0, 0);
    expect_close(board->sensors.power_w, 7.5, 0, 0);
    expect_close(board->facts.energy_j, 130, 0, 0);
    rp_ring_take_facts(&ring.c->ring, 0, &end.frame.body.finished);
    expect_close(board->facts.energy_j, 130, 0, 0);
    end.frame.body.finished.energy_j = 34.5;
    rp_ring_take_facts(&ring.c->ring, 0, &end.frame.body.finished);
    expect_close(board->facts.energy_j, 134.5, 0, 0);
    end.frame.body.finished.energy_j = NAN;
    rp_ring_take_facts(&ring.c->ring, 0, &end.frame.body.finished);
    expect_close(board->facts.energy_j, 134.5, 0, 0);
    trace.frame.body.trace = (rp_Trace){.heat_c = NAN, .power_w = -1, .energy_j = INFINITY};
    expect_ok(rp_accept_message(ring.c, 0, &trace));
    assert_true(board->sensors.heat_c == 0 && board->sensors.power_w == 0);
    expect_close(board->facts.energy_j, 100, 0, 0);
    ring_close(&ring);
}

static void tell_energy(uint32_t board, double joules, const char *machine) {
    rp_board_state *of = &ring.c->ring.board[board];
    of->facts.energy_j = joules;
    (void)snprintf(of->hardware.machine, sizeof of->hardware.machine, "%s", machine);
}

/* A machine counts once, whichever of its boards report energy. */
static void energy_of_machines(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    const rp_ring *boards = &ring.c->ring;
    tell_energy(0, 5, "a");
    tell_energy(1, 7, "b");
    assert_int_equal(rp_ring_energy_board(boards, 0), 0);
    assert_int_equal(rp_ring_energy_board(boards, 1), 1);
    tell_energy(1, 6, "a");
    assert_int_equal(rp_ring_energy_board(boards, 0), 0);
    assert_int_equal(rp_ring_energy_board(boards, 1), 0);
    tell_energy(0, 0, "a"); /* it reports none, so the other board has the machine's */
    assert_int_equal(rp_ring_energy_board(boards, 1), 1);
    tell_energy(0, 5, "");
    tell_energy(1, 5, ""); /* unknown machines are different ones */
    assert_int_equal(rp_ring_energy_board(boards, 1), 1);
    ring_close(&ring);
}

/* Every state but the last can be left, is waited in for a bounded time, and has a name. */
static void the_table_is_complete(void **state) {
    (void)state;
    for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
        const rp_control_state *row = &rp_control_states[s];
        assert_non_null(row->name);
        assert_non_null(row->waits_for);
        assert_true(row->enter && row->step);
        assert_true(s == RP_CONTROL_ENDED || row->next != 0);
        assert_true((row->next & UINT32_C(1) << RP_CONTROL_START) == 0);
        assert_true(row->timeout_ns > 0 || s >= RP_CONTROL_RECOVER);
        assert_true(row->timeout_ns == 0 || row->done != RP_DONE_NONE ||
                    row->late != RP_LATE_BOARD);
        /* behind a fault: see test_recover.c, test_adopt.c; of lanes: cli/test_lanes.py */
        bool reached = s >= RP_CONTROL_RESTART || s == RP_CONTROL_ADOPT || s == RP_CONTROL_ROUND;
        for (size_t i = 0; i < WAITS; i++) {
            reached |= waits[i].state == s;
        }
        assert_true(reached);
    }
}

/* A state's paragraph in PROTOCOL.md, from the table. */
static void describe_state(rp_control_state_id s, char *out, size_t bytes) {
    const rp_control_state *row = &rp_control_states[s];
    char then[200] = "";
    char takes[300] = "";
    for (uint32_t n = 0; n < RP_CONTROL_STATES; n++) {
        if (row->next & UINT32_C(1) << n) {
            const size_t used = strlen(then);
            (void)snprintf(then + used, sizeof then - used, " %s", rp_control_states[n].name);
        }
    }
    for (uint32_t kind = 1; kind < 64 && s < RP_CONTROL_RECOVER; kind++) {
        const bool everywhere = kind == RP_KIND_HELLO || kind == RP_KIND_FAULT ||
                                kind == RP_KIND_COPIED || kind == RP_KIND_TRIAL_DONE ||
                                kind == RP_KIND_TRIAL_BYTES;
        if (!everywhere && rp_accept_takes((rp_kind)kind, s)) {
            const size_t used = strlen(takes);
            (void)snprintf(takes + used, sizeof takes - used, " %s", rp_kind_name((rp_kind)kind));
        }
    }
    int used = snprintf(out, bytes, "    %-10s ->%s\n", row->name, then[0] ? then : " nowhere");
    if (row->timeout_ns > 0) {
        used += snprintf(out + used, bytes - (size_t)used, "               waits for %s, %d s\n",
                         row->waits_for, (int)(row->timeout_ns / RP_NS_PER_S));
    }
    if (takes[0]) {
        (void)snprintf(out + used, bytes - (size_t)used, "               takes%s\n", takes);
    }
}

/* Print what should stand there, so that it can be put there. */
static void the_protocol_page_has_the_table(void **state) {
    (void)state;
    static char text[1 << 17];
    char all[8192] = "";
    char path[600];
    const char *top = getenv("RP_SOURCE_DIR");
    assert_non_null(top);
    (void)snprintf(path, sizeof path, "%s/firmware/wire/PROTOCOL.md", top);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fgetc(file), EOF); /* all of it */
    (void)fclose(file);
    for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
        const size_t used = strlen(all);
        describe_state((rp_control_state_id)s, all + used, sizeof all - used);
    }
    const char *begin = strstr(text, "<!-- controller states: begin -->");
    const char *end = strstr(text, "<!-- controller states: end -->");
    const char *found = strstr(text, all);
    if (!begin || !end || !found || found < begin || found > end) {
        (void)fprintf(stderr, "PROTOCOL.md needs, between the marks:\n%s", all);
        fail();
    }
}

static void a_text_that_no_message_takes_is_refused(void **state) {
    (void)state;
    enum { MOST = 4 << 20 };
    char *text = malloc(MOST + 2);
    assert_non_null(text);
    memset(text, 'a', MOST + 1);
    text[MOST + 1] = '\0';
    expect_err(rp_ring_check_text("the plan", text), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "the text of the plan has 4194305 bytes, a message to "
                                             "a board takes at most 4194304"));
    text[MOST] = '\0';
    expect_ok(rp_ring_check_text("the plan", text));
    free(text);
}

/* A ring of `far`, which dials this host, and `near`. */
static void set_roster_that_dials(void) {
    static const char roster[] =
        "boards:\n"
        "  - {name: far, address: dials, key: '0123456789012345678901234567890123456789'}\n"
        "  - {name: near, address: 'tcp://near:7', key: '0123456789012345678901234567890123456780'}"
        "\n";
    static char set[600]; /* the ring keeps it */
    write_text("lab.yaml", roster);
    (void)snprintf(set, sizeof set, "ring={roster: '%s', listen: 'tcp://127.0.0.1:7100'}",
                   in_folder("lab.yaml"));
    ring_set(&ring, set);
}

static void a_board_that_does_not_dial_is_named(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    set_roster_that_dials();
    ring_open(&ring);
    expect_err(ring_end(&ring, 100), RP_ERR_TIMEOUT);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    assert_string_equal(ring.fault.text,
                        "board far did not dial in within 30 s; on the board: `ringpipe-agent "
                        "--host ADDRESS:7100`, and are the ports 7100 and the next one of this "
                        "machine reachable from there?");
    ring_close(&ring);
}

/* A board whose software does not know the word in a plan would dial who can not be dialled. */
static void a_board_must_know_of_dialling(void **state) {
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        ring_prepare(&ring, "out");
        rp_link_options options = {.name = "control",
                                   .connect = "tcp://127.0.0.1:7100",
                                   .window = 1,
                                   .send_window = 1,
                                   .part_bytes_max = 1 << 20};
        rp_link_close(&ring.board[0].control);
        expect_ok(rp_link_open(ring.process.links, &options, &ring.board[0].control));
        options.connect = NULL;
        options.bind = "tcp://near:7";
        rp_link_close(&ring.board[1].control);
        expect_ok(rp_link_open(ring.process.links, &options, &ring.board[1].control));
        ring.board[1].features = RP_WIRE_FEATURES & ~(knows ? 0 : RP_WIRE_FEATURE_DIALS);
        set_roster_that_dials();
        ring_open(&ring);
        assert_true(ring_reach(&ring, knows ? RP_CONTROL_ASSIGN : RP_CONTROL_CLOSE));
        if (!knows) {
            assert_non_null(
                strstr(ring.fault.text, "does not support boards that dial, such as far"));
        }
        ring_close(&ring);
    }
}

/* A board whose software has no codecs would read other bytes than were sent. */
static void a_board_must_know_of_codecs(void **state) {
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        ring_prepare(&ring, "out");
        ring.board[1].features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_CODECS;
        if (asked) {
            ring_set(&ring, "links.codec=bf16");
        }
        ring_open(&ring);
        assert_true(ring_reach(&ring, asked ? RP_CONTROL_CLOSE : RP_CONTROL_ASSIGN));
        if (asked) {
            assert_non_null(
                strstr(ring.fault.text, "does not support codecs, which links asks for"));
        }
        ring_close(&ring);
    }
}

/* One that does not normalise gets f32, unless bytes are asked for. */
static void older_boards_get_floats(void **state) {
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        ring_prepare(&ring, "out");
        ring.board[1].features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_UINT8;
        if (asked) {
            ring_set(&ring, "links.inputs=uint8");
        }
        ring_open(&ring);
        assert_true(ring_reach(&ring, asked ? RP_CONTROL_CLOSE : RP_CONTROL_ASSIGN));
        if (asked) {
            assert_non_null(strstr(ring.fault.text, "does not support codec uint8"));
        } else {
            assert_int_equal(rp_plan_input_codec(rp_arrangement_plan(ring.c->setup)), RP_CODEC_F32);
        }
        ring_close(&ring);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_board_that_does_not_dial_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_must_know_of_dialling, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_must_know_of_codecs, setup, teardown),
        cmocka_unit_test_setup_teardown(older_boards_get_floats, setup, teardown),
        cmocka_unit_test(a_text_that_no_message_takes_is_refused),
        cmocka_unit_test(every_kind_is_taken_or_refused),
        cmocka_unit_test_setup_teardown(a_message_at_a_wrong_time_is_refused_with_a_text, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_message_that_comes_twice_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_term_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(late_reports_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_of_the_wire_must_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_must_read_plans, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_wait_for_room, setup, teardown),
        cmocka_unit_test_setup_teardown(sensors_of_boards, setup, teardown),
        cmocka_unit_test_setup_teardown(energy_of_machines, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_of_boards_are_bounded, setup, teardown),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(the_protocol_page_has_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
