#include "activation.h"

int main(void) {
    return test_activation("{kind: silu}", "silu", (const float[]){0.0f, 100.0f, NAN, INFINITY});
}
