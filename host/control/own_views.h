/* What of the controller files get that do not know it as a whole. */
#ifndef RP_CONTROL_OWN_VIEWS_H
#define RP_CONTROL_OWN_VIEWS_H

#include "control/missing.h"
#include "control/pauses.h"
#include "control/view.h"

typedef struct rp_controller rp_controller;

rp_run_view rp_controller_view(const rp_controller *c);
rp_missing rp_controller_missing(const rp_controller *c);
rp_pauses rp_controller_pauses(const rp_controller *c);
/* The pipes would be empty before the next evaluation. */
bool rp_controller_may_drain(const rp_controller *c);

#endif
