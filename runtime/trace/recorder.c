/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns calls into records, with names for their addresses, handles and shares; owns the file, its
 * head, and what happens to both in a child of fork().
 */
#include "trace/recorder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/lock.h"
#include "trace/line.h"

#define HEAD_BYTES     1024
#define NAMES_MAX      10000 /* of one process */
#define LINE_BYTES     512
#define SITE_BYTES_MAX 1536 /* of site=, as it is written */

struct trace_recorder {
	pthread_mutex_t lock; /* of all below */
	uint64_t start_ns;    /* does not change */
	int fd;               /* -1: to be opened with the next line, or `over` */
	bool over;
	char *path, *about;
	uint32_t serial;       /* no other recorder has it, nor this one's in another process */
	uint32_t threads;      /* numbers given out */
	uint32_t numbers[128]; /* the last one given out, by letter */
	struct trace_names places, handles, shares;
	LIST_ENTRY(trace_recorder) link; /* of all, for fork() */
};

/* ---- fork ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(recorders, trace_recorder) all;

static uint32_t next_serial(void)
{
	static _Atomic uint32_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static void before_fork(void)
{
	struct trace_recorder *r;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(r, &all, link)
	pthread_mutex_lock(&r->lock);
}

static void after_fork(void)
{
	struct trace_recorder *r;

	LIST_FOREACH(r, &all, link)
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&all_lock);
}

/* The child's trace is a new one. */
static void in_the_child(void)
{
	struct trace_recorder *r;

	LIST_FOREACH(r, &all, link)
	{
		if (r->fd >= 0)
			close(r->fd);
		r->fd = -1;
		r->serial = next_serial();
		r->threads = 0;
		memset(r->numbers, 0, sizeof(r->numbers));
		trace_names_free(&r->places);
		trace_names_free(&r->handles);
		trace_names_free(&r->shares);
	}
	after_fork();
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_the_child);
}

/* ---- the file ---- */

/* The name that a process tries as its `turn`-th: the path with %p replaced, then with the
 * process's id and a number put in before the extension. free() */
static char *file_name(const char *path, unsigned turn)
{
	const char *mark = strstr(path, "%p"), *base, *dot;
	char pid[32], number[32] = "", *plain, *text;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (asprintf(&plain, "%.*s%s%s", (int)(mark != NULL ? mark - path : 0), path,
		     mark != NULL ? pid : "", mark != NULL ? mark + 2 : path) < 0)
		return NULL;
	if (turn == 0)
		return plain;
	base = basename(plain);
	dot = base[0] != '\0' ? strrchr(base + 1, '.') : NULL;
	dot = dot != NULL ? dot : plain + strlen(plain);
	turn += mark != NULL;
	if (turn > 1)
		snprintf(number, sizeof(number), "-%u", turn);
	if (asprintf(&text, "%.*s%s%s%s%s", (int)(dot - plain), plain, mark != NULL ? "" : ".",
		     mark != NULL ? "" : pid, number, dot) < 0)
		text = NULL;
	free(plain);
	return text;
}

/* False: the run has no name. */
static bool put_run(struct trace_text *text)
{
	bool named;
	const char *name = npu_var_get(NPU_VAR_RUN, &named);

	if (named) {
		trace_text_word(text, " run=");
		trace_text_put_value(text, name);
	}
	return named;
}

/* True if the file has the trace of a process of this run, which has ended. */
static bool is_of_this_run(const char *name)
{
	char head[HEAD_BYTES + 1], run[128];
	struct trace_text text = { .at = run, .end = run + sizeof(run) - 1 };
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, head, HEAD_BYTES) : 0;
	const char *found;

	if (fd >= 0)
		close(fd);
	head[length > 0 ? length : 0] = '\0';
	if (strncmp(head, TRACE_FIRST_LINE, strlen(TRACE_FIRST_LINE)) != 0 || !put_run(&text))
		return false;
	*text.at = '\0';
	found = strstr(head, run);
	return found != NULL && isspace((unsigned char)found[text.at - run]);
}

/* The file, empty, locked for as long as it is open; -1 with errno: EEXIST where it is another
 * process's. What is no plain file is everyone's. */
static int claim(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	bool taken;
	struct stat at;

	if (fd < 0 || fstat(fd, &at) != 0 || !S_ISREG(at.st_mode))
		return fd;
	taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (!taken && !is_of_this_run(name) && ftruncate(fd, 0) == 0)
		return fd;
	close(fd);
	errno = EEXIST;
	return -1;
}

static void give_up(struct trace_recorder *recorder)
{
	npu_log(NPU_LOG_WARN, "NPUSIM_TRACE=%s cannot be written: %s; nothing more is recorded",
		recorder->path, strerror(errno));
	if (recorder->fd >= 0)
		close(recorder->fd);
	recorder->fd = -1;
	recorder->over = true;
}

static void write_text(struct trace_recorder *recorder, const char *text, size_t length)
{
	ssize_t done = TEMP_FAILURE_RETRY(write(recorder->fd, text, length));

	if (done >= 0 && (size_t)done < length)
		errno = ENOSPC;
	if (done != (ssize_t)length)
		give_up(recorder);
}

static void write_head(struct trace_recorder *recorder)
{
	char head[HEAD_BYTES];
	struct trace_text text = { .at = head, .end = head + sizeof(head) };

	trace_text_word(&text, TRACE_FIRST_LINE);
	trace_text_word(&text, "info program=");
	trace_text_put_value(&text, program_invocation_short_name);
	trace_text_word(&text,
			npu_text(" pid=%d start=%" PRIu64, (int)getpid(), recorder->start_ns));
	put_run(&text);
	trace_text_put(&text, " ", recorder->about[0] != '\0');
	trace_text_word(&text, recorder->about);
	trace_text_put(&text, "\n", 1);
	write_text(recorder, head, (size_t)(text.at - head));
}

const char *trace_path_problem(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat at;

	if (stat(path, &at) == 0)
		return S_ISDIR(at.st_mode)       ? "it is a folder"
		       : access(path, W_OK) != 0 ? strerror(errno)
						 : NULL;
	if (slash == NULL || slash == path)
		slash = path + (slash == path);
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	if (access(folder[0] == '\0' ? "." : folder, W_OK | X_OK) == 0)
		return NULL;
	return errno == ENOENT ? "its folder does not exist; make that first" : strerror(errno);
}

/* The file, another where another process of the run has it, with its head. False and errno. */
static bool open_file(struct trace_recorder *recorder)
{
	for (unsigned turn = 0; turn < NAMES_MAX; turn++) {
		char *name = file_name(recorder->path, turn);
		int code;

		if (name == NULL)
			return false;
		recorder->fd = claim(name);
		code = errno;
		if (recorder->fd >= 0 && turn > 0)
			npu_log(NPU_LOG_INFO,
				"NPUSIM_TRACE=%s is another process's; the calls of this one go to "
				"%s",
				recorder->path, name);
		free(name);
		errno = code;
		if (recorder->fd >= 0) {
			write_head(recorder);
			return true;
		}
		if (code != EEXIST)
			return false;
	}
	return false;
}

/* Whole lines. The lock is held. */
static void write_file(struct trace_recorder *recorder, const char *text, size_t length)
{
	if (recorder->over)
		return;
	if (recorder->fd >= 0 || open_file(recorder))
		write_text(recorder, text, length);
	else
		give_up(recorder);
}

struct trace_call trace_call_begin(const struct trace_recorder *recorder, const char *op)
{
	return (struct trace_call){ .op = op, .host_ns = clock_now_ns() - recorder->start_ns };
}

void trace_call_end(const struct trace_recorder *recorder, struct trace_call *call)
{
	if (!call->simulated)
		call->took_ns = clock_now_ns() - recorder->start_ns - call->host_ns;
}

/* ---- names; the lock is held ---- */

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

/* The name that a handle or a share has, with one reference more; else the next one of the letter,
 * which stands for the key from now on if it is `kept`: what a failed call was to get has none. */
static struct npu_trace_name add_name(struct trace_recorder *recorder, struct trace_names *names,
				      char letter, uint64_t key, uint64_t bytes, bool kept)
{
	struct trace_name *name =
		kept && names != &recorder->places ? trace_name_find(names, key) : NULL;
	uint32_t number;

	if (name != NULL) {
		name->references++;
		return name_of(letter, name->number);
	}
	number = ++recorder->numbers[(unsigned char)letter];
	if (kept)
		trace_name_add(names, (struct trace_name){ key, bytes, number, 1, letter });
	return name_of(letter, number);
}

/* h0: a handle that the trace has not seen. */
static struct npu_trace_name handle_of(struct trace_recorder *recorder, uint64_t handle)
{
	const struct trace_name *name = trace_name_find(&recorder->handles, handle);

	return name_of('h', name == NULL ? 0 : name->number);
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

static void write_line(struct trace_recorder *recorder, struct trace_call *call,
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
	if (call->took_ns > 0) {
		record->has |= NPU_TRACE_HAS_TOOK;
		record->took_ns = call->took_ns;
		call->took_ns = 0; /* on the first line of a call alone */
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
					      NPU_TRACE_HAS_TOOK | NPU_TRACE_HAS_SIMULATED));
		length = npu_trace_line(record, line, sizeof(line), NULL);
	}
	if (length > 0)
		write_file(recorder, line, (size_t)length);
}

void trace_record(struct trace_recorder *recorder, struct trace_call *call,
		  struct npu_trace_record r)
{
	/* what else lines have, beside what the verb needs and the caller says */
	static const uint32_t has[NPU_TRACE_VERB_COUNT] = {
		[NPU_TRACE_RESERVE] = NPU_TRACE_HAS_FLAGS | NPU_TRACE_HAS_VA,
		[NPU_TRACE_ACCESS] = NPU_TRACE_HAS_FLAGS,
		[NPU_TRACE_EXPORT] = NPU_TRACE_HAS_FLAGS | NPU_TRACE_HAS_KEY,
		[NPU_TRACE_IMPORT] = NPU_TRACE_HAS_KEY,
		[NPU_TRACE_MALLOC] = NPU_TRACE_HAS_VA,
		[NPU_TRACE_COPY] = NPU_TRACE_HAS_AT | NPU_TRACE_HAS_FROM,
		[NPU_TRACE_FILL] = NPU_TRACE_HAS_AT,
		[NPU_TRACE_CALL] = NPU_TRACE_HAS_OP,
	};
	char kind = trace_verbs[r.verb].kind;

	r.has |= has[r.verb] | trace_verbs[r.verb].needs |
		 (r.hint != 0 ? (uint32_t)NPU_TRACE_HAS_HINT : 0) |
		 (r.page_lg2 != 0 ? (uint32_t)NPU_TRACE_HAS_PAGE : 0);
	LOCKED(&recorder->lock);
	switch (r.verb) {
	case NPU_TRACE_RESERVE:
	case NPU_TRACE_MALLOC:
		r.va = call->code == 0 ? r.name.offset : 0;
		r.name = add_name(recorder, &recorder->places, kind, r.name.offset, r.size,
				  call->code == 0);
		break;
	case NPU_TRACE_CREATE:
	case NPU_TRACE_RETAIN:
	case NPU_TRACE_IMPORT:
		r.name = add_name(recorder, &recorder->handles, 'h', r.name.offset, 1,
				  call->code == 0);
		break;
	case NPU_TRACE_EXPORT:
		r.name = add_name(recorder, &recorder->shares, 's', r.key, 1, call->code == 0);
		break;
	case NPU_TRACE_CALL:
		r.op = call->op;
		break;
	default:
		if (kind == 'r')
			r.name = place_of(recorder, r.name.offset);
	}
	if ((r.has & NPU_TRACE_HAS_HANDLE) != 0)
		r.handle = handle_of(recorder, r.handle.offset);
	if ((r.has & NPU_TRACE_HAS_SHARE) != 0)
		r.share = add_name(recorder, &recorder->shares, 's', r.key, 1, true);
	if ((r.has & NPU_TRACE_HAS_AT) != 0)
		r.at = place_of(recorder, r.at.offset);
	if ((r.has & NPU_TRACE_HAS_FROM) != 0)
		r.from = place_of(recorder, r.from.offset);
	write_line(recorder, call, &r);
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
	uint64_t key = (uint64_t)(uintptr_t)what;

	LOCKED(&recorder->lock);
	struct trace_name *name = trace_name_find(names, key);
	if (name == NULL || name->key != key)
		return ending;
	ending.name = *name;
	ending.known = true;
	if (--name->references == 0)
		trace_name_take(names, name->key, NULL);
	return ending;
}

void trace_record_end(struct trace_recorder *recorder, struct trace_call *call,
		      const struct trace_ending *ending)
{
	struct trace_names *names = names_of(recorder, ending->verb);
	struct trace_name gone = ending->name, *name;

	if (!ending->known) {
		TRACE_RECORD(recorder, call, CALL);
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

void trace_recorder_about(struct trace_recorder *recorder, const char *about)
{
	char line[LINE_BYTES];
	struct trace_text text = { .at = line, .end = line + sizeof(line) };

	trace_text_word(&text, "info ");
	trace_text_word(&text, about);
	trace_text_put(&text, "\n", 1);
	if (text.full)
		return;
	LOCKED(&recorder->lock);
	write_file(recorder, line, (size_t)(text.at - line));
}

void trace_recorder_close(struct trace_recorder *recorder)
{
	if (recorder == NULL)
		return;
	pthread_mutex_lock(&all_lock);
	LIST_REMOVE(recorder, link);
	pthread_mutex_unlock(&all_lock);
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
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct trace_recorder *recorder = calloc(1, sizeof(*recorder));
	int code;

	if (recorder == NULL)
		return NULL;
	pthread_mutex_init(&recorder->lock, NULL);
	recorder->fd = -1;
	recorder->serial = next_serial();
	recorder->start_ns = clock_now_ns();
	recorder->path = strdup(path);
	recorder->about = strdup(about);
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all, recorder, link);
	pthread_mutex_unlock(&all_lock);
	if (recorder->path != NULL && recorder->about != NULL && open_file(recorder))
		return recorder;
	code = errno;
	trace_recorder_close(recorder);
	errno = code;
	return NULL;
}
