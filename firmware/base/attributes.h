/* Function attributes that let the compiler check callers. */
#ifndef RP_BASE_ATTRIBUTES_H
#define RP_BASE_ATTRIBUTES_H

/* The caller must use the result. */
#define RP_MUST_CHECK __attribute__((warn_unused_result))
/* Parameter number `string` is a printf() format; its arguments start at parameter `first`. */
#define RP_PRINTF(string, first) __attribute__((format(printf, string, first)))

#endif
