/* SPDX-License-Identifier: Apache-2.0
 *
 * Whitelists: which processes may import. A process is its pid and its start time, so that a pid
 * that is used again is another process. One pool of entries for all shares and names; a list is a
 * chain through it.
 */
#include "node-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 0 for no process. False, and a message: it cannot be seen. */
static bool look_at(int pid, uint64_t *out_start_time)
{
	struct process_stat stat = { .start_time = 0 };
	bool known = pid <= 0 || process_stat(pid, 0, &stat) || errno == ENOENT || errno == ESRCH;

	*out_start_time = stat.start_time;
	if (!known)
		npu_message_set("whitelist: process %d cannot be looked at: %s", pid,
				strerror(errno));
	return known;
}

uint64_t *allow_start_times(const int *pids, uint32_t count, drvError_t *out_error)
{
	uint64_t *start_times;
	bool any = false;

	if (!pids || count == 0 || count > NODE_ALLOW_MAX) {
		npu_message_set("whitelist: %u pids at %p; 1 to %u are possible", count,
				(const void *)pids, NODE_ALLOW_MAX);
		*out_error = DRV_ERROR_INVALID_VALUE;
		return NULL;
	}
	start_times = node_alloc(count * sizeof(*start_times));
	for (uint32_t i = 0; i < count; i++) {
		if (!look_at(pids[i], &start_times[i])) {
			free(start_times);
			*out_error = DRV_ERROR_NO_RESOURCES;
			return NULL;
		}
		any |= pids[i] != 0;
	}
	if (any)
		return start_times;
	free(start_times);
	npu_message_set("whitelist: all of the %u pids are 0", count);
	*out_error = DRV_ERROR_PARA_ERROR;
	return NULL;
}

static uint32_t take_entry(struct node *node)
{
	struct control *control = node->control;
	uint32_t entry = control->allow_free;

	if (entry) {
		PUT(control->allow_free, node->allows[entry - 1].next);
		return entry;
	}
	if (control->allow_top == NODE_ALLOWS)
		return 0;
	PUT(control->allow_top, control->allow_top + 1);
	return control->allow_top;
}

/* The entry of that pid, or 0; *length becomes the chain's. */
static uint32_t find_pid(const struct node *node, uint32_t chain, int pid, uint32_t *length)
{
	*length = 0;
	for (; chain; chain = node->allows[chain - 1].next, ++*length)
		if (node->allows[chain - 1].pid == pid)
			return chain;
	return 0;
}

drvError_t allow_add(struct node *node, uint32_t *chain, const int *pids,
		     const uint64_t *start_times, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t length, entry = find_pid(node, *chain, pids[i], &length);
		struct allow_record *record;

		if (pids[i] == 0)
			continue;
		if (entry) {
			PUT(node->allows[entry - 1].start_time, start_times[i]);
			continue;
		}
		entry = length < NODE_ALLOW_MAX ? take_entry(node) : 0;
		if (!entry) {
			npu_message_set("whitelist: no room for process %d: %s is full", pids[i],
					length < NODE_ALLOW_MAX ? "the node's pool of entries"
								: "the list (65535 entries)");
			return DRV_ERROR_PARA_ERROR;
		}
		record = &node->allows[entry - 1];
		PUT(record->pid, pids[i]);
		PUT(record->start_time, start_times[i]);
		PUT(record->next, *chain);
		PUT(*chain, entry);
	}
	return DRV_ERROR_NONE;
}

enum allow_answer allow_check(const struct node *node, uint32_t chain)
{
	uint32_t length, entry = find_pid(node, chain, node->pid, &length);

	if (!entry)
		return ALLOW_NO;
	return node->allows[entry - 1].start_time == node->start_time ? ALLOW_YES : ALLOW_STALE;
}

drvError_t allow_refuse(const struct node *node, enum allow_answer answer, const char *what,
			pid_t exporter)
{
	if (answer == ALLOW_STALE)
		npu_message_set(
			"import of %s: pid %d was whitelisted before this process started, so "
			"another process was meant "
			"(the number has been used again); process %d must whitelist it now",
			what, node->pid, exporter);
	else
		npu_message_set("import of %s: this process (pid %d) is not on the whitelist of "
				"process %d, which exported it; that "
				"process must add it (aclrtMemSetPidToShareableHandle, "
				"aclrtIpcMemSetImportPid) or export with the "
				"flag that disables the check",
				what, node->pid, exporter);
	return DRV_ERROR_IOCRL_FAIL;
}

void allow_give_back(struct node *node, uint32_t chain)
{
	uint32_t last = chain;

	if (!chain)
		return;
	while (node->allows[last - 1].next)
		last = node->allows[last - 1].next;
	PUT(node->allows[last - 1].next, node->control->allow_free);
	PUT(node->control->allow_free, chain);
}

/* ---- after a death with the lock held ---- */

static void mark_chain(const struct node *node, uint32_t chain, uint64_t *marks)
{
	for (; chain; chain = node->allows[chain - 1].next)
		marks[(chain - 1) / 64] |= UINT64_C(1) << ((chain - 1) % 64);
}

void allow_rebuild(struct node *node)
{
	struct control *control = node->control;
	uint32_t before = control->allow_top, top = 0, chain;
	uint64_t *marks = node_alloc((before / 64 + 1) * sizeof(*marks));

	for (uint32_t i = 0; i < control->share_limit; i++)
		if (share_chain(node, i, &chain))
			mark_chain(node, chain, marks);
	for (uint32_t i = 0; i < control->name_limit; i++)
		if (node->names[i].state)
			mark_chain(node, node->names[i].allow, marks);
	for (uint32_t i = 0; i < before; i++)
		if (marks[i / 64] >> (i % 64) & 1)
			top = i + 1;
	PUT(control->allow_free, 0);
	for (uint32_t i = 0; i < top; i++)
		if (!(marks[i / 64] >> (i % 64) & 1)) {
			PUT(node->allows[i].next, control->allow_free);
			PUT(control->allow_free, i + 1);
		}
	PUT(control->allow_top, top);
	free(marks);
}
