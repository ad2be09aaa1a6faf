/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that move bytes or allocate them in one piece: what cases/FORMAT.md lists under these
 * headings.
 */
#include "case-steps.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory in one piece ---- */

static void run_malloc(struct step *s)
{
	void *va = NULL;

	if (CALL(s, aclrtMalloc, &va, step_number(s, 1),
		 (aclrtMemMallocPolicy)step_option_number(s, "policy", 0)) == 0)
		step_set(s, 0, (uint64_t)(uintptr_t)va);
}

static void run_free(struct step *s)
{
	CALL(s, aclrtFree, step_pointer(s, 0));
}

static void run_malloc_host(struct step *s)
{
	void *va = NULL;

	if (CALL(s, aclrtMallocHost, &va, step_number(s, 1)) == 0)
		step_set(s, 0, (uint64_t)(uintptr_t)va);
}

static void run_free_host(struct step *s)
{
	CALL(s, aclrtFreeHost, step_pointer(s, 0));
}

/* Ordinary memory of the process, aligned to 4 KiB, of zeros. */
static void run_plain(struct step *s)
{
	size_t size = (step_number(s, 1) + 4095) / 4096 * 4096;
	void *va = aligned_alloc(4096, size);

	if (va != NULL)
		memset(va, 0, size);
	step_set(s, 0, (uint64_t)(uintptr_t)va);
}

/* ---- bytes ---- */

/* "fill ADDRESS BYTE SIZE" */
static void run_fill(struct step *s)
{
	uint64_t size = step_number(s, 2);

	CALL(s, aclrtMemset, step_pointer(s, 0), step_option_number(s, "room", size),
	     (int32_t)step_number(s, 1), size);
}

/* "read ADDRESS [SIZE]": shows the first and the last byte, or "mixed" if those between differ from
 * both. */
static void run_read(struct step *s)
{
	uint64_t size = step_number(s, 1) == 0 ? 1 : step_number(s, 1);
	uint8_t *bytes = calloc(1, size);
	bool mixed = false;

	if (bytes == NULL)
		return;
	if (CALL(s, aclrtMemcpy, bytes, size, step_pointer(s, 0), size,
		 ACL_MEMCPY_DEVICE_TO_HOST) == 0) {
		for (uint64_t i = 1; i + 1 < size; i++)
			mixed = mixed || (bytes[i] != bytes[0] && bytes[i] != bytes[size - 1]);
		if (size == 1)
			step_show(s, "%u", bytes[0]);
		else
			step_show(s, "%u %u%s", bytes[0], bytes[size - 1], mixed ? " mixed" : "");
	}
	free(bytes);
}

/* "write ADDRESS BYTE SIZE [room=]": from ordinary host memory. */
static void run_write(struct step *s)
{
	uint64_t size = step_number(s, 2);
	uint8_t *bytes = malloc(size == 0 ? 1 : size);

	if (bytes == NULL)
		return;
	memset(bytes, (int)step_number(s, 1), size);
	CALL(s, aclrtMemcpy, step_pointer(s, 0), step_option_number(s, "room", size), bytes, size,
	     ACL_MEMCPY_HOST_TO_DEVICE);
	free(bytes);
}

/* "copy TO FROM SIZE [kind=]" */
static void run_copy(struct step *s)
{
	uint64_t size = step_number(s, 2);

	CALL(s, aclrtMemcpy, step_pointer(s, 0), size, step_pointer(s, 1), size,
	     (aclrtMemcpyKind)step_option_number(s, "kind", ACL_MEMCPY_DEVICE_TO_DEVICE));
}

/* "copy-async TO FROM SIZE [kind=]": in a stream of its own, which it waits for; the first failure
 * counts. */
static void run_copy_async(struct step *s)
{
	uint64_t size = step_number(s, 2);
	aclrtStream stream = NULL;
	int first;

	if (CALL(s, aclrtCreateStream, &stream) != 0)
		return;
	first = CALL(s, aclrtMemcpyAsync, step_pointer(s, 0), size, step_pointer(s, 1), size,
		     (aclrtMemcpyKind)step_option_number(s, "kind", ACL_MEMCPY_DEVICE_TO_DEVICE),
		     stream);
	if (first == 0)
		first = CALL(s, aclrtSynchronizeStream, stream);
	if (first == 0) {
		CALL(s, aclrtDestroyStream, stream);
		return;
	}
	/* not by CALL: the message of the failure is still to be read */
	((__typeof__(aclrtDestroyStream) *)step_function(s, "aclrtDestroyStreamForce"))(stream);
	s->function = NULL;
	s->answer->code = first;
}

/* ---- by the processor ---- */

static void run_poke(struct step *s)
{
	*(volatile uint8_t *)step_pointer(s, 0) = (uint8_t)step_number(s, 1);
}

static void run_peek(struct step *s)
{
	step_show(s, "%u", *(volatile uint8_t *)step_pointer(s, 0));
}

const struct verb transfer_verbs[] = {
	{ "malloc", run_malloc },
	{ "free", run_free },
	{ "malloc-host", run_malloc_host },
	{ "free-host", run_free_host },
	{ "plain", run_plain },
	{ "fill", run_fill },
	{ "read", run_read },
	{ "write", run_write },
	{ "copy", run_copy },
	{ "copy-async", run_copy_async },
	{ "poke", run_poke },
	{ "peek", run_peek },
	{ NULL, NULL },
};
