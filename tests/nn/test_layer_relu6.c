#include "activation.h"

int main(void) {
    return test_activation("{kind: relu6}", "relu6", (const float[]){0.0f, 6.0f, 0.0f, 6.0f});
}
