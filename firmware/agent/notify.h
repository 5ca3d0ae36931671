/* Reports the program's status to a service manager, by systemd's datagrams to $NOTIFY_SOCKET,
 * without its library. Without that variable every call does nothing.
 *
 * source  sd_notify(3), sd_watchdog_enabled(3): the protocol is stable */
#ifndef RP_AGENT_NOTIFY_H
#define RP_AGENT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    int fd;           /* 0: no manager is notified */
    int64_t every_ns; /* interval of watchdog messages, half of the manager's timeout; 0: none */
    int64_t told_ns;  /* time of the last message */
} rp_notify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
 * errors  USAGE: an invalid value; IO: the socket cannot be opened */
rp_err rp_notify_open(rp_notify *notify) RP_MUST_CHECK;
void rp_notify_close(rp_notify *notify);

/* The program is ready; `status` is one line for `systemctl status`. */
void rp_notify_ready(rp_notify *notify, const char *status);
/* Before it is ready: announces an operation that may exceed the usual start time; the manager
 * waits at least `wait_s` from now on. `status` as above. */
void rp_notify_starting(rp_notify *notify, const char *status, uint32_t wait_s);
/* Sends a watchdog message when one is due. Call it only from the loop whose progress it proves,
 * and not while the device hangs. */
void rp_notify_alive(rp_notify *notify, int64_t now_ns);
/* The program ends because it was told to. */
void rp_notify_stopping(rp_notify *notify);

#endif
