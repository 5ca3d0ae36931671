/* Metrics in Prometheus' text format. Source: Prometheus, "Exposition formats", version 0.0.4. */
#ifndef RP_VIEW_METRICS_H
#define RP_VIEW_METRICS_H

#include "view/run_files.h"
#include "view/text.h"

/* All metrics of these runs; a value that is unknown is absent. Raises the runs' high marks. */
void rp_view_metrics(rp_view_run *const *run, const rp_view_facts *facts, uint32_t count,
                     rp_view_text *out);

#endif
