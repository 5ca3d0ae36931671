/* Pushes to a board that the test plays, in the rounds of the push itself: an agent may be replaced
 * by another process at any time, which has heard nothing of what was said before. */
#include "expect.h"

#include <stdio.h>
#include <unistd.h>

#include "push/push.h"

enum { BUNDLE_BYTES = 3 * RP_PUSH_PIECE_MAX + 100 };

typedef struct {
    rp_arena arena;
    rp_clock clock;
    rp_keypair keys, host_keys;
    rp_links *links;
    rp_link *link;
    char endpoint[128];
    uint32_t lives;
    uint32_t greetings; /* in this life */
    uint32_t questions;
    uint64_t got;      /* bytes of a bundle that it keeps */
    uint64_t dies_at;  /* the first life ends when it has so many bytes */
    bool dies_greeted; /* the first life ends after its greeting, before it is asked */
    bool dies_unheard; /* the first life ends after it has got a greeting, before it answers */
} board_end;

static board_end board;

static void begin_life(void) {
    const char *const trusted[] = {board.host_keys.public_text};
    const rp_link_options options = {.name = "control",
                                     .bind = board.endpoint,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_LINK_CONTROL_PART_MAX};
    rp_link_close(&board.link);
    expect_ok(rp_link_open(board.links, &options, &board.link));
    expect_ok(rp_link_allow_only(board.link, trusted, 1));
    (void)snprintf(board.endpoint, sizeof board.endpoint, "%s", rp_link_endpoint(board.link));
    board.lives++;
    board.greetings = 0;
}

static void answer(rp_Frame frame) {
    expect_ok(rp_link_send(board.link, &frame, NULL, 0, true, NULL, NULL));
}

static void say_pushed(rp_push_outcome outcome) {
    answer((rp_Frame){
        .which_body = RP_KIND_PUSHED,
        .body.pushed = {.outcome = (uint32_t)outcome, .bytes = board.got, .release = 7}});
}

/* True: this life is over. */
static bool take(const rp_message *message) {
    const rp_Frame *frame = &message->frame;
    switch (rp_frame_kind(frame)) {
    case RP_KIND_HELLO:
        board.greetings++;
        if (board.lives == 1 && board.dies_unheard) {
            return true;
        }
        answer((rp_Frame){.which_body = RP_KIND_HELLO,
                          .body.hello = {.wire_min = RP_WIRE_MIN,
                                         .wire_max = RP_WIRE_MAX,
                                         .features = RP_WIRE_FEATURES}});
        return false;
    case RP_KIND_PUSH:
        board.questions++;
        if (board.lives == 1 && board.dies_greeted) {
            return true;
        }
        assert_int_equal(board.greetings, 1); /* a process is asked behind its greeting */
        say_pushed(frame->body.push.action == RP_PUSH_BUNDLE ? RP_PUSHED_GOES_ON : RP_PUSHED_STATE);
        return false;
    case RP_KIND_PUSH_PIECE:
        if (frame->body.push_piece.first == board.got) {
            board.got += message->part[0].bytes;
        }
        if (board.got == BUNDLE_BYTES) {
            say_pushed(RP_PUSHED_INSTALLED);
        }
        return board.lives == 1 && board.dies_at > 0 && board.got >= board.dies_at;
    default:
        return false;
    }
}

/* Called in each round of the push. */
static bool step_board(void *context) {
    rp_message *message;
    bool dies = false;
    (void)context;
    expect_ok(rp_link_step(board.link));
    while (!dies && rp_link_recv(board.link, &message) == RP_OK) {
        dies = take(message);
        rp_link_release(board.link, &message);
    }
    if (dies) {
        begin_life();
    }
    return false;
}

static void note_progress(void *context, const rp_push_progress *progress) {
    (void)context;
    (void)progress;
}

static void open_board(void) {
    board = (board_end){.clock = rp_clock_real(), .endpoint = "tcp://127.0.0.1:0"};
    rp_arena_init(&board.arena, "board", 0);
    expect_ok(rp_keys_make(&board.keys));
    expect_ok(rp_keys_make(&board.host_keys));
    const rp_links_options links = {.clock = &board.clock, .keys = &board.keys};
    expect_ok(rp_links_open(&board.arena, &links, &board.links));
    begin_life();
}

static rp_err push(rp_push_action action, const char *bundle, rp_Pushed *said) {
    rp_roster_entry entry = {.name = "b"};
    entry.endpoint = board.endpoint;
    entry.public_text = board.keys.public_text;
    const rp_push_options options = {.board = &entry,
                                     .keys = &board.host_keys,
                                     .clock = &board.clock,
                                     .action = action,
                                     .bundle = bundle,
                                     .stopped = step_board,
                                     .progress = note_progress};
    return rp_push_to(&options, said);
}

static void close_board(void) {
    rp_link_close(&board.link);
    rp_links_close(&board.links);
    rp_arena_finish(&board.arena);
}

/* As one that has taken other software: the process that greets is not the one that is asked. */
static void the_process_that_is_there_is_asked(void **state) {
    rp_Pushed said;
    (void)state;
    open_board();
    board.dies_greeted = true;
    const int64_t since_ns = rp_clock_now_ns(&board.clock);
    expect_ok(push(RP_PUSH_STATE, NULL, &said));
    assert_int_equal(said.release, 7);
    assert_int_equal(board.lives, 2);
    assert_int_equal(board.questions, 2);
    assert_true(rp_clock_now_ns(&board.clock) - since_ns < 20 * RP_NS_PER_S);
    close_board();
}

/* A process that was replaced while it was greeted has been asked nothing, so that the next one is
 * asked once. */
static void a_process_that_only_greeted_is_not_asked_again(void **state) {
    rp_Pushed said;
    (void)state;
    open_board();
    board.dies_unheard = true;
    expect_ok(push(RP_PUSH_STATE, NULL, &said));
    assert_int_equal(said.release, 7);
    assert_int_equal(board.lives, 2);
    assert_int_equal(board.questions, 1);
    close_board();
}

/* The next process is told of the bundle again, and gets what is missing. */
static void a_bundle_goes_on_with_the_next_process(void **state) {
    static const uint8_t bytes[BUNDLE_BYTES] = {1};
    char path[] = "/tmp/ringpipe-test-push-XXXXXX";
    rp_Pushed said;
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    assert_int_equal(close(fd), 0);
    open_board();
    board.dies_at = RP_PUSH_PIECE_MAX;
    expect_ok(push(RP_PUSH_BUNDLE, path, &said));
    assert_int_equal(said.outcome, RP_PUSHED_INSTALLED);
    assert_int_equal(board.got, BUNDLE_BYTES);
    assert_int_equal(board.lives, 2);
    close_board();
    (void)unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_that_is_there_is_asked),
        cmocka_unit_test(a_process_that_only_greeted_is_not_asked_again),
        cmocka_unit_test(a_bundle_goes_on_with_the_next_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
