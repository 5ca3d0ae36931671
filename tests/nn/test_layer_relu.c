#include "activation.h"

int main(void) {
    return test_activation("{kind: relu}", "relu", (const float[]){0.0f, 100.0f, 0.0f, INFINITY});
}
