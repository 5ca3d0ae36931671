#include "activation.h"

int main(void) {
    return test_activation("{kind: sigmoid}", "sigmoid", (const float[]){0.0f, 1.0f, 0.0f, 1.0f});
}
