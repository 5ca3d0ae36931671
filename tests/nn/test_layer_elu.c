#include "activation.h"

int main(void) {
    return test_activation("{kind: elu}", "elu", (const float[]){-1.0f, 100.0f, -1.0f, INFINITY}) +
           test_activation("{kind: elu, alpha: 0.5}", "elu",
                           (const float[]){-0.5f, 100.0f, -0.5f, INFINITY});
}
