/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns calls into records, with names for their addresses, handles and shares.
 */
#include "trace/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/lock.h"
#include "trace/line.h"
#include "trace/recorder-file.h"

#define LINE_BYTES     512
#define SITE_BYTES_MAX 1536 /* of site=, as it is written */

struct trace_call trace_call_begin(const struct trace_recorder *recorder, const char *op)
{
	return (struct trace_call){ .op = op, .host_ns = clock_now_ns() - recorder->start_ns };
}

/* ---- names; the lock is held ---- */

static uint64_t key_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static uint32_t next_number(struct trace_recorder *recorder, char letter)
{
	return ++recorder->numbers[(unsigned char)letter];
}

static struct npu_trace_name name_of(char letter, uint64_t number)
{
	return (struct npu_trace_name){ .kind = letter, .number = (uint32_t)number };
}

static struct npu_trace_name place_of(struct trace_recorder *recorder, uint64_t va)
{
	const struct trace_name *name = trace_name_find(&recorder->places, va);
	struct npu_trace_name out;

	if (name == NULL)
		return name_of(NPU_TRACE_NAME_HOST, 0);
	out = name_of(name->letter, name->number);
	out.offset = va - name->key;
	return out;
}

/* A new place, which the call has got if it answered 0. */
static struct npu_trace_name add_place(struct trace_recorder *recorder,
				       const struct trace_call *call, char letter, const void *va,
				       uint64_t size)
{
	uint32_t number = next_number(recorder, letter);

	if (call->code == 0)
		trace_name_add(&recorder->places,
			       (struct trace_name){ key_of(va), size, number, 1, letter });
	return name_of(letter, number);
}

/* One more reference to a handle that a call has answered. */
static struct npu_trace_name add_handle(struct trace_recorder *recorder,
					const struct trace_call *call, const void *handle)
{
	struct trace_name *name =
		call->code == 0 ? trace_name_find(&recorder->handles, key_of(handle)) : NULL;
	uint32_t number;

	if (name != NULL) {
		name->references++;
		return name_of('h', name->number);
	}
	number = next_number(recorder, 'h');
	if (call->code == 0)
		trace_name_add(&recorder->handles,
			       (struct trace_name){ key_of(handle), 1, number, 1, 'h' });
	return name_of('h', number);
}

/* h0: a handle that the trace has not seen. */
static struct npu_trace_name handle_of(struct trace_recorder *recorder, const void *handle)
{
	const struct trace_name *name = trace_name_find(&recorder->handles, key_of(handle));

	return name_of('h', name == NULL ? 0 : name->number);
}

/* One that comes from elsewhere gets its number here. */
static struct npu_trace_name share_of(struct trace_recorder *recorder, uint64_t key)
{
	const struct trace_name *name = trace_name_find(&recorder->shares, key);
	uint32_t number;

	if (name != NULL)
		return name_of('s', name->number);
	number = next_number(recorder, 's');
	trace_name_add(&recorder->shares, (struct trace_name){ key, 1, number, 0, 's' });
	return name_of('s', number);
}

uint64_t trace_key_of_bytes(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; at != NULL && i < count; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* ---- lines; the lock is held ---- */

static uint32_t thread_number(struct trace_recorder *recorder)
{
	static __thread struct {
		uint32_t serial, number;
	} mine;

	if (mine.serial != recorder->serial) {
		mine.serial = recorder->serial;
		mine.number = ++recorder->threads;
	}
	return mine.number;
}

static void write_line(struct trace_recorder *recorder, const struct trace_call *call,
		       struct npu_trace_record *record)
{
	char line[LINE_BYTES + SITE_BYTES_MAX];
	bool unknown = call->code == 0 && record->handle.kind == 'h' && record->handle.number == 0;
	int length;

	record->has |= NPU_TRACE_HAS_HOST_NS | NPU_TRACE_HAS_THREAD;
	record->host_ns = call->host_ns;
	if (call->simulated) {
		record->has |= NPU_TRACE_HAS_SIMULATED;
		record->simulated_ps = call->simulated_ps;
	}
	record->process = 1;
	record->thread = thread_number(recorder);
	record->code = call->code;
	if (call->site != NULL) {
		record->has |= NPU_TRACE_HAS_SITE;
		record->site = call->site;
	}
	length = unknown ? -EINVAL : npu_trace_line(record, line, sizeof(line), NULL);
	if (length == -E2BIG && call->site != NULL) {
		record->has &= ~(uint32_t)NPU_TRACE_HAS_SITE;
		length = npu_trace_line(record, line, sizeof(line), NULL);
	}
	if (length == -EINVAL) {
		record->verb = NPU_TRACE_CALL;
		record->op = call->op;
		record->has = NPU_TRACE_HAS_OP |
			      (record->has & (NPU_TRACE_HAS_HOST_NS | NPU_TRACE_HAS_THREAD |
					      NPU_TRACE_HAS_SIMULATED));
		length = npu_trace_line(record, line, sizeof(line), NULL);
	}
	if (length > 0)
		trace_file_write(recorder, line, (size_t)length);
}

/* Locks the recorder around the making of a record and its line. */
#define LINE(verb_, has_, ...)                                                     \
	do {                                                                       \
		LOCKED(&recorder->lock);                                           \
		write_line(recorder, call,                                         \
			   &(struct npu_trace_record){                             \
				   .verb = (verb_), .has = (has_), __VA_ARGS__ }); \
	} while (0)

TRACE_RECORD(device, int64_t device, bool reset)
{
	LINE(reset ? NPU_TRACE_DEVICE_RESET : NPU_TRACE_DEVICE_SET, 0, .device = device);
}

TRACE_RECORD(reserve, const void *va, uint64_t size, uint64_t hint, uint64_t flags)
{
	LINE(NPU_TRACE_RESERVE,
	     NPU_TRACE_HAS_FLAGS | NPU_TRACE_HAS_VA |
		     (hint != 0 ? (uint32_t)NPU_TRACE_HAS_HINT : 0),
	     .name = add_place(recorder, call, 'r', va, size), .size = size, .hint = hint,
	     .flags = flags, .va = call->code == 0 ? key_of(va) : 0);
}

TRACE_RECORD(create, const void *handle, uint64_t size, int64_t device, uint32_t page_lg2)
{
	LINE(NPU_TRACE_CREATE, page_lg2 != 0 ? NPU_TRACE_HAS_PAGE : 0,
	     .name = add_handle(recorder, call, handle), .size = size, .device = device,
	     .page_lg2 = page_lg2);
}

TRACE_RECORD(retain, const void *handle, const void *va)
{
	LINE(NPU_TRACE_RETAIN, 0, .name = add_handle(recorder, call, handle),
	     .at = place_of(recorder, key_of(va)));
}

TRACE_RECORD(map, const void *va, uint64_t size, const void *handle, bool no_access)
{
	LINE(NPU_TRACE_MAP, no_access ? NPU_TRACE_HAS_NO_ACCESS : 0,
	     .name = place_of(recorder, key_of(va)), .size = size,
	     .handle = handle_of(recorder, handle));
}

TRACE_RECORD(unmap, const void *va)
{
	LINE(NPU_TRACE_UNMAP, 0, .name = place_of(recorder, key_of(va)));
}

TRACE_RECORD(access, const void *va, uint64_t size, int64_t device, uint64_t flags)
{
	LINE(NPU_TRACE_ACCESS, NPU_TRACE_HAS_FLAGS, .name = place_of(recorder, key_of(va)),
	     .size = size, .device = device, .flags = flags);
}

TRACE_RECORD(export, uint64_t key, const void *handle, uint64_t flags)
{
	LINE(NPU_TRACE_EXPORT, NPU_TRACE_HAS_FLAGS | NPU_TRACE_HAS_KEY,
	     .name = call->code == 0 ? share_of(recorder, key)
				     : name_of('s', next_number(recorder, 's')),
	     .handle = handle_of(recorder, handle), .flags = flags, .key = key);
}

TRACE_RECORD(import, uint64_t key, int64_t device, const void *handle)
{
	LINE(NPU_TRACE_IMPORT, NPU_TRACE_HAS_KEY, .name = add_handle(recorder, call, handle),
	     .share = share_of(recorder, key), .device = device, .key = key);
}

TRACE_RECORD(malloc, const void *va, uint64_t size, int64_t device, uint32_t page_lg2)
{
	LINE(NPU_TRACE_MALLOC,
	     NPU_TRACE_HAS_VA | (page_lg2 != 0 ? (uint32_t)NPU_TRACE_HAS_PAGE : 0),
	     .name = add_place(recorder, call, 'a', va, size), .size = size, .device = device,
	     .page_lg2 = page_lg2, .va = call->code == 0 ? key_of(va) : 0);
}

TRACE_RECORD(copy, uint64_t dst, uint64_t src, uint64_t size)
{
	LINE(NPU_TRACE_COPY, NPU_TRACE_HAS_AT | NPU_TRACE_HAS_FROM, .size = size,
	     .at = place_of(recorder, dst), .from = place_of(recorder, src));
}

TRACE_RECORD(fill, uint64_t dst, uint64_t size)
{
	LINE(NPU_TRACE_FILL, NPU_TRACE_HAS_AT, .size = size, .at = place_of(recorder, dst));
}

TRACE_RECORD(other, const uint64_t *type)
{
	LINE(NPU_TRACE_CALL, NPU_TRACE_HAS_OP | (type != NULL ? (uint32_t)NPU_TRACE_HAS_TYPE : 0),
	     .op = call->op, .type = type != NULL ? *type : 0);
}

/* ---- names that end ---- */

static struct trace_names *names_of(struct trace_recorder *recorder, enum npu_trace_verb verb)
{
	return verb == NPU_TRACE_RELEASE ? &recorder->handles : &recorder->places;
}

struct trace_ending trace_ends(struct trace_recorder *recorder, enum npu_trace_verb verb,
			       const void *what)
{
	struct trace_ending ending = { .verb = verb, .known = false };
	struct trace_names *names = names_of(recorder, verb);

	LOCKED(&recorder->lock);
	struct trace_name *name = trace_name_find(names, key_of(what));
	if (name == NULL || name->key != key_of(what))
		return ending;
	ending.name = *name;
	ending.known = true;
	if (--name->references == 0)
		trace_name_take(names, name->key, NULL);
	return ending;
}

TRACE_RECORD(end, const struct trace_ending *ending)
{
	struct trace_names *names = names_of(recorder, ending->verb);
	struct trace_name gone = ending->name, *name;

	if (!ending->known) {
		trace_record_other(recorder, call, NULL);
		return;
	}
	LOCKED(&recorder->lock);
	if (call->code != 0) {
		name = trace_name_find(names, gone.key);
		gone.references = 1;
		if (name != NULL && name->key == gone.key)
			name->references++;
		else
			trace_name_add(names, gone);
	}
	write_line(recorder, call,
		   &(struct npu_trace_record){ .verb = ending->verb,
					       .name = name_of(gone.letter, gone.number) });
}

/* ---- sites: each stack is put in words once ---- */

static pthread_mutex_t sites_lock = PTHREAD_MUTEX_INITIALIZER;
static char **sites; /* texts, by the number of the stack */
static uint32_t site_count;

const char *trace_site(npu_stack stack)
{
	void *const *frames;
	unsigned count = npu_stack_frames(stack, &frames);
	char *text = NULL;

	if (count == 0)
		return NULL;
	LOCKED(&sites_lock);
	if (stack >= site_count) {
		uint32_t room = stack + 256;
		char **more = realloc(sites, room * sizeof(*more));

		if (more != NULL) {
			memset(more + site_count, 0, (room - site_count) * sizeof(*more));
			sites = more;
			site_count = room;
		}
	}
	for (unsigned i = 0; stack < site_count && sites[stack] == NULL && i < count; i++) {
		struct npu_frame frame = npu_stack_look(frames[i]);
		const char *where = frame.file != NULL ? frame.file : frame.object;

		npu_text_add(&text, "%s%s (%s", i > 0 ? "\n" : "",
			     frame.function != NULL ? frame.function : "?",
			     where != NULL ? where : "?");
		npu_text_add(&text, frame.file != NULL ? ":%ju)" : "+%#jx)",
			     frame.file != NULL ? (uintmax_t)frame.line : (uintmax_t)frame.offset);
		if (frame.function != NULL && strcmp(frame.function, "main") == 0)
			break;
	}
	if (text != NULL)
		sites[stack] = text;
	return stack < site_count ? sites[stack] : NULL;
}

/* ---- the object ---- */

void trace_recorder_about(struct trace_recorder *recorder, const char *about)
{
	char line[LINE_BYTES];
	struct trace_text text = { .at = line, .end = line + sizeof(line) };

	trace_text_put(&text, "info ", strlen("info "));
	trace_text_put(&text, about, strlen(about));
	trace_text_put(&text, "\n", 1);
	if (text.full)
		return;
	LOCKED(&recorder->lock);
	trace_file_write(recorder, line, (size_t)(text.at - line));
}

void trace_recorder_close(struct trace_recorder *recorder)
{
	if (recorder == NULL)
		return;
	trace_recorder_delist(recorder);
	if (recorder->fd >= 0)
		close(recorder->fd);
	trace_names_free(&recorder->places);
	trace_names_free(&recorder->handles);
	trace_names_free(&recorder->shares);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder->path);
	free(recorder->about);
	free(recorder);
}

struct trace_recorder *trace_recorder_open(const char *path, const char *about)
{
	struct trace_recorder *recorder = calloc(1, sizeof(*recorder));
	int code;

	if (recorder == NULL)
		return NULL;
	pthread_mutex_init(&recorder->lock, NULL);
	recorder->fd = -1;
	recorder->serial = trace_recorder_serial();
	recorder->start_ns = clock_now_ns();
	recorder->path = strdup(path);
	recorder->about = strdup(about);
	trace_recorder_enlist(recorder);
	if (recorder->path != NULL && recorder->about != NULL && trace_file_open(recorder))
		return recorder;
	code = errno;
	trace_recorder_close(recorder);
	errno = code;
	return NULL;
}
