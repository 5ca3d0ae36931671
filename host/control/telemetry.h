/* What the record is told: facts of the run, its boards and its links. */
#ifndef RP_CONTROL_TELEMETRY_H
#define RP_CONTROL_TELEMETRY_H

#include "control/view.h"
#include "wire/frame.h"

/* Opens the record at the position of the run. */
rp_err rp_telemetry_open(const rp_run_view *view) RP_MUST_CHECK;
/* The record goes back to the position. */
rp_err rp_telemetry_rewind(rp_record *record, const rp_position *position) RP_MUST_CHECK;
/* Copies what the record has counted into the position, for a checkpoint. */
void rp_telemetry_read_totals(const rp_record *record, rp_position *position);
/* Takes packed records of ops that a board has run (wire/trace.h). errors  PEER */
rp_err rp_telemetry_take_ops(const rp_run_view *view, uint32_t board,
                             const rp_part *part) RP_MUST_CHECK;
/* Writes what the boards have reported so far to the record. */
rp_err rp_telemetry_write_facts(const rp_run_view *view) RP_MUST_CHECK;
/* Closes the record with the summary. `status`, `note`: of rp_record_end. */
rp_err rp_telemetry_close(const rp_run_view *view, const char *status,
                          const char *note) RP_MUST_CHECK;

#endif
