/* SPDX-License-Identifier: Apache-2.0
 *
 * Warns about waits without progress: a program that waits for a stream on which nothing happens
 * is told, once per wait, which task is at its head and what would complete it. It decides
 * nothing: the wait goes on.
 */
#include "core/object/stream.h"

#include "base/clock.h"
#include "core/object/process.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 4u /* streams that wait for each other and are named */

/* ---- what the head of a stream waits for ---- */

static void add_value(char **report, const struct npu_head *head)
{
	static const char *const compares[] = { "at least", "equal to", "with a bit of",
						"with a bit that is clear in it and in" };

	npu_text_add(report,
		     "waits for a value at 0x%" PRIx64 " %s 0x%" PRIx64 ", where 0x%" PRIx64
		     " is: a write of such a value ends the wait",
		     head->va, head->compare < 4 ? compares[head->compare] : "compared with",
		     head->wanted, head->found);
}

/* False: the stream moves, or has nothing to do. */
static bool add_head(char **report, struct core_stream *stream, void **out_next)
{
	struct core_stall stall = { .next = NULL };
	struct npu_head head = { .kind = NPU_HEAD_RUNS };
	const struct core_done *first;
	unsigned task;
	drvError_t code;
	int32_t id;

	pthread_mutex_lock(&stream->lock);
	first = &stream->pending[(stream->done + 1) % CORE_QUEUE_DEPTH];
	task = (unsigned)((stream->done + 1) & (CORE_TASK_IDS - 1));
	id = stream->id;
	if (first->describe != NULL)
		first->describe(first->arg, &stall);
	pthread_mutex_unlock(&stream->lock);
	code = core_call(npusimAwait, stream->device, (uint32_t)id, stream->logic_cq, 0, &head);
	if (code != DRV_ERROR_NOT_SUPPORT &&
	    (code != DRV_ERROR_WAIT_TIMEOUT || head.kind == NPU_HEAD_NONE ||
	     head.kind == NPU_HEAD_RUNS || head.task != task))
		return false;
	npu_text_add(report, "task %u of stream %d ", task, id);
	if (stall.text[0] != '\0')
		npu_text_add(report, "%s", stall.text);
	else if (head.kind == NPU_HEAD_VALUE)
		add_value(report, &head);
	else if (head.kind == NPU_HEAD_NOTIFY)
		npu_text_add(report,
			     "waits for notify %u of device %u, which nobody has recorded: "
			     "aclrtRecordNotify ends the wait",
			     head.id, head.device);
	else if (head.kind == NPU_HEAD_STOPPED)
		npu_text_add(report, "is not done, for aclrtStreamStop has stopped the stream: "
				     "aclrtStreamAbort clears it");
	else
		npu_text_add(report, "is not done");
	*out_next = stall.next;
	return true;
}

static bool add_chain(char **report, struct core_stream *stream)
{
	void *next = NULL;

	if (!add_head(report, stream, &next))
		return false;
	for (unsigned i = 1; i < CHAIN_MAX && next != NULL; i++) {
		struct core_stream *other = core_pool_find(&core_streams, next);
		size_t length = *report != NULL ? strlen(*report) : 0;

		if (other == NULL || other == stream)
			break;
		npu_text_add(report, "; there ");
		if (add_head(report, other, &next))
			continue;
		if (*report != NULL)
			(*report)[length] = '\0';
		break;
	}
	return true;
}

/* ---- when it is said ---- */

static uint64_t patience_ns(void)
{
	const char *value = npu_var_get(NPU_VAR_PATIENCE, NULL);
	double seconds = strtod(value, NULL);

	return strcmp(value, "off") == 0 ? UINT64_MAX : (uint64_t)(seconds * 1e9);
}

uint32_t core_stall_due_locked(const struct core_stream *stream, struct core_wait *wait)
{
	uint64_t now, passed, left_ms;

	if (wait->call == NULL || wait->deadline_ns != UINT64_MAX)
		return UINT32_MAX;
	if (wait->since_ns == 0)
		wait->patience_ns = patience_ns();
	if (wait->patience_ns == UINT64_MAX)
		return UINT32_MAX;
	now = clock_now_ns();
	if (wait->since_ns == 0 || wait->seen != stream->done) {
		wait->since_ns = now;
		wait->seen = stream->done;
	}
	passed = now - wait->since_ns;
	if (passed >= wait->patience_ns)
		return 0;
	left_ms = (wait->patience_ns - passed) / 1000000 + 1;
	return left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
}

void core_stall_tell_locked(struct core_stream *stream, struct core_wait *wait)
{
	bool findable = core_slot_handle(stream) != NULL && !stream->is_default;
	char *report = NULL;

	if (!core_wait_holds(stream, wait) || core_stall_due_locked(stream, wait) != 0)
		return;
	pthread_mutex_unlock(&stream->lock);
	npu_text_add(&report,
		     "%s has waited for stream %d for %.3g s in which nothing of it was done: ",
		     wait->call, stream->id, (double)wait->patience_ns * 1e-9);
	if (add_chain(&report, stream)) {
		if (findable)
			npu_text_add(&report,
				     "; aclrtDestroyStreamForce drops what is queued on a stream");
		npu_log(NPU_LOG_WARN, "%s", report != NULL ? report : wait->call);
		wait->patience_ns = UINT64_MAX;
	} else {
		wait->since_ns = clock_now_ns();
	}
	free(report);
	pthread_mutex_lock(&stream->lock);
}
