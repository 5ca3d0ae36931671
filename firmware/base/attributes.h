/* What the compiler checks for us about a function. */
#ifndef RP_BASE_ATTRIBUTES_H
#define RP_BASE_ATTRIBUTES_H

/* Its result may not be thrown away. */
#define RP_MUST_CHECK __attribute__((warn_unused_result))
/* Parameter `string` is a format of printf() for those from `first` on. */
#define RP_PRINTF(string, first) __attribute__((format(printf, string, first)))

#endif
