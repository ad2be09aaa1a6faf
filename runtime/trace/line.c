/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of verbs and keys, the rules that hold for a record whatever wrote it, and the text of
 * a record, for every writer of npusim. It allocates no memory, and is fast enough to run inside a
 * call.
 */
#include "trace/line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	SIZE = NPU_TRACE_HAS_SIZE,
	DEVICE = NPU_TRACE_HAS_DEVICE,
	HANDLE = NPU_TRACE_HAS_HANDLE,
	SHARE = NPU_TRACE_HAS_SHARE,
	AT = NPU_TRACE_HAS_AT,
};

const struct trace_verb trace_verbs[NPU_TRACE_VERB_COUNT] = {
	[NPU_TRACE_DEVICE_SET] = { "device", .needs = DEVICE, .op = "set" },
	[NPU_TRACE_DEVICE_RESET] = { "device", .needs = DEVICE, .op = "reset" },
	[NPU_TRACE_RESERVE] = { "reserve", .kind = 'r', .needs = SIZE },
	[NPU_TRACE_UNRESERVE] = { "unreserve", .kind = 'r' },
	[NPU_TRACE_CREATE] = { "create", .kind = 'h', .needs = SIZE | DEVICE },
	[NPU_TRACE_RELEASE] = { "release", .kind = 'h' },
	[NPU_TRACE_RETAIN] = { "retain", .kind = 'h', .needs = AT },
	[NPU_TRACE_MAP] = { "map", .kind = 'r', .place = true, .needs = SIZE | HANDLE },
	[NPU_TRACE_UNMAP] = { "unmap", .kind = 'r', .place = true },
	[NPU_TRACE_ACCESS] = { "access", .kind = 'r', .place = true, .needs = SIZE | DEVICE },
	[NPU_TRACE_EXPORT] = { "export", .kind = 's', .needs = HANDLE },
	[NPU_TRACE_IMPORT] = { "import", .kind = 'h', .needs = SHARE | DEVICE },
	[NPU_TRACE_MALLOC] = { "malloc", .kind = 'a', .needs = SIZE | DEVICE },
	[NPU_TRACE_MFREE] = { "mfree", .kind = 'a' },
	[NPU_TRACE_COPY] = { "copy", .needs = SIZE },
	[NPU_TRACE_FILL] = { "fill", .needs = SIZE },
	[NPU_TRACE_CALL] = { "call" },
	[NPU_TRACE_SEGMENT_ALLOC] = { "segment_alloc", .kind = 'a', .event = true,
				      .needs = SIZE | DEVICE },
	[NPU_TRACE_SEGMENT_FREE] = { "segment_free", .kind = 'a', .event = true, .needs = DEVICE },
	[NPU_TRACE_SEGMENT_MAP] = { "segment_map", .kind = 'r', .place = true, .event = true,
				    .needs = SIZE | DEVICE },
	[NPU_TRACE_SEGMENT_UNMAP] = { "segment_unmap", .kind = 'r', .place = true, .event = true,
				      .needs = SIZE | DEVICE },
	[NPU_TRACE_ALLOC] = { "alloc", .kind = 'b', .event = true, .needs = SIZE | DEVICE },
	[NPU_TRACE_FREE] = { "free", .kind = 'b', .event = true, .needs = DEVICE },
	[NPU_TRACE_FREE_REQUESTED] = { "free", .kind = 'b', .event = true, .needs = DEVICE,
				       .op = "requested" },
	[NPU_TRACE_OOM] = { "oom", .event = true, .needs = SIZE | DEVICE },
	[NPU_TRACE_NOTE] = { "note", .event = true, .needs = DEVICE },
};

#define BIT(what)      NPU_TRACE_HAS_##what
#define IN(name)       .field = offsetof(struct npu_trace_record, name)
#define OF(one, other) (1u << NPU_TRACE_##one | 1u << NPU_TRACE_##other)
const struct trace_key trace_keys[] = {
	{ "op", TRACE_KEY_OP, BIT(OP), IN(op) },
	{ "size", TRACE_KEY_NUMBER, BIT(SIZE), IN(size) },
	{ "share", TRACE_KEY_NAME, BIT(SHARE), IN(share), .text = "s" },
	{ "id", TRACE_KEY_DEVICE, BIT(DEVICE), IN(device), .verbs = OF(DEVICE_SET, DEVICE_RESET) },
	{ "device", TRACE_KEY_DEVICE, BIT(DEVICE), IN(device),
	  .verbs = ~OF(DEVICE_SET, DEVICE_RESET) },
	{ "page", TRACE_KEY_PAGE, BIT(PAGE), IN(page_lg2) },
	{ "handle", TRACE_KEY_NAME, BIT(HANDLE), IN(handle), .text = "h" },
	{ "align", TRACE_KEY_NUMBER, BIT(ALIGN), IN(align) },
	{ "hint", TRACE_KEY_NUMBER, BIT(HINT), IN(hint), .hexadecimal = true },
	{ "at", TRACE_KEY_NAME, BIT(AT), IN(at), .text = "ra", .verbs = ~OF(COPY, FILL) },
	{ "dst", TRACE_KEY_NAME, BIT(AT), IN(at), .text = "ra", .verbs = OF(COPY, FILL) },
	{ "src", TRACE_KEY_NAME, BIT(FROM), IN(from), .text = "ra" },
	{ "flags", TRACE_KEY_NUMBER, BIT(FLAGS), IN(flags) },
	{ "key", TRACE_KEY_HINT, BIT(KEY), IN(key), .hexadecimal = true },
	{ "rounded", TRACE_KEY_NUMBER, BIT(ROUNDED), IN(rounded) },
	{ "va", TRACE_KEY_HINT, BIT(VA), IN(va), .hexadecimal = true },
	{ "type", TRACE_KEY_HINT, BIT(TYPE), IN(type) },
	{ "access", TRACE_KEY_FLAG, BIT(NO_ACCESS), .text = "none" },
	{ "stream", TRACE_KEY_NUMBER, BIT(STREAM), IN(stream) },
	{ "start", TRACE_KEY_FLAG, BIT(START), .text = "1" },
	{ "pool", TRACE_KEY_FLAG, BIT(SMALL), .text = "small" },
	{ "free", TRACE_KEY_NUMBER, BIT(FREE), IN(free_bytes) },
	{ "op", TRACE_KEY_OP, TRACE_HAS_VERB_OP, IN(op) },
	{ "site", TRACE_KEY_SITE, BIT(SITE), IN(site) },
	{ .word = NULL },
};

const char *npu_trace_verb_name(enum npu_trace_verb verb)
{
	return (unsigned)verb < NPU_TRACE_VERB_COUNT ? trace_verbs[verb].word : NULL;
}

/* Whether it is written of that verb. */
static bool is_key_of(const struct trace_key *key, uint32_t verb)
{
	return key->verbs == 0 || (key->verbs >> verb & 1) != 0;
}

bool trace_verb_check(const struct npu_trace_record *r, char *text, size_t room)
{
	const struct trace_verb *verb = &trace_verbs[r->verb];
	uint32_t lacks = verb->needs & ~r->has;
	const struct trace_key *key = trace_keys;

	while (lacks != 0 && ((key->bit & lacks) == 0 || !is_key_of(key, r->verb)))
		key++;
	/* a call that failed may name what is not there, "host", or any device */
	if (verb->kind != 0 && r->name.kind != verb->kind &&
	    (r->code == 0 || r->name.kind != NPU_TRACE_NAME_HOST))
		snprintf(text, room, "%s needs a name %cN", verb->word, verb->kind);
	else if (lacks != 0)
		snprintf(text, room, "%s needs %s=", verb->word, key->word);
	else if (r->device > TRACE_DEVICE_LAST && r->code == 0)
		snprintf(text, room, "device is %" PRId64 ", the last is %d", r->device,
			 TRACE_DEVICE_LAST);
	else if (verb->event && r->device < 0)
		snprintf(text, room, "%s is about a device", verb->word);
	else
		return true;
	return false;
}

#define HAS(record, what) (((record)->has & NPU_TRACE_HAS_##what) != 0)

void trace_text_put(struct trace_text *text, const char *bytes, size_t count)
{
	if (count > (size_t)(text->end - text->at)) {
		text->full = true;
		return;
	}
	memcpy(text->at, bytes, count);
	text->at += count;
}

void trace_text_word(struct trace_text *text, const char *word)
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
	trace_text_word(text, key);
	put_number(text, number, 10);
}

static void put_name(struct trace_text *text, const struct npu_trace_name *name, bool place)
{
	if (name->kind == NPU_TRACE_NAME_HOST) {
		trace_text_word(text, "host");
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

static void put_stamp(struct trace_text *text, bool there, const char *sign, uint64_t time)
{
	if (there) {
		put_key(text, sign, time);
		trace_text_word(text, " ");
	}
}

static void put_stamps(struct trace_text *text, const struct npu_trace_record *r)
{
	put_stamp(text, HAS(r, HOST_NS), "@", r->host_ns);
	put_stamp(text, HAS(r, TOOK), "+", r->took_ns);
	put_stamp(text, HAS(r, SIMULATED), "~", r->simulated_ps);
	if (HAS(r, THREAD)) {
		put_key(text, ":", r->process);
		put_key(text, ".", r->thread);
		trace_text_word(text, " ");
	}
}

/* Adds it; or what is wrong with one that cannot be written. */
static const char *put_value(struct trace_text *text, const struct npu_trace_record *r,
			     const struct trace_key *key)
{
	const void *field = (const char *)r + key->field;
	const char *words;

	switch (key->kind) {
	case TRACE_KEY_NUMBER:
	case TRACE_KEY_HINT:
		trace_text_word(text, key->hexadecimal ? "0x" : "");
		put_number(text, *(const uint64_t *)field, key->hexadecimal ? 16 : 10);
		break;
	case TRACE_KEY_NAME:
		if (!is_of(field, key->text))
			return "no name of a kind that is right there";
		put_name(text, field, key->text[0] == 'r');
		break;
	case TRACE_KEY_FLAG:
		trace_text_word(text, key->text);
		break;
	case TRACE_KEY_DEVICE:
		if (r->device < NPU_TRACE_HOST || r->device > UINT32_MAX)
			return "neither NPU_TRACE_HOST nor a number of 32 bits";
		if (r->device == NPU_TRACE_HOST)
			trace_text_word(text, "host");
		else
			put_number(text, (uint64_t)r->device, 10);
		break;
	case TRACE_KEY_PAGE:
		if (r->page_lg2 != 12 && r->page_lg2 != 21 && r->page_lg2 != 30)
			return "not that of page_lg2 12, 21 or 30";
		trace_text_word(text, r->page_lg2 == 12 ? "4k" : r->page_lg2 == 21 ? "2m" : "1g");
		break;
	case TRACE_KEY_OP:
	case TRACE_KEY_SITE:
		words = *(const char *const *)field;
		if (words == NULL)
			return "NULL";
		trace_text_put_value(text, words);
	}
	return NULL;
}

/* What the call was given and answered. False: why it cannot be written. */
static bool put_keys(struct trace_text *text, const struct npu_trace_record *r, char *why,
		     size_t room)
{
	for (const struct trace_key *key = trace_keys; key->word != NULL; key++) {
		const char *bad;

		if ((r->has & key->bit) == 0 || !is_key_of(key, r->verb))
			continue;
		trace_text_word(text, " ");
		trace_text_word(text, key->word);
		trace_text_word(text, "=");
		bad = put_value(text, r, key);
		if (bad != NULL) {
			snprintf(why, room, "%s is %s", key->word, bad);
			return false;
		}
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
	trace_text_word(&text, verb->word);
	if (HAS(&r, NAME)) {
		trace_text_word(&text, " ");
		put_name(&text, &r.name, verb->place);
	}
	if (!put_keys(&text, &r, why, sizeof(why)))
		return refuse(-EINVAL, out_error, why);
	trace_text_word(&text, "\n");
	if (text.full)
		return refuse(-E2BIG, out_error,
			      "the line is longer than the room for it, or than 64 KiB");
	*text.at = '\0';
	return (int)(text.at - out);
}
