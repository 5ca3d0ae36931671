/* boards list: a roster's boards, by group and one by one, and with --ask which of them are there.
 */
#ifndef RP_CLI_BOARDS_LIST_H
#define RP_CLI_BOARDS_LIST_H

#include "cli/cli.h"

rp_err rp_cli_list_boards(const rp_cli_args *args) RP_MUST_CHECK;

#endif
