/* banned.h - library calls that overrun, lose their length or keep hidden state.
 *
 * Force-included into every object by the Makefile, so that a call is a compile error.
 * The headers that declare these names come first: poisoning has to follow the declaration.
 */
#ifndef BANNED_H
#define BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With clang the checked ones are macros, and a macro cannot be poisoned. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat stpcpy sprintf vsprintf strtok atoi atol atoll atof

#endif
