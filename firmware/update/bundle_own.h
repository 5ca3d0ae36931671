/* Private to bundle*.c and unpack.c. */
#ifndef RP_UPDATE_BUNDLE_OWN_H
#define RP_UPDATE_BUNDLE_OWN_H

#include "update/bundle.h"

#define RP_BUNDLE_MAGIC "RPBUNDLE1\n"
#define RP_BUNDLE_PURPOSE "ringpipe bundle 1\n" /* in front of what is signed */

enum { RP_BUNDLE_MAGIC_BYTES = 10, RP_BUNDLE_PURPOSE_BYTES = 18 };

#endif
