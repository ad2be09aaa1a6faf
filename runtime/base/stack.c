/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks: libunwind unwinds, which remembers how each function's frame is undone, or glibc
 * where there is none; a table keeps each stack once; libdw names lines. libdw is loaded when the
 * first stack is put in words: a process that prints none needs no debug information.
 * From the first frame of a Python interpreter on, Python's own frames follow.
 */
#include "base/stack.h"

#include "base/base.h"
#include "base/lock.h"
#include "base/python.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_FRAMES_MAX 16 /* of npusim, between the program and npu_stack_here() */
#define STACKS_MAX     (1u << 20)
#define CHAINS         (1u << 14)
#define PYTHON         (UINT64_C(1) << 63) /* a frame is the address of a struct npu_python_frame */

struct kept {
	uint64_t hash;
	npu_stack next;   /* of its chain */
	const char *call; /* npusim's function that the program called */
	unsigned count;
	void *frames[];
};

static unsigned depth; /* frames of the program; 0: stacks are off */
static int (*unwind)(void **frames, int max) = backtrace;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t dw_lock = PTHREAD_MUTEX_INITIALIZER; /* libdw: no lock is taken within */
static struct kept *_Atomic *stacks; /* by number; STACKS_MAX of them, touched as they fill */
static unsigned stack_count = 1;
static npu_stack chains[CHAINS]; /* by hash; lock */

/* A thread that the child does not have may be inside: its child would wait for it. */
static void before_fork(void)
{
	pthread_mutex_lock(&dw_lock);
	pthread_mutex_lock(&npu_python_lock);
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&npu_python_lock);
	pthread_mutex_unlock(&dw_lock);
}

/* Another thread may have been inside libunwind, which has locks of its own. */
static void after_fork_in_child(void)
{
	unwind = backtrace;
	after_fork();
}

void npu_stack_use(unsigned unset)
{
	static bool forks;
	bool set;
	const char *value = npu_var_get(NPU_VAR_STACKS, &set);
	void *library, *warm[2];

	pthread_mutex_lock(&lock);
	if (set)
		unset = strcmp(value, "full") == 0    ? NPU_STACK_FULL
			: strcmp(value, "short") == 0 ? NPU_STACK_SHORT
						      : 0;
	else if (unset < depth)
		unset = depth;
	if (unset > 0 && stacks == NULL) {
		stacks = calloc(STACKS_MAX, sizeof(*stacks));
		library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
		if (library != NULL)
			npu_python_symbol(library, "unw_backtrace", &unwind);
		backtrace(warm, 2); /* the first call loads libgcc */
	}
	depth = stacks == NULL ? 0 : unset;
	if (depth > 0)
		npu_python_find();
	if (depth > 0 && !forks)
		forks = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
	pthread_mutex_unlock(&lock);
}

/* ---- whose a frame is ---- */

enum whose {
	PROGRAM,
	OWN,
	BRIDGE /* between Python and a function of C */
};

static const struct {
	const char *name;
	enum whose whose;
} own_names[] = {
	{ "libascendcl.so", OWN }, { "libacl_rt.so", OWN },       { "libascend_hal.so", OWN },
	{ "libcuda.so", OWN },     { "libcudart.so", OWN },       { "backend-sim.so", OWN },
	{ "backend-hw.so", OWN },  { "npusim-validate.so", OWN }, { "libnpusim-record.so", OWN },
	{ "libffi.so", BRIDGE },   { "_ctypes.", BRIDGE },
};

static enum whose whose_file(const char *path)
{
	const char *base = basename(path);

	for (unsigned i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
		if (strncmp(base, own_names[i].name, strlen(own_names[i].name)) == 0)
			return own_names[i].whose;
	return PROGRAM;
}

#define RECENT 8u

static enum whose whose_frame(void *address)
{
	static __thread struct range {
		uintptr_t begin, end;
		enum whose whose;
	} recent[RECENT]; /* objects that the thread's frames were in */
	static __thread unsigned next;
	uintptr_t at = (uintptr_t)address;
	struct dl_find_object object;
	struct range found;
	Dl_info info;

	for (unsigned i = 0; i < RECENT; i++)
		if (at >= recent[i].begin && at < recent[i].end)
			return recent[i].whose;
	if (_dl_find_object(address, &object) != 0)
		return PROGRAM;
	found = (struct range){ (uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end,
				PROGRAM };
	if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
		found.whose = whose_file(info.dli_fname);
	recent[next++ % RECENT] = found;
	return found.whose;
}

/* ---- taken ---- */

static uint64_t hash_of(void *const *frames, unsigned count)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < count; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

static npu_stack find_locked(uint64_t hash, void *const *frames, unsigned count)
{
	npu_stack stack = chains[hash % CHAINS];

	for (; stack != 0; stack = stacks[stack]->next)
		if (stacks[stack]->hash == hash && stacks[stack]->count == count &&
		    memcmp(stacks[stack]->frames, frames, count * sizeof(*frames)) == 0)
			break;
	return stack;
}

static npu_stack add_locked(uint64_t hash, void *const *frames, unsigned count, const void *entry)
{
	struct kept *kept =
		stack_count == STACKS_MAX ? NULL : malloc(sizeof(*kept) + count * sizeof(*frames));
	Dl_info info;

	if (kept == NULL)
		return 0;
	*kept = (struct kept){ .hash = hash, .count = count, .next = chains[hash % CHAINS] };
	if (entry != NULL && dladdr(entry, &info) != 0)
		kept->call = info.dli_sname;
	memcpy(kept->frames, frames, count * sizeof(*frames));
	atomic_store(&stacks[stack_count], kept);
	chains[hash % CHAINS] = stack_count;
	return stack_count++;
}

static npu_stack keep(void *const *frames, unsigned count, const void *entry)
{
	uint64_t hash = hash_of(frames, count) ^ (uintptr_t)entry;
	static __thread struct {
		uint64_t hash;
		npu_stack stack;
	} recent[16];
	unsigned at = (unsigned)(hash >> 7) % 16;

	if (recent[at].hash != hash || recent[at].stack == 0) {
		LOCKED(&lock);
		recent[at].hash = hash;
		recent[at].stack =
			find_locked(hash, frames, count) ?: add_locked(hash, frames, count, entry);
	}
	return recent[at].stack;
}

/* The frames of C up to the interpreter's first give way to those of Python. How many there are. */
static unsigned add_python(void **frames, unsigned count)
{
	const struct npu_python_frame *found[NPU_STACK_FULL];
	unsigned native = 0, more;

	while (native < count && !npu_python_has(frames[native]))
		native++;
	if (native == count)
		return count;
	more = npu_python_frames(found, depth - native);
	for (unsigned i = 0; i < more; i++)
		frames[native + i] = (void *)((uintptr_t)found[i] | PYTHON);
	return more > 0 ? native + more : count;
}

npu_stack npu_stack_here(void)
{
	void *frames[OWN_FRAMES_MAX + NPU_STACK_FULL], *entry = NULL;
	int got, first;

	if (depth == 0)
		return 0;
	got = unwind(frames, (int)(OWN_FRAMES_MAX + depth));
	for (first = 0; first < got && first < OWN_FRAMES_MAX; first++) {
		enum whose whose = whose_frame(frames[first]);

		if (whose == PROGRAM)
			break;
		entry = whose == OWN ? frames[first] : entry;
	}
	got -= first;
	if (got > (int)depth)
		got = (int)depth;
	if (got <= 0)
		return 0;
	return keep(frames + first, add_python(frames + first, (unsigned)got), entry);
}

npu_stack npu_stack_from(const void *pc)
{
	void *frames[OWN_FRAMES_MAX + NPU_STACK_FULL];
	int got = depth > 0 ? unwind(frames, (int)(OWN_FRAMES_MAX + depth)) : 0, first = 0;
	unsigned count;

	while (first < got && frames[first] != pc)
		first++;
	if (first == got)
		return 0;
	count = (unsigned)(got - first) < depth ? (unsigned)(got - first) : depth;
	frames[first] = (char *)frames[first] + 1; /* the others are behind their calls, too */
	return keep(frames + first, add_python(frames + first, count), NULL);
}

/* ---- in words ---- */

static struct kept *kept_of(npu_stack stack)
{
	return stack == 0 || stacks == NULL || stack >= STACKS_MAX ? NULL
								   : atomic_load(&stacks[stack]);
}

unsigned npu_stack_frames(npu_stack stack, void *const **out_frames)
{
	struct kept *kept = kept_of(stack);

	*out_frames = kept == NULL ? NULL : kept->frames;
	return kept == NULL ? 0 : kept->count;
}

const char *npu_stack_call(npu_stack stack)
{
	struct kept *kept = kept_of(stack);

	return kept == NULL ? NULL : kept->call;
}

/* libdw's functions that are used here, as elfutils/libdwfl.h declares them, without a need of that
 * header. */
struct dwfl_callbacks {
	void *find_elf, *find_debuginfo, *section_address;
	char **debuginfo_path;
};
static struct {
	bool tried;
	void *dwfl;
	void *(*begin)(const struct dwfl_callbacks *);
	int (*proc_report)(void *dwfl, pid_t pid);
	int (*report_end)(void *dwfl, void *removed, void *arg);
	void *(*module)(void *dwfl, uint64_t address);
	const char *(*name)(void *module, uint64_t address);
	void *(*source)(void *module, uint64_t address);
	const char *(*line)(void *line, uint64_t *address, int *number, int *column, uint64_t *time,
			    uint64_t *length);
} dw;
static void open_locked(void)
{
	static struct dwfl_callbacks callbacks;
	void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);

	dw.tried = true;
	if (library == NULL || !npu_python_symbol(library, "dwfl_begin", &dw.begin) ||
	    !npu_python_symbol(library, "dwfl_linux_proc_report", &dw.proc_report) ||
	    !npu_python_symbol(library, "dwfl_report_end", &dw.report_end) ||
	    !npu_python_symbol(library, "dwfl_addrmodule", &dw.module) ||
	    !npu_python_symbol(library, "dwfl_module_addrname", &dw.name) ||
	    !npu_python_symbol(library, "dwfl_module_getsrc", &dw.source) ||
	    !npu_python_symbol(library, "dwfl_lineinfo", &dw.line) ||
	    !npu_python_symbol(library, "dwfl_linux_proc_find_elf", &callbacks.find_elf) ||
	    !npu_python_symbol(library, "dwfl_standard_find_debuginfo", &callbacks.find_debuginfo))
		return;
	dw.dwfl = dw.begin(&callbacks);
}

/* A frame holds the address after its call: the line is that of the byte before. */
static void *module_locked(uint64_t at)
{
	void *module;

	if (!dw.tried)
		open_locked();
	if (dw.dwfl == NULL)
		return NULL;
	module = dw.module(dw.dwfl, at);
	if (module == NULL && dw.proc_report(dw.dwfl, getpid()) == 0) {
		dw.report_end(dw.dwfl, NULL, NULL); /* an object that was loaded since */
		module = dw.module(dw.dwfl, at);
	}
	return module;
}

struct npu_frame npu_stack_look(const void *address)
{
	uint64_t at = (uintptr_t)address - 1;
	struct npu_frame frame = { 0 };
	const struct npu_python_frame *python;
	void *module, *line = NULL;
	Dl_info info;

	if (((uintptr_t)address & PYTHON) != 0) {
		python = (const void *)((uintptr_t)address & ~PYTHON);
		return (struct npu_frame){ .function = python->function,
					   .file = python->file,
					   .line = python->line };
	}
	pthread_mutex_lock(&dw_lock);
	module = module_locked(at);
	if (module != NULL) {
		frame.function = dw.name(module, at);
		line = dw.source(module, at);
	}
	if (line != NULL)
		frame.file = dw.line(line, NULL, &frame.line, NULL, NULL, NULL);
	pthread_mutex_unlock(&dw_lock);
	if (dladdr((const void *)(uintptr_t)at, &info) == 0)
		return frame;
	if (frame.function == NULL)
		frame.function = info.dli_sname;
	frame.object = info.dli_fname;
	frame.offset = (uintptr_t)address - (uintptr_t)info.dli_fbase;
	return frame;
}

char *npu_stack_frame(const void *address)
{
	struct npu_frame frame = npu_stack_look(address);
	char *text = NULL;

	npu_text_add(&text, "%s", frame.function != NULL ? frame.function : "?");
	if (frame.file != NULL)
		npu_text_add(&text, " at %s:%d", frame.file, frame.line);
	else if (frame.object != NULL)
		npu_text_add(&text, " in %s+%#tx", frame.object, (ptrdiff_t)frame.offset);
	else
		npu_text_add(&text, " at %p", address);
	return text;
}

bool npu_stack_place(npu_stack stack, struct npu_frame *out)
{
	struct kept *kept = kept_of(stack);

	for (unsigned i = 0; kept != NULL && i < kept->count; i++) {
		*out = npu_stack_look(kept->frames[i]);
		if (out->file != NULL)
			return true;
	}
	return false;
}

char *npu_stack_words(npu_stack stack)
{
	struct kept *kept = kept_of(stack);
	char *text = NULL, *frame;
	unsigned at = 0;

	if (kept == NULL)
		return NULL;
	while (at < kept->count && npu_stack_look(kept->frames[at]).file == NULL)
		at++;
	frame = npu_stack_frame(kept->frames[at % kept->count]);
	npu_text_add(&text, "%s%s%s", kept->call ?: "", kept->call != NULL ? ", " : "",
		     frame ?: "?");
	free(frame);
	return text;
}

void npu_stack_add(char **text, npu_stack stack, const char *indent)
{
	struct kept *kept = kept_of(stack);

	if (kept == NULL)
		return;
	if (kept->call != NULL)
		npu_text_add(text, "%s%s\n", indent, kept->call);
	for (unsigned i = 0; i < kept->count; i++) {
		char *frame = npu_stack_frame(kept->frames[i]);
		bool last = frame != NULL && strncmp(frame, "main ", 5) == 0;

		npu_text_add(text, "%s%s\n", indent, frame != NULL ? frame : "?");
		free(frame);
		if (last)
			break;
	}
}
