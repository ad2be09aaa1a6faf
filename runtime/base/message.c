/* SPDX-License-Identifier: Apache-2.0
 *
 * The calling thread's message, which says why its last failed call failed. Owns one text per
 * thread, truncated at MESSAGE_BYTES; it allocates nothing, so that a failure for lack of memory
 * is explained too. And human-readable sizes, with the ring,
 * one a thread, of the texts that messages are made of.
 */
#include "base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 4096

static __thread char message[MESSAGE_BYTES];
static __thread enum { OLD, FRESH, LOGGED } state;
static const struct npu_word *words;

void npu_message_words(const struct npu_word *table)
{
	words = table;
}

const struct npu_word npu_cuda_words[] = {
	{ "aclrtSetDevice or aclrtSetCurrentContext", "cuCtxSetCurrent" },
	{ "aclrtCreateContext", "cuCtxCreate" },
	{ "aclrtCreateEvent", "cuEventCreate" },
	{ "aclrtCreateEventExWithFlag", "cuEventCreate" },
	{ "aclrtCreateStream", "cuStreamCreate" },
	{ "aclrtDestroyContext", "cuCtxDestroy" },
	{ "aclrtDestroyStreamForce", "cuStreamDestroy" },
	{ "aclrtDeviceEnablePeerAccess", "cuCtxEnablePeerAccess" },
	{ "aclrtFree", "cuMemFree" },
	{ "aclrtFreeHost", "cuMemFreeHost" },
	{ "aclrtFreePhysical", "cuMemRelease" },
	{ "aclrtHostRegister", "cuMemHostRegister" },
	{ "aclrtHostUnregister", "cuMemHostUnregister" },
	{ "aclrtIpcMemClose", "cuIpcCloseMemHandle" },
	{ "aclrtLaunchHostFunc", "cuLaunchHostFunc" },
	{ "aclrtMalloc", "cuMemAlloc" },
	{ "aclrtMallocHost", "cuMemAllocHost" },
	{ "aclrtMallocPhysical", "cuMemCreate" },
	{ "aclrtMapMem", "cuMemMap" },
	{ "aclrtMemExportToShareableHandle", "cuMemExportToShareableHandle" },
	{ "aclrtMemRetainAllocationHandle", "cuMemRetainAllocationHandle" },
	{ "aclrtMemSetAccess", "cuMemSetAccess" },
	{ "aclrtMemcpy", "cuMemcpy" },
	{ "aclrtMemcpyAsync", "cuMemcpyAsync" },
	{ "aclrtMemset", "cuMemsetD8" },
	{ "aclrtQueryEventStatus", "cuEventQuery" },
	{ "aclrtRecordEvent", "cuEventRecord" },
	{ "aclrtReleaseMemAddress", "cuMemAddressFree" },
	{ "aclrtReserveMemAddress", "cuMemAddressReserve" },
	{ "aclrtResetDevice", "cuDevicePrimaryCtxReset" },
	{ "aclrtSetCurrentContext", "cuCtxSetCurrent" },
	{ "aclrtSetDevice", "cuCtxSetCurrent" },
	{ "aclrtStreamWaitEvent", "cuStreamWaitEvent" },
	{ "aclrtSynchronizeStream", "cuStreamSynchronize" },
	{ "aclrtUnmapMem", "cuMemUnmap" },
	{ NULL, NULL },
};

void npu_words_replace(char *text, size_t room, const struct npu_word *table)
{
	for (const struct npu_word *word = table; word != NULL && word->from != NULL; word++) {
		size_t from = strlen(word->from), to = strlen(word->to);

		for (char *at = text; (at = strstr(at, word->from)) != NULL;) {
			size_t rest = strlen(at + from) + 1;
			bool whole = !isalnum((unsigned char)at[from]) &&
				     to + rest <= room - (size_t)(at - text);

			if (whole) {
				memmove(at + to, at + from, rest);
				memcpy(at, word->to, to);
			}
			at += whole ? to : from;
		}
	}
}

/* Through a buffer: the arguments may point into the message itself. */
void npu_message_set(const char *format, ...)
{
	char text[MESSAGE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	npu_words_replace(text, sizeof(text), words);
	memcpy(message, text, strlen(text) + 1);
	state = FRESH;
}

void npu_message_prefix(const char *format, ...)
{
	char text[MESSAGE_BYTES];
	va_list args;
	size_t length;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	length = strlen(text);
	snprintf(text + length, sizeof(text) - length, "%s", message);
	memcpy(message, text, strlen(text) + 1);
}

void npu_message_clear(void)
{
	message[0] = '\0';
}

const char *npu_message(void)
{
	return message;
}

void npu_message_logged(void)
{
	state = LOGGED;
}

const char *npu_message_next(bool *out_logged)
{
	const char *text = state == OLD || message[0] == '\0' ? NULL : message;

	*out_logged = state == LOGGED;
	state = OLD;
	return text;
}

void npu_text_add(char **text, const char *format, ...)
{
	char *more, *both;
	va_list args;

	va_start(args, format);
	if (vasprintf(&more, format, args) < 0)
		more = NULL;
	va_end(args);
	if (more != NULL && asprintf(&both, "%s%s", *text == NULL ? "" : *text, more) >= 0) {
		free(*text);
		*text = both;
	}
	free(more);
}

static const struct {
	const char *name;
	char suffix;
	unsigned lg2;
} units[] = { { "TiB", 'T', 40 }, { "GiB", 'G', 30 }, { "MiB", 'M', 20 }, { "KiB", 'K', 10 } };

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

static bool parse_unit(const char *text, unsigned *out_lg2)
{
	*out_lg2 = 0;
	if (*text == '\0')
		return true;
	for (size_t i = 0; i < UNIT_COUNT; i++) {
		if (toupper((unsigned char)*text) != units[i].suffix)
			continue;
		*out_lg2 = units[i].lg2;
		text++;
		return *text == '\0' || ((text[0] == 'i' || text[0] == 'I') &&
					 (text[1] == 'B' || text[1] == 'b') && text[2] == '\0');
	}
	return false;
}

bool npu_parse_size(const char *text, uint64_t *out_bytes)
{
	uint64_t value = 0;
	unsigned lg2;

	if (text == NULL || !isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	if (!parse_unit(text, &lg2) || value > UINT64_MAX >> lg2)
		return false;
	*out_bytes = value << lg2;
	return true;
}

const char *npu_text(const char *format, ...)
{
	static __thread char ring[6 * NPU_TEXT_MAX];
	static __thread unsigned next;
	char *out;
	va_list args;
	int length;

	if (next + NPU_TEXT_MAX > sizeof(ring))
		next = 0;
	out = ring + next;
	va_start(args, format);
	length = vsnprintf(out, NPU_TEXT_MAX, format, args);
	va_end(args);
	next += length < 0 ? 1 : length < NPU_TEXT_MAX ? (unsigned)length + 1 : NPU_TEXT_MAX;
	return out;
}

const char *npu_counted(uint64_t count, const char *noun)
{
	const char *ending = count == 1 ? "" : noun[strlen(noun) - 1] == 's' ? "es" : "s";

	return npu_text("%llu %s%s", (unsigned long long)count, noun, ending);
}

const char *npu_size_words(double bytes)
{
	for (size_t i = 0; i < UNIT_COUNT; i++) {
		double count = bytes / (double)(UINT64_C(1) << units[i].lg2);
		/* less is written in a smaller unit, unless it would be as 1024 of it */
		double least = 1 - (i + 1 < UNIT_COUNT ? 0.005 : 0.5) / 1024;

		if (count >= least || count <= -least)
			return npu_text("%.2f %s", count, units[i].name);
	}
	return npu_text("%.0f B", bytes);
}

const char *npu_size_text(uint64_t bytes)
{
	const unsigned long long count = bytes;

	for (size_t i = 0; i < UNIT_COUNT; i++) {
		uint64_t unit = UINT64_C(1) << units[i].lg2;

		if (bytes >= unit && bytes % unit == 0)
			return npu_text("%llu (%llu %s)", count, count / unit, units[i].name);
		if (bytes >= unit)
			return npu_text("%llu (about %s)", count, npu_size_words((double)bytes));
	}
	return npu_text("%llu", count);
}
