#include "device/gemm.h"

#include "device/own.h"

const char *rp_gemm_choice_name(rp_gemm_choice choice) {
    return choice == RP_GEMM_PANEL ? "panel" : "clblast";
}
