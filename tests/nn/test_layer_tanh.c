#include "activation.h"

int main(void) {
    return test_activation("{kind: tanh}", "tanh", (const float[]){-1.0f, 1.0f, -1.0f, 1.0f});
}
