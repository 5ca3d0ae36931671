/* Values for a JSON object under construction. */
#ifndef RP_BASE_JSON_VALUES_H
#define RP_BASE_JSON_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A number, or null if it is not finite, because JSON has neither NaN nor infinity. */
json_t *rp_json_of_real(double value);
json_t *rp_json_of_whole(uint64_t value);

/* Sets `key` and takes the reference to `value`. *good becomes false when that fails, for lack of
 * memory or because a text is not UTF-8 (`value` is then NULL). It never becomes true, so one test
 * after all keys is enough. */
void rp_json_put(json_t *object, const char *key, json_t *value, bool *good);

#endif
