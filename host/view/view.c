#include "view/view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "view/server.h"
#include "view/terminal.h"
#include "view/text_file.h"

static const int64_t FILE_NS = 10 * RP_NS_PER_S;
static const int NICE = 10; /* what is watched has precedence */

/* Waits until `until_ns`, or `fd` is readable (-1: none). true: the program is to end. */
static bool wait_for(const rp_clock *clock, int stop_fd, int fd, int64_t until_ns) {
    struct pollfd list[] = {{.fd = stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    const int64_t left_ns = until_ns - rp_clock_now_ns(clock);
    const int64_t ms = left_ns > 0 ? left_ns / RP_NS_PER_MS + 1 : 0;
    const int count = poll(list, 2, ms < 60000 ? (int)ms : 60000);
    return count > 0 && (list[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

/* ---- on a terminal --------------------------------------------------------------------------- */

/* Prints all runs. *active: one of them is active. errors MEMORY */
static rp_err print_runs(rp_view_feeds *feeds, int64_t now_ns, bool clears, bool *active) {
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "text", 0);
    rp_view_text text = {.arena = &arena};
    *active = false;
    rp_view_feeds_search(feeds, now_ns);
    rp_view_add(&text, "%s", clears ? "\033[H\033[J" : "");
    for (uint32_t i = 0; i < feeds->count; i++) {
        rp_view_feed *feed = feeds->feed[i];
        rp_view_feed_update(feed, now_ns);
        if (feed->known) {
            rp_view_add(&text, "%s", i > 0 ? "\n" : "");
            rp_view_terminal(&feed->facts, &text);
            *active = *active || feed->facts.state.owner.life == RP_OWNER_ALIVE;
        }
    }
    if (feeds->count == 0) {
        rp_view_add(&text, "this account has no active run on this machine\n");
    }
    RP_TRY(text.err);
    /* Past stdout, which escapes the code that clears the screen; all names are printable here. */
    if (write(STDOUT_FILENO, text.data, text.used) != (ssize_t)text.used) {
        err = rp_fail(RP_ERR_IO, "standard output: %s", strerror(errno));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err show_text(rp_view_feeds *feeds, const rp_clock *clock, int stop_fd) {
    const bool is_terminal = isatty(STDOUT_FILENO);
    bool active = false;
    rp_err err;
    do {
        const int64_t now_ns = rp_clock_now_ns(clock);
        RP_TRY(print_runs(feeds, now_ns, is_terminal, &active));
        if (!is_terminal || !active || wait_for(clock, stop_fd, -1, now_ns + RP_NS_PER_S)) {
            break;
        }
    } while (true);
fail:
    return err;
}

/* ---- served ---------------------------------------------------------------------------------- */

/* A file that cannot be written later, for a full disk, is tried again at the next turn. */
static rp_err serve(rp_view_server *server, rp_view_feeds *feeds, const rp_view_options *options,
                    const rp_clock *clock) {
    bool failed = false;
    int64_t file_ns = 0;
    rp_err err = RP_OK;
    if (options->text_folder) {
        RP_TRY(rp_view_text_file_write(feeds, options->text_folder, rp_clock_now_ns(clock)));
        file_ns = rp_clock_now_ns(clock);
    }
    for (;;) {
        const int64_t now_ns = rp_clock_now_ns(clock);
        int64_t until_ns = rp_view_server_step(server, now_ns);
        if (options->text_folder && now_ns - file_ns >= FILE_NS) {
            const bool held = rp_err_hold(true); /* it is reported below, once */
            const bool wrote =
                rp_view_text_file_write(feeds, options->text_folder, now_ns) == RP_OK;
            (void)rp_err_hold(held);
            if (!wrote && !failed) {
                rp_log_warn("view: %s; it is tried again", rp_err_message());
            }
            failed = !wrote;
            file_ns = now_ns;
        }
        until_ns =
            options->text_folder && file_ns + FILE_NS < until_ns ? file_ns + FILE_NS : until_ns;
        if (wait_for(clock, options->stop_fd, rp_view_server_fd(server), until_ns)) {
            break;
        }
    }
fail:
    return err;
}

static rp_err open_and_serve(rp_arena *arena, rp_view_feeds *feeds, const rp_view_options *options,
                             const rp_clock *clock) {
    static char token[RP_VIEW_TOKEN_MAX + 1];
    rp_view_listen listen;
    rp_view_server *server = NULL;
    rp_err err;
    RP_TRY(rp_view_listen_parse(options->listen, &listen));
    RP_TRY(options->token_file ? rp_view_token_read(options->token_file, token) : RP_OK);
    if (!listen.is_loopback && !options->token_file) {
        return rp_fail(RP_ERR_USAGE,
                       "--listen %s: other machines can reach this address, so --token-file is "
                       "needed",
                       options->listen);
    }
    const rp_view_server_needs needs = {.listen = &listen,
                                        .listen_text = options->listen,
                                        .token = options->token_file ? token : NULL,
                                        .feeds = feeds};
    RP_TRY(rp_view_server_open(arena, &needs, &server));
    (void)printf("%s%s\n", rp_view_server_url(server), options->token_file ? "?token=..." : "");
    (void)fflush(stdout);
    err = serve(server, feeds, options, clock);
fail:
    rp_view_server_close(server);
    return err;
}

rp_err rp_view_show(rp_arena *arena, const rp_view_options *options) {
    const rp_clock clock = rp_clock_real();
    rp_view_feeds *feeds = NULL;
    rp_err err;
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    RP_TRY(rp_view_feeds_open(arena, options->dir, options->dir_count, &feeds));
    err = options->text ? show_text(feeds, &clock, options->stop_fd)
                        : open_and_serve(arena, feeds, options, &clock);
fail:
    rp_view_feeds_close(feeds);
    return err;
}
