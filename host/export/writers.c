/* The table of kinds. To add one: a row here, and a writer in the file of its family. */
#include <string.h>

#include "export/layer.h"

#define KIND(name)                                                                                 \
    { #name, rp_export_write_##name }
#define PLAIN(name)                                                                                \
    { #name, rp_export_write_plain }

static const struct {
    const char *kind;
    rp_export_writer *write;
} writers[] = {
    /* products and tables of weights */
    KIND(dense),
    KIND(linear),
    KIND(embedding),
    KIND(position),
    KIND(sinusoid),
    KIND(prepend),
    KIND(scale),
    /* images */
    KIND(conv2d),
    KIND(convtranspose2d),
    KIND(maxpool),
    KIND(avgpool),
    KIND(adaptiveavgpool),
    KIND(globalavgpool),
    KIND(upsample),
    KIND(sequence),
    /* normalisation */
    KIND(batchnorm),
    KIND(groupnorm),
    KIND(layernorm),
    KIND(rmsnorm),
    /* activations */
    PLAIN(relu),
    PLAIN(tanh),
    PLAIN(sigmoid),
    PLAIN(softplus),
    KIND(relu6),
    KIND(leaky_relu),
    KIND(elu),
    KIND(hardsigmoid),
    KIND(hardswish),
    KIND(silu),
    KIND(mish),
    KIND(gelu),
    KIND(prelu),
    KIND(glu),
    KIND(swiglu),
    /* sums and parts */
    KIND(add),
    KIND(mul),
    KIND(concat),
    KIND(slice),
    KIND(flatten),
    KIND(dropout),
    KIND(droppath),
    /* sequences */
    KIND(lstm),
    KIND(gru),
    KIND(seqpool),
    KIND(attention),
    KIND(additive),
    /* elementary kinds */
    {"neg", rp_export_write_unary},
    {"abs", rp_export_write_unary},
    {"exp", rp_export_write_unary},
    {"log", rp_export_write_unary},
    {"sqrt", rp_export_write_unary},
    {"reciprocal", rp_export_write_unary},
    {"erf", rp_export_write_unary},
    KIND(pow),
    KIND(clip),
    KIND(not ),
    KIND(isnan),
    {"sub", rp_export_write_binary},
    {"div", rp_export_write_binary},
    {"min", rp_export_write_binary},
    {"max", rp_export_write_binary},
    {"equal", rp_export_write_compare},
    {"less", rp_export_write_compare},
    {"greater", rp_export_write_compare},
    {"and", rp_export_write_logic},
    {"or", rp_export_write_logic},
    KIND(where),
    {"mean", rp_export_write_reduce},
    {"sum", rp_export_write_reduce},
    {"max-over", rp_export_write_reduce},
    {"softmax", rp_export_write_softmax},
    {"logsoftmax", rp_export_write_softmax},
    KIND(matmul),
    KIND(transpose),
    KIND(reshape),
    KIND(expand),
    KIND(pad),
    KIND(gather),
    KIND(parameter),
    {"constant", rp_export_write_parameter},
};

rp_export_writer *rp_export_find_writer(const char *kind) {
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        if (strcmp(writers[i].kind, kind) == 0) {
            return writers[i].write;
        }
    }
    return NULL;
}
