/* Telling a service manager how the program is: systemd's datagrams to $NOTIFY_SOCKET, without its
 * library. Without that variable every call does nothing.
 *
 * source  sd_notify(3), sd_watchdog_enabled(3): the protocol is stable */
#ifndef RP_AGENT_NOTIFY_H
#define RP_AGENT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    int fd;           /* 0: nobody is told */
    int64_t every_ns; /* between two signs of life: half of what the manager waits; 0: none */
    int64_t told_ns;  /* the last one */
} rp_notify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
 * errors  USAGE: a value that is no such thing; IO: the socket can not be opened */
rp_err rp_notify_open(rp_notify *notify) RP_MUST_CHECK;
void rp_notify_close(rp_notify *notify);

/* The program serves; `status` is one line for `systemctl status`. */
void rp_notify_ready(rp_notify *notify, const char *status);
/* Before it is ready, something that may take longer than a start does: the manager waits `wait_s`
 * from now on at least. `status` as above. */
void rp_notify_starting(rp_notify *notify, const char *status, uint32_t wait_s);
/* A sign of life when one is due: to be called by the loop that has to go round, and by nothing
 * else; not while the device hangs. */
void rp_notify_alive(rp_notify *notify, int64_t now_ns);
/* It ends because it was told to. */
void rp_notify_stopping(rp_notify *notify);

#endif
