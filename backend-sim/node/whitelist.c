/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the whitelists of shares and names: which processes may import. A process is identified by
 * its pid and its start time, so that a reused pid is another process. All entries come from one
 * pool; a list is a chain through it.
 */
#include "records.h"

#include <errno.h>
#include <string.h>

#include "process.h"

drvError_t allow_check_pids(const int *pids, uint32_t count)
{
	uint32_t none = 0;

	if (!pids || count == 0 || count > NODE_ALLOW_MAX)
		return node_fail(DRV_ERROR_INVALID_VALUE,
				 "whitelist: %u pids at %p; 1 to %u are possible", count,
				 (const void *)pids, NODE_ALLOW_MAX);
	while (none < count && pids[none] == 0)
		none++;
	return none < count ? DRV_ERROR_NONE
			    : node_fail(DRV_ERROR_PARA_ERROR, "whitelist: all of the %u pids are 0",
					count);
}

drvError_t allow_look_at(const int *pids, uint32_t count, uint64_t *out_start_times)
{
	for (uint32_t i = 0; i < count; i++) {
		struct process_stat stat = { .start_time = 0 };

		if (pids[i] > 0 && !process_stat(pids[i], 0, &stat) && errno != ENOENT &&
		    errno != ESRCH)
			return node_fail(DRV_ERROR_NO_RESOURCES,
					 "whitelist: process %d cannot be looked at: %s", pids[i],
					 strerror(errno));
		out_start_times[i] = stat.start_time;
	}
	return DRV_ERROR_NONE;
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
		     const uint64_t *start_times, uint32_t count, unsigned server)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t length, entry = find_pid(node, *chain, pids[i], &length);
		struct allow_record *record;

		if (pids[i] == 0)
			continue;
		if (entry) {
			PUT(node->allows[entry - 1].server, server);
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
		PUT(record->server, server);
		PUT(record->start_time, start_times[i]);
		PUT(record->next, *chain);
		PUT(*chain, entry);
	}
	return DRV_ERROR_NONE;
}

enum allow_answer allow_check(const struct node *node, uint32_t chain)
{
	uint32_t length, entry = find_pid(node, chain, node->pid, &length);

	if (!entry || node->allows[entry - 1].server != node->shape.server)
		return ALLOW_NO;
	return node->allows[entry - 1].start_time == node->start_time ? ALLOW_YES : ALLOW_STALE;
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
