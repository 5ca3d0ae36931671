#include "activation.h"

int main(void) {
    return test_activation("{kind: softplus}", "softplus",
                           (const float[]){0.0f, 100.0f, 0.0f, INFINITY});
}
