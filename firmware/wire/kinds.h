/* Every kind of message, one line each. To add one: add a message and a member of `body` in
 * ringpipe.proto, a line here, and its handler.
 *
 * X(NAME, member, Message, direction, class, least parts, most parts, parts rule)
 *   direction  sender: HOST, BOARD; ANY: both; RING: a board to its neighbour
 *   class      DATA: counts against the window, at most RP_FRAME_DATA_BYTES_MAX bytes;
 *              CONTROL: bounded by RP_LINK_CONTROL_MAX; LINK: below the reliable stream
 *   rule       for all parts; SAMPLES: tensors whose first dimension is the parcel's count;
 *              TENSOR: any tensor; otherwise the dtype
 *
 * The agent's table (agent/messages.c) says in which states a board accepts each kind. */
#ifndef RP_WIRE_KINDS_H
#define RP_WIRE_KINDS_H

/* clang-format off */
#define RP_KIND_LIST(X)                                                                   \
    X(INPUT,            input,            Parcel,          HOST,  DATA,    1, 8, SAMPLES) \
    X(LABEL,            label,            Parcel,          HOST,  DATA,    1, 1, SAMPLES) \
    X(ACTIVATION,       activation,       Parcel,          RING,  DATA,    1, 8, SAMPLES) \
    X(GRADIENT,         gradient,         Parcel,          RING,  DATA,    1, 8, SAMPLES) \
    X(WEIGHT_GRADIENT,  weight_gradient,  Parcel,          RING,  DATA,    1, 1, TENSOR)  \
    X(STASH,            stash,            Parcel,          RING,  DATA,    1, 1, TENSOR)  \
    X(WEIGHT,           weight,           Parcel,          RING,  DATA,    1, 1, TENSOR)  \
    X(TIED_GRADIENT,    tied_gradient,    Parcel,          RING,  DATA,    1, 1, TENSOR)  \
    X(TIED_WEIGHT,      tied_weight,      Parcel,          RING,  DATA,    1, 1, TENSOR)  \
    X(HELLO,            hello,            Hello,           ANY,   CONTROL, 0, 0, NONE)    \
    X(ASSIGN,           assign,           Assign,          HOST,  CONTROL, 2, 3, TEXT)    \
    X(READY,            ready,            Ready,           BOARD, CONTROL, 0, 0, NONE)    \
    X(CONNECT,          connect,          Connect,         HOST,  CONTROL, 0, 0, NONE)    \
    X(START,            start,            Start,           HOST,  CONTROL, 0, 0, NONE)    \
    X(STOP,             stop,             Stop,            HOST,  CONTROL, 0, 0, NONE)    \
    X(STEP_DONE,        step_done,        StepDone,        BOARD, CONTROL, 0, 0, NONE)    \
    X(NORMS,            norms,            Norms,           BOARD, CONTROL, 0, 1, F64)     \
    X(STEP_DECISION,    step_decision,    StepDecision,    HOST,  CONTROL, 0, 0, NONE)    \
    X(SKIPPED,          skipped,          Skipped,         BOARD, CONTROL, 0, 0, NONE)    \
    X(PREDICTION_ERROR, prediction_error, PredictionError, BOARD, CONTROL, 1, 1, F64)     \
    X(PREDICTION_GAIN,  prediction_gain,  PredictionGain,  HOST,  CONTROL, 1, 1, F64)     \
    X(TRACE,            trace,            Trace,           BOARD, CONTROL, 1, 1, BYTES)   \
    X(FINISHED,         finished,         Finished,        BOARD, CONTROL, 1, 1, U64)     \
    X(EVALUATE,         evaluate,         Evaluate,        HOST,  CONTROL, 0, 0, NONE)    \
    X(EVALUATE_DONE,    evaluate_done,    EvaluateDone,    BOARD, CONTROL, 0, 1, F64)     \
    X(SAVE,             save,             Save,            HOST,  CONTROL, 0, 0, NONE)    \
    X(TENSOR,           tensor,           Tensor,          ANY,   CONTROL, 1, 1, TENSOR)  \
    X(IN_FLIGHT,        in_flight,        InFlight,        ANY,   CONTROL, 0, 1, BYTES)   \
    X(TENSORS_END,      tensors_end,      TensorsEnd,      ANY,   CONTROL, 0, 1, U64)     \
    X(PROFILE,          profile,          Profile,         HOST,  CONTROL, 2, 2, TEXT)    \
    X(PROFILE_DONE,     profile_done,     ProfileDone,     BOARD, CONTROL, 1, 1, F64)     \
    X(BUILDING,         building,         Building,        BOARD, CONTROL, 0, 0, NONE)    \
    X(WAITING,          waiting,          Waiting,         BOARD, CONTROL, 0, 0, NONE)    \
    X(RECORD,           record,           Record,          ANY,   CONTROL, 0, 1, BYTES)   \
    X(RECOMPUTED,       recomputed,       Recomputed,      BOARD, CONTROL, 0, 0, NONE)    \
    X(HELD,             held,             Held,            BOARD, CONTROL, 1, 2, U64)     \
    X(COPY,             copy,             Copy,            HOST,  CONTROL, 0, 0, NONE)    \
    X(COPIED,           copied,           Copied,          BOARD, CONTROL, 0, 0, NONE)    \
    X(COPY_PIECE,       copy_piece,       CopyPiece,       RING,  CONTROL, 0, 1, BYTES)   \
    X(COPY_GOT,         copy_got,         CopyGot,         RING,  CONTROL, 0, 0, NONE)    \
    X(FETCH,            fetch,            Fetch,           HOST,  CONTROL, 0, 0, NONE)    \
    X(TRIAL,            trial,            Trial,           HOST,  CONTROL, 0, 0, NONE)    \
    X(TRIAL_DONE,       trial_done,       TrialDone,       BOARD, CONTROL, 0, 0, NONE)    \
    X(TRIAL_BYTES,      trial_bytes,      TrialBytes,      ANY,   CONTROL, 1, 1, BYTES)   \
    X(ENROL,            enrol,            Enrol,           BOARD, CONTROL, 0, 0, NONE)    \
    X(ENROLLED,         enrolled,         Enrolled,        HOST,  CONTROL, 0, 0, NONE)    \
    X(PUSH,             push,             Push,            HOST,  CONTROL, 0, 0, NONE)    \
    X(PUSH_PIECE,       push_piece,       PushPiece,       HOST,  CONTROL, 1, 1, BYTES)   \
    X(PUSHED,           pushed,           Pushed,          BOARD, CONTROL, 0, 0, NONE)    \
    X(FAULT,            fault,            Fault,           ANY,   CONTROL, 0, 0, NONE)    \
    X(BYE,              bye,              Bye,             HOST,  CONTROL, 0, 0, NONE)    \
    X(ACK_ONLY,         ack_only,         Ack,             ANY,   LINK,    0, 0, NONE)    \
    X(PROBE,            probe,            Probe,           ANY,   LINK,    0, 0, NONE)    \
    X(PING,             ping,             Ping,            ANY,   LINK,    0, 0, NONE)    \
    X(PONG,             pong,             Pong,            ANY,   LINK,    0, 0, NONE)    \
    X(ASK,              ask,              Ask,             HOST,  LINK,    0, 0, NONE)    \
    X(CONDITION,        condition,        Condition,       BOARD, LINK,    0, 0, NONE)    \
    X(LINES,            lines,            Lines,           BOARD, LINK,    0, 0, NONE)    \
    X(ORDERED,          ordered,          Ordered,         BOARD, LINK,    0, 0, NONE)
/* clang-format on */

#endif
