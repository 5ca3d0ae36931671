/* Every kind of message, one line each. To add one: a message and a member of `body` in
 * ringpipe.proto, a line here, its handler.
 *
 * X(NAME, member, Message, direction, class, parts at least, at most, parts rule, state)
 *   direction  HOST, BOARD: who sends it; ANY: both; RING: a board to its neighbour
 *   class      DATA: counts against the window, at most RP_FRAME_DATA_BYTES_MAX bytes;
 *              CONTROL: bounded by RP_LINK_CONTROL_MAX; LINK: below the reliable stream
 *   rule       of all parts; SAMPLES: tensors whose first dimension is the parcel's count;
 *              TENSOR: any tensor; else the dtype
 *   state      of the board, in which the kind comes or goes */
#ifndef RP_WIRE_KINDS_H
#define RP_WIRE_KINDS_H

/* clang-format off */
#define RP_KIND_LIST(X)                                                                            \
    X(INPUT,            input,            Parcel,          HOST,  DATA,    1, 8, SAMPLES, RUNNING) \
    X(LABEL,            label,            Parcel,          HOST,  DATA,    1, 1, SAMPLES, RUNNING) \
    X(ACTIVATION,       activation,       Parcel,          RING,  DATA,    1, 8, SAMPLES, RUNNING) \
    X(GRADIENT,         gradient,         Parcel,          RING,  DATA,    1, 8, SAMPLES, RUNNING) \
    X(HELLO,            hello,            Hello,           ANY,   CONTROL, 0, 0, NONE,    ANY)     \
    X(ASSIGN,           assign,           Assign,          HOST,  CONTROL, 2, 2, TEXT,    IDLE)    \
    X(READY,            ready,            Ready,           BOARD, CONTROL, 0, 0, NONE,    BUILT)   \
    X(CONNECT,          connect,          Connect,         HOST,  CONTROL, 0, 0, NONE,    BUILT)   \
    X(START,            start,            Start,           HOST,  CONTROL, 0, 0, NONE,    PAUSED)  \
    X(STOP,             stop,             Stop,            HOST,  CONTROL, 0, 0, NONE,    RUNNING) \
    X(STEP_DONE,        step_done,        StepDone,        BOARD, CONTROL, 0, 0, NONE,    RUNNING) \
    X(NORMS,            norms,            Norms,           BOARD, CONTROL, 0, 1, F64,     RUNNING) \
    X(STEP_DECISION,    step_decision,    StepDecision,    HOST,  CONTROL, 0, 0, NONE,    RUNNING) \
    X(SKIPPED,          skipped,          Skipped,         BOARD, CONTROL, 0, 0, NONE,    RUNNING) \
    X(PREDICTION_ERROR, prediction_error, PredictionError, BOARD, CONTROL, 1, 1, F64,     RUNNING) \
    X(PREDICTION_GAIN,  prediction_gain,  PredictionGain,  HOST,  CONTROL, 1, 1, F64,     PAUSED)  \
    X(TRACE,            trace,            Trace,           BOARD, CONTROL, 1, 1, BYTES,   RUNNING) \
    X(FINISHED,         finished,         Finished,        BOARD, CONTROL, 1, 1, U64,     RUNNING) \
    X(EVALUATE,         evaluate,         Evaluate,        HOST,  CONTROL, 0, 0, NONE,    PAUSED)  \
    X(EVALUATE_DONE,    evaluate_done,    EvaluateDone,    BOARD, CONTROL, 0, 0, NONE,    RUNNING) \
    X(SAVE,             save,             Save,            HOST,  CONTROL, 0, 0, NONE,    PAUSED)  \
    X(TENSOR,           tensor,           Tensor,          ANY,   CONTROL, 1, 1, TENSOR,  PAUSED)  \
    X(IN_FLIGHT,        in_flight,        InFlight,        ANY,   CONTROL, 0, 1, BYTES,   PAUSED)  \
    X(TENSORS_END,      tensors_end,      TensorsEnd,      ANY,   CONTROL, 0, 1, U64,     PAUSED)  \
    X(PROFILE,          profile,          Profile,         HOST,  CONTROL, 2, 2, TEXT,    IDLE)    \
    X(PROFILE_DONE,     profile_done,     ProfileDone,     BOARD, CONTROL, 1, 1, F64,     IDLE)    \
    X(FAULT,            fault,            Fault,           ANY,   CONTROL, 0, 0, NONE,    ANY)     \
    X(BYE,              bye,              Bye,             HOST,  CONTROL, 0, 0, NONE,    ANY)     \
    X(ACK_ONLY,         ack_only,         Ack,             ANY,   LINK,    0, 0, NONE,    ANY)     \
    X(PROBE,            probe,            Probe,           ANY,   LINK,    0, 0, NONE,    ANY)     \
    X(PING,             ping,             Ping,            ANY,   LINK,    0, 0, NONE,    ANY)     \
    X(PONG,             pong,             Pong,            ANY,   LINK,    0, 0, NONE,    ANY)
/* clang-format on */

#endif
