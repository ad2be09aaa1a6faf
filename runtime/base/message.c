/* SPDX-License-Identifier: Apache-2.0
 *
 * The calling thread's message, which says why its last failed call failed. Owns one text per
 * thread, truncated at MESSAGE_BYTES; it allocates nothing, so that a failure for lack of memory
 * is explained too.
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
