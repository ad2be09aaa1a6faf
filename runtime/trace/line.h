/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a trace: their verbs, the keys that each requires, and the keys of a line, for
 * reader and writer alike; and their text, built in a buffer of the caller's: npu_trace_line() of
 * npusim/trace.h, and the parts of info lines.
 */
#ifndef NPUSIM_TRACE_LINE_H
#define NPUSIM_TRACE_LINE_H

#include <stddef.h>

#include "npusim/trace.h"

#define TRACE_DEVICE_LAST 1023 /* ids above it are taken for damage */

struct trace_verb {
	const char *word;
	char kind;      /* of the name; 0: none is needed */
	bool place;     /* the name is an address: its offset is always written */
	bool event;     /* of an allocator above */
	uint32_t needs; /* enum npu_trace_has */
	const char *op; /* op= that tells it from another verb of this word */
};
extern const struct trace_verb trace_verbs[NPU_TRACE_VERB_COUNT];

enum trace_key_kind {
	TRACE_KEY_NUMBER,
	TRACE_KEY_HINT, /* a number for people: what is none is no error */
	TRACE_KEY_NAME, /* of the kinds of `text` */
	TRACE_KEY_FLAG, /* set if the value is `text` */
	TRACE_KEY_DEVICE,
	TRACE_KEY_PAGE,
	TRACE_KEY_OP,
	TRACE_KEY_SITE
};
struct trace_key {
	const char *word;
	enum trace_key_kind kind;
	uint32_t bit;   /* enum npu_trace_has, or TRACE_HAS_VERB_OP */
	uint32_t verbs; /* those that it is written of, as bits; 0: all. It is read of any */
	size_t field;   /* of the record: where the value lies */
	const char *text;
	bool hexadecimal; /* as it is written */
};
#define TRACE_HAS_VERB_OP (UINT32_C(1) << 31) /* op= tells the verb */
/* The keys, in the order of a line; ends with a NULL word. */
extern const struct trace_key trace_keys[];

/* What is wrong with the record, as "map needs handle=", in text[room]; false. */
bool trace_verb_check(const struct npu_trace_record *record, char *text, size_t room);

#define TRACE_FIRST_LINE "npusim-trace 1\n"

struct trace_text {
	char *at, *end;
	bool full; /* something did not go in, and was left out */
};

void trace_text_put(struct trace_text *text, const char *bytes, size_t count);
void trace_text_word(struct trace_text *text, const char *word);
/* With each blank, '%' and control character as %XX. */
void trace_text_put_value(struct trace_text *text, const char *value);

#endif
