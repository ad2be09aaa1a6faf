/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of verbs and keys, and the rules that hold for a record whatever wrote it.
 */
#include "trace/verbs.h"

#include <inttypes.h>
#include <stdio.h>

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

#define HAS(what)      NPU_TRACE_HAS_##what
#define IN(name)       .field = offsetof(struct npu_trace_record, name)
#define OF(one, other) (1u << NPU_TRACE_##one | 1u << NPU_TRACE_##other)
const struct trace_key trace_keys[] = {
	{ "op", TRACE_KEY_OP, HAS(OP), IN(op) },
	{ "size", TRACE_KEY_NUMBER, HAS(SIZE), IN(size) },
	{ "share", TRACE_KEY_NAME, HAS(SHARE), IN(share), .text = "s" },
	{ "id", TRACE_KEY_DEVICE, HAS(DEVICE), IN(device), .verbs = OF(DEVICE_SET, DEVICE_RESET) },
	{ "device", TRACE_KEY_DEVICE, HAS(DEVICE), IN(device),
	  .verbs = ~OF(DEVICE_SET, DEVICE_RESET) },
	{ "page", TRACE_KEY_PAGE, HAS(PAGE), IN(page_lg2) },
	{ "handle", TRACE_KEY_NAME, HAS(HANDLE), IN(handle), .text = "h" },
	{ "align", TRACE_KEY_NUMBER, HAS(ALIGN), IN(align) },
	{ "hint", TRACE_KEY_NUMBER, HAS(HINT), IN(hint), .hexadecimal = true },
	{ "at", TRACE_KEY_NAME, HAS(AT), IN(at), .text = "ra", .verbs = ~OF(COPY, FILL) },
	{ "dst", TRACE_KEY_NAME, HAS(AT), IN(at), .text = "ra", .verbs = OF(COPY, FILL) },
	{ "src", TRACE_KEY_NAME, HAS(FROM), IN(from), .text = "ra" },
	{ "flags", TRACE_KEY_NUMBER, HAS(FLAGS), IN(flags) },
	{ "key", TRACE_KEY_HINT, HAS(KEY), IN(key), .hexadecimal = true },
	{ "rounded", TRACE_KEY_NUMBER, HAS(ROUNDED), IN(rounded) },
	{ "va", TRACE_KEY_HINT, HAS(VA), IN(va), .hexadecimal = true },
	{ "type", TRACE_KEY_HINT, HAS(TYPE), IN(type) },
	{ "access", TRACE_KEY_FLAG, HAS(NO_ACCESS), .text = "none" },
	{ "stream", TRACE_KEY_NUMBER, HAS(STREAM), IN(stream) },
	{ "start", TRACE_KEY_FLAG, HAS(START), .text = "1" },
	{ "pool", TRACE_KEY_FLAG, HAS(SMALL), .text = "small" },
	{ "free", TRACE_KEY_NUMBER, HAS(FREE), IN(free_bytes) },
	{ "op", TRACE_KEY_OP, TRACE_HAS_VERB_OP, IN(op) },
	{ "site", TRACE_KEY_SITE, HAS(SITE), IN(site) },
	{ .word = NULL },
};

const char *npu_trace_verb_name(enum npu_trace_verb verb)
{
	return (unsigned)verb < NPU_TRACE_VERB_COUNT ? trace_verbs[verb].word : NULL;
}

bool trace_key_of(const struct trace_key *key, uint32_t verb)
{
	return key->verbs == 0 || (key->verbs >> verb & 1) != 0;
}

bool trace_verb_check(const struct npu_trace_record *r, char *text, size_t room)
{
	const struct trace_verb *verb = &trace_verbs[r->verb];
	uint32_t lacks = verb->needs & ~r->has;
	const struct trace_key *key = trace_keys;

	while (lacks != 0 && ((key->bit & lacks) == 0 || !trace_key_of(key, r->verb)))
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
