/* SPDX-License-Identifier: Apache-2.0
 *
 * libc_sec.so: functions that know what room their target has; securec.h has their contract.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "securec.h"

#define ROOM_MAX ((size_t)INT32_MAX)
#define RESET    128 /* of the codes after which the target is empty */

static errno_t check(const void *dest, size_t room, const void *src)
{
	if (room == 0 || room > ROOM_MAX)
		return ERANGE;
	if (dest == NULL)
		return EINVAL;
	return src == NULL ? EINVAL_AND_RESET : EOK;
}

static bool overlap(const char *dest, size_t written, const char *src, size_t read)
{
	return dest < src ? (size_t)(src - dest) < written : (size_t)(dest - src) < read;
}

static errno_t move(void *dest, size_t room, const void *src, size_t count, bool may_overlap)
{
	errno_t code = check(dest, room, src);

	if (code == EOK && count > room)
		code = ERANGE_AND_RESET;
	else if (code == EOK && !may_overlap && dest != src && overlap(dest, count, src, count))
		code = EOVERLAP_AND_RESET;
	if (code & RESET)
		memset(dest, 0, room);
	else if (code == EOK)
		memmove(dest, src, count);
	return code;
}

/* Puts at most `most` characters into a string, behind what it has or in its place. */
static errno_t join(char *dest, size_t room, bool behind, const char *src, size_t most)
{
	errno_t code = check(dest, room, src);
	bool overlaps, too_long;
	size_t length, count;

	if (code & RESET)
		dest[0] = '\0';
	if (code != EOK)
		return code;
	length = behind ? strnlen(dest, room) : 0;
	count = strnlen(src, most < room ? most : room);
	overlaps = dest != src && overlap(dest, length + count + 1, src, count + 1);
	too_long = most > ROOM_MAX || count >= room - length || (behind && dest == src);
	if (length == room)
		code = EINVAL_AND_RESET;
	else if (overlaps && (behind || !too_long))
		code = EOVERLAP_AND_RESET;
	else if (too_long)
		code = ERANGE_AND_RESET;
	else
		memmove(dest + length, src, count);
	dest[code == EOK ? length + count : 0] = '\0';
	return code;
}

errno_t memset_s(void *dest, size_t room, int c, size_t count)
{
	errno_t code = check(dest, room, dest);

	if (code != EOK)
		return count == 0 && room == 0 && dest != NULL ? EOK : code;
	memset(dest, c, count < room ? count : room);
	return count > room ? ERANGE_AND_RESET : EOK;
}

char *strtok_s(char *text, const char *delimiters, char **context)
{
	if (context == NULL || delimiters == NULL || (text == NULL && *context == NULL))
		return NULL;
	return strtok_r(text, delimiters, context);
}

int vsnprintf_s(char *dest, size_t room, size_t count, const char *format, va_list arguments)
{
	bool usable = check(dest, room, dest) == EOK;
	size_t space = count < room ? count + 1 : room;
	int length = -1;

	if (usable && format != NULL && count < ROOM_MAX)
		length = vsnprintf(dest, space, format, arguments);
	if (length >= 0 && (size_t)length < space)
		return length;
	if (usable && (length < 0 || count >= room))
		dest[0] = '\0';
	return -1;
}

#define ANSWERS(result, name, parameters, answer) \
	result name parameters                    \
	{                                         \
		return answer;                    \
	}
/* Of `arguments` behind `format`. */
#define ANSWERS_LISTED(name, parameters, answer) \
	int name parameters                      \
	{                                        \
		va_list arguments;               \
		int length;                      \
                                                 \
		va_start(arguments, format);     \
		length = answer;                 \
		va_end(arguments);               \
		return length;                   \
	}

ANSWERS(errno_t, memcpy_s, (void *dest, size_t room, const void *src, size_t count),
	move(dest, room, src, count, false))
ANSWERS(errno_t, memmove_s, (void *dest, size_t room, const void *src, size_t count),
	move(dest, room, src, count, true))
ANSWERS(errno_t, strcpy_s, (char *dest, size_t room, const char *src),
	join(dest, room, false, src, ROOM_MAX))
ANSWERS(errno_t, strncpy_s, (char *dest, size_t room, const char *src, size_t count),
	join(dest, room, false, src, count))
ANSWERS(errno_t, strcat_s, (char *dest, size_t room, const char *src),
	join(dest, room, true, src, ROOM_MAX))
ANSWERS(errno_t, strncat_s, (char *dest, size_t room, const char *src, size_t count),
	join(dest, room, true, src, count))
ANSWERS(int, vsprintf_s, (char *dest, size_t room, const char *format, va_list arguments),
	vsnprintf_s(dest, room, room < ROOM_MAX ? room : ROOM_MAX - 1, format, arguments))
ANSWERS_LISTED(snprintf_s, (char *dest, size_t room, size_t count, const char *format, ...),
	       vsnprintf_s(dest, room, count, format, arguments))
ANSWERS_LISTED(sprintf_s, (char *dest, size_t room, const char *format, ...),
	       vsprintf_s(dest, room, format, arguments))
