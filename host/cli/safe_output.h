/* Makes standard output safe: names from files and boards cannot send control sequences to the
 * terminal. */
#ifndef RP_CLI_SAFE_OUTPUT_H
#define RP_CLI_SAFE_OUTPUT_H

/* From this call on, control characters and invalid UTF-8 in all output to stdout are escaped
 * (base/printable.h). Without memory for that, stdout stays as it is. */
void rp_cli_open_safe_output(void);

#endif
