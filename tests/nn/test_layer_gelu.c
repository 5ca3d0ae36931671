#include "activation.h"

int main(void) {
    return test_activation("{kind: gelu}", "gelu", (const float[]){0.0f, 100.0f, NAN, INFINITY}) +
           test_activation("{kind: gelu, approximate: tanh}", "gelu_tanh",
                           (const float[]){0.0f, 100.0f, NAN, INFINITY});
}
