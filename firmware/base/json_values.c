#include "base/json_values.h"

#include <math.h>

json_t *rp_json_of_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *rp_json_of_whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

void rp_json_put(json_t *object, const char *key, json_t *value, bool *good) {
    *good = json_object_set_new(object, key, value) == 0 && *good;
}
