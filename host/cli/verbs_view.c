#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "view/view.h"

rp_err rp_verb_view(rp_arena *arena, const rp_cli_args *args) {
    rp_view_options options = {.dir = args->words.item,
                               .dir_count = args->words.count,
                               .listen = args->view.listen,
                               .token_file = args->view.token_file,
                               .text_folder = args->view.text_folder,
                               .text = args->view.text,
                               .stop_fd = -1};
    rp_err err;
    if (options.text && (options.token_file || options.text_folder)) {
        return rp_fail(RP_ERR_USAGE, "view: --text serves nothing, so it takes no --%s",
                       options.token_file ? "token-file" : "text-file");
    }
    RP_TRY(rp_cli_open_signals(&options.stop_fd));
    err = rp_view_show(arena, &options);
    (void)close(options.stop_fd);
fail:
    return err;
}
