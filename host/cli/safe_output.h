/* Standard output of the program: names from files and boards can not steer the terminal. */
#ifndef RP_CLI_SAFE_OUTPUT_H
#define RP_CLI_SAFE_OUTPUT_H

/* From here on what is printed to stdout has its control characters and invalid UTF-8 escaped
 * (base/quote.h), whatever it is printed from. Without memory for it stdout stays as it is. */
void rp_cli_open_safe_output(void);

#endif
