/* An OpenCL driver that ends its process as soon as it is loaded. */
#include <stdlib.h>

__attribute__((constructor)) static void end_process(void) {
    abort();
}
