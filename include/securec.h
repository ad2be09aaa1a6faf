/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of CANN's libc_sec.so, with libboundscheck's names, prototypes and codes. Each is told
 * what room its target has, @destMax bytes, and refuses what does not fit.
 *
 * Codes: EOK; ERANGE, destMax is 0 or above 0x7fffffff; EINVAL, dest is NULL. The others leave an
 * empty target, memory all zeros, a string "": EINVAL_AND_RESET, the source is NULL, or what is
 * appended to has no end in destMax; ERANGE_AND_RESET, it does not fit; EOVERLAP_AND_RESET, source
 * and target overlap, and are not one.
 */
#ifndef NPUSIM_SECUREC_H
#define NPUSIM_SECUREC_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EOK                0
#define EINVAL_AND_RESET   (EINVAL | 128)
#define ERANGE_AND_RESET   (ERANGE | 128)
#define EOVERLAP_AND_RESET (54 | 128)
typedef int errno_t;

/** memmove_s bears an overlap; memset_s fills destMax bytes where count is more. */
errno_t memcpy_s(void *dest, size_t destMax, const void *src, size_t count);
errno_t memmove_s(void *dest, size_t destMax, const void *src, size_t count);
errno_t memset_s(void *dest, size_t destMax, int c, size_t count);

/** strncpy_s, strncat_s: at most @count characters, and an end behind them. */
errno_t strcpy_s(char *strDest, size_t destMax, const char *strSrc);
errno_t strncpy_s(char *strDest, size_t destMax, const char *strSrc, size_t count);
errno_t strcat_s(char *strDest, size_t destMax, const char *strSrc);
errno_t strncat_s(char *strDest, size_t destMax, const char *strSrc, size_t count);
/** As strtok_r(); NULL also where strDelimit or context is NULL, or both texts are. */
char *strtok_s(char *strToken, const char *strDelimit, char **context);

/** The length; -1, and "", if it does not fit. With more than @count characters: -1, and those. */
#define SECUREC_FORMAT(place, first) __attribute__((format(printf, place, first)))
SECUREC_FORMAT(3, 4) int sprintf_s(char *strDest, size_t destMax, const char *format, ...);
SECUREC_FORMAT(3, 0)
int vsprintf_s(char *strDest, size_t destMax, const char *format, va_list argList);
SECUREC_FORMAT(4, 5)
int snprintf_s(char *strDest, size_t destMax, size_t count, const char *format, ...);
SECUREC_FORMAT(4, 0)
int vsnprintf_s(char *strDest, size_t destMax, size_t count, const char *format, va_list argList);

#ifdef __cplusplus
}
#endif

#endif
