/* Makes standard output safe: names from files and boards cannot send control sequences to the
 * terminal. */
#ifndef RP_CLI_SAFE_OUTPUT_H
#define RP_CLI_SAFE_OUTPUT_H

/* From this call on, control characters and invalid UTF-8 in output to stdout are escaped
 * (base/printable.h). If memory is short, stdout is not changed. */
void rp_cli_open_safe_output(void);

#endif
