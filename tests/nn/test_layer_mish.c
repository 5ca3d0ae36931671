#include "activation.h"

int main(void) {
    return test_activation("{kind: mish}", "mish", (const float[]){0.0f, 100.0f, NAN, INFINITY});
}
