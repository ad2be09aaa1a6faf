/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a record as a line, for every writer of npusim. It allocates no memory, and is fast
 * enough to run inside a call.
 */
#include "trace/line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trace/verbs.h"

#define HAS(record, what) (((record)->has & NPU_TRACE_HAS_##what) != 0)

/* ---- text ---- */

void trace_text_put(struct trace_text *text, const char *bytes, size_t count)
{
	if (count > (size_t)(text->end - text->at)) {
		text->full = true;
		return;
	}
	memcpy(text->at, bytes, count);
	text->at += count;
}

static void put_word(struct trace_text *text, const char *word)
{
	trace_text_put(text, word, strlen(word));
}

static void put_number(struct trace_text *text, uint64_t number, unsigned base)
{
	char digits[20], *at = digits + sizeof(digits);

	do
		*--at = "0123456789abcdef"[number % base];
	while ((number /= base) != 0);
	trace_text_put(text, at, (size_t)(digits + sizeof(digits) - at));
}

void trace_text_put_value(struct trace_text *text, const char *value)
{
	for (; *value != '\0'; value++) {
		unsigned char c = (unsigned char)*value;
		char code[3] = { '%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15] };

		if (c <= ' ' || c == '%' || c == 0x7f)
			trace_text_put(text, code, sizeof(code));
		else
			trace_text_put(text, value, 1);
	}
}

static void put_key(struct trace_text *text, const char *key, uint64_t number)
{
	put_word(text, key);
	put_number(text, number, 10);
}

/* ---- names ---- */

static void put_name(struct trace_text *text, const struct npu_trace_name *name, bool place)
{
	if (name->kind == NPU_TRACE_NAME_HOST) {
		put_word(text, "host");
		return;
	}
	trace_text_put(text, &name->kind, 1);
	put_number(text, name->number, 10);
	if (place || name->offset != 0)
		put_key(text, "+", name->offset);
}

static bool is_of(const struct npu_trace_name *name, const char *kinds)
{
	return name->kind == NPU_TRACE_NAME_HOST ||
	       (name->kind != '\0' && strchr(kinds, name->kind) != NULL);
}

/* ---- lines ---- */

static void put_stamps(struct trace_text *text, const struct npu_trace_record *r)
{
	if (HAS(r, HOST_NS)) {
		put_key(text, "@", r->host_ns);
		put_word(text, " ");
	}
	if (HAS(r, SIMULATED)) {
		put_key(text, "~", r->simulated_ps);
		put_word(text, " ");
	}
	if (HAS(r, THREAD)) {
		put_key(text, ":", r->process);
		put_key(text, ".", r->thread);
		put_word(text, " ");
	}
}

static void put_value(struct trace_text *text, const struct npu_trace_record *r,
		      const struct trace_key *key)
{
	const void *field = (const char *)r + key->field;

	switch (key->kind) {
	case TRACE_KEY_NUMBER:
	case TRACE_KEY_HINT:
		put_word(text, key->hexadecimal ? "0x" : "");
		put_number(text, *(const uint64_t *)field, key->hexadecimal ? 16 : 10);
		break;
	case TRACE_KEY_NAME:
		put_name(text, field, key->text[0] == 'r');
		break;
	case TRACE_KEY_FLAG:
		put_word(text, key->text);
		break;
	case TRACE_KEY_DEVICE:
		if (r->device == NPU_TRACE_HOST)
			put_word(text, "host");
		else
			put_number(text, (uint64_t)r->device, 10);
		break;
	case TRACE_KEY_PAGE:
		put_word(text, r->page_lg2 == 12 ? "4k" : r->page_lg2 == 21 ? "2m" : "1g");
		break;
	case TRACE_KEY_OP:
	case TRACE_KEY_SITE:
		trace_text_put_value(text, *(const char *const *)field);
	}
}

/* What is wrong with a value that cannot be written, or NULL. */
static const char *bad_value(const struct npu_trace_record *r, const struct trace_key *key)
{
	const void *field = (const char *)r + key->field;

	switch (key->kind) {
	case TRACE_KEY_NAME:
		return is_of(field, key->text) ? NULL : "no name of a kind that is right there";
	case TRACE_KEY_DEVICE:
		return r->device >= NPU_TRACE_HOST && r->device <= UINT32_MAX
			       ? NULL
			       : "neither NPU_TRACE_HOST nor a number of 32 bits";
	case TRACE_KEY_PAGE:
		return r->page_lg2 == 12 || r->page_lg2 == 21 || r->page_lg2 == 30
			       ? NULL
			       : "not that of page_lg2 12, 21 or 30";
	case TRACE_KEY_OP:
	case TRACE_KEY_SITE:
		return *(const char *const *)field != NULL ? NULL : "NULL";
	default:
		return NULL;
	}
}

/* What the call was given and answered. False: why it cannot be written. */
static bool put_keys(struct trace_text *text, const struct npu_trace_record *r, char *why,
		     size_t room)
{
	for (const struct trace_key *key = trace_keys; key->word != NULL; key++) {
		const char *bad;

		if ((r->has & key->bit) == 0 || !trace_key_of(key, r->verb))
			continue;
		bad = bad_value(r, key);
		if (bad != NULL) {
			snprintf(why, room, "%s is %s", key->word, bad);
			return false;
		}
		put_word(text, " ");
		put_word(text, key->word);
		put_word(text, "=");
		put_value(text, r, key);
	}
	if (r->code != 0)
		put_key(text, " => ", (uint64_t)r->code);
	return true;
}

static int refuse(int code, char **out_error, const char *why)
{
	if (out_error != NULL)
		*out_error = strdup(why);
	return code;
}

int npu_trace_line(const struct npu_trace_record *record, char *out, size_t room, char **out_error)
{
	size_t limit = room < NPU_TRACE_LINE_MAX ? room : NPU_TRACE_LINE_MAX;
	struct npu_trace_record r = *record;
	struct trace_text text = { .at = out, .end = out + (limit > 0 ? limit - 1 : 0) };
	const struct trace_verb *verb;
	char why[96];

	if (r.verb >= NPU_TRACE_VERB_COUNT)
		return refuse(-EINVAL, out_error, "verb is none of enum npu_trace_verb");
	verb = &trace_verbs[r.verb];
	r.has |= verb->needs | (verb->kind != 0 ? (uint32_t)NPU_TRACE_HAS_NAME : 0);
	if (HAS(&r, NAME) && !is_of(&r.name, "rhsab"))
		return refuse(-EINVAL, out_error, "name is no name");
	if (r.code < 0)
		return refuse(-EINVAL, out_error, "code is negative");
	if (HAS(&r, OP) && r.verb != NPU_TRACE_CALL && r.verb != NPU_TRACE_NOTE)
		return refuse(-EINVAL, out_error, "op belongs to no other verb than call and note");
	if (!trace_verb_check(&r, why, sizeof(why)))
		return refuse(-EINVAL, out_error, why);
	r.has &= ~TRACE_HAS_VERB_OP;
	if (verb->op != NULL) {
		r.has |= TRACE_HAS_VERB_OP;
		r.op = verb->op;
	}
	put_stamps(&text, &r);
	put_word(&text, verb->word);
	if (HAS(&r, NAME)) {
		put_word(&text, " ");
		put_name(&text, &r.name, verb->place);
	}
	if (!put_keys(&text, &r, why, sizeof(why)))
		return refuse(-EINVAL, out_error, why);
	put_word(&text, "\n");
	if (text.full)
		return refuse(-E2BIG, out_error,
			      "the line is longer than the room for it, or than 64 KiB");
	*text.at = '\0';
	return (int)(text.at - out);
}
