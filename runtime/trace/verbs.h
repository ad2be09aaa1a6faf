/* SPDX-License-Identifier: Apache-2.0
 *
 * The name of each verb of a trace and the keys that it requires, for reader and writer alike.
 */
#ifndef NPUSIM_TRACE_VERBS_H
#define NPUSIM_TRACE_VERBS_H

#include "npusim/trace.h"

#define TRACE_DEVICE_LAST 1023 /* ids above it are taken for damage */

struct trace_verb {
	const char *word;
	uint8_t length;
	char kind;      /* of the name; 0: none is needed */
	bool place;     /* the name is an address: its offset is always written */
	bool event;     /* of an allocator above */
	uint32_t needs; /* enum npu_trace_has */
	const char *op; /* op= that tells it from another verb of this word */
};
extern const struct trace_verb trace_verbs[NPU_TRACE_VERB_COUNT];

/* What is wrong with the record, as "map needs handle=", in text[room]; false. */
bool trace_verb_check(const struct npu_trace_record *record, char *text, size_t room);

#endif
