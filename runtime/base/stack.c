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

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- frames of Python 3.9 to 3.13 ----
 *
 * A thread's are read from its own thread state, which CPython keeps in thread-local storage. The
 * thread may have dropped the interpreter's lock, as ctypes does, so only functions are called that
 * read what cannot change while the frame is there: its code and the names in it. All that is
 * reached by an offset of a structure is read by the kernel, so that an offset that is wrong finds
 * nothing, and breaks nothing. */

#define NAME_LETTERS 1024
#define SHIM         3 /* FRAME_OWNED_BY_CSTACK: where C called into Python */
#define FRAME_ROOM   112
#define CODE_BYTES   128

/* Offsets from CPython's headers of release builds. */
static const struct layout {
	const char *version;
	uint8_t thread_frame; /* PyThreadState: to the frame, or to what has it at */
	int8_t cframe_frame;  /* _PyCFrame; -1: there is none */
	uint8_t frame_code;   /* PyFrameObject, _PyInterpreterFrame */
	uint8_t frame_previous;
	uint8_t frame_at;    /* f_lasti, or a pointer to an instruction behind code_start */
	uint8_t frame_owner; /* 0: there is none */
	uint8_t lasti_unit;  /* bytes; 0: frame_at is a pointer */
	uint8_t code_line, code_file, code_name, code_start;
} layouts[] = {
	{ "3.9.", 24, -1, 32, 24, 104, 0, 1, 40, 104, 112, 0 },
	{ "3.10.", 24, -1, 32, 24, 96, 0, 2, 40, 104, 112, 0 },
	{ "3.11.", 56, 8, 32, 48, 56, 69, 0, 72, 112, 120, 184 },
	{ "3.12.", 56, 0, 0, 8, 56, 70, 0, 68, 112, 120, 192 },
	{ "3.13.", 72, -1, 0, 8, 56, 70, 0, 68, 112, 120, 200 },
};

static struct {
	const struct layout *layout; /* NULL: there is no Python that is known */
	uintptr_t begin, end;        /* of its code */
	const void *code_type, *text_type;
	void *(*thread)(void);
	int (*line_of)(void *code, int offset);
	intptr_t (*length)(void *text);
	uint32_t (*letter)(void *text, intptr_t index);
} python;

/* Kept once for each function and line, for ever. */
struct python_frame {
	/* As it was met: where its code and its names lie, and the instruction. */
	void *code, *file_text, *name_text;
	int offset, first_line;
	/* In words. */
	const char *function, *file;
	int line;
};
static pthread_mutex_t python_lock = PTHREAD_MUTEX_INITIALIZER;
static void
	*python_kept; /* a tree of struct python_frame (tsearch()), only added to; python_lock */

static bool find(void *library, const char *name, void *out)
{
	void *symbol = dlsym(library, name);

	if (symbol != NULL)
		memcpy(out, &symbol, sizeof(symbol));
	return symbol != NULL;
}

/* Looks for the interpreter, if none is known yet. */
static void find_python(void)
{
	const char *(*version)(void);
	struct dl_find_object object;
	const struct layout *layout = layouts,
			    *end = layouts + sizeof(layouts) / sizeof(layouts[0]);

	if (python.layout != NULL || !find(RTLD_DEFAULT, "Py_GetVersion", &version) ||
	    !find(RTLD_DEFAULT, "PyCode_Type", &python.code_type) ||
	    !find(RTLD_DEFAULT, "PyUnicode_Type", &python.text_type) ||
	    !find(RTLD_DEFAULT, "PyGILState_GetThisThreadState", &python.thread) ||
	    !find(RTLD_DEFAULT, "PyCode_Addr2Line", &python.line_of) ||
	    !find(RTLD_DEFAULT, "PyUnicode_GetLength", &python.length) ||
	    !find(RTLD_DEFAULT, "PyUnicode_ReadChar", &python.letter) ||
	    _dl_find_object((void *)(uintptr_t)python.thread, &object) != 0)
		return;
	python.begin = (uintptr_t)object.dlfo_map_start;
	python.end = (uintptr_t)object.dlfo_map_end;
	while (layout < end && strncmp(version(), layout->version, strlen(layout->version)) != 0)
		layout++;
	python.layout = layout < end ? layout : NULL;
}

/* Whether the address of an instruction is the interpreter's. */
static bool is_python(const void *address)
{
	return python.layout != NULL && (uintptr_t)address >= python.begin &&
	       (uintptr_t)address < python.end;
}

static bool read_bytes(const void *from, void *to, size_t bytes)
{
	struct iovec local = { to, bytes }, remote = { (void *)(uintptr_t)from, bytes };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static void *pointer_at(const unsigned char *bytes, unsigned offset)
{
	void *pointer;

	memcpy(&pointer, bytes + offset, sizeof(pointer));
	return pointer;
}

static int int_at(const unsigned char *bytes, unsigned offset)
{
	int value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static bool is_of(const void *object, const void *type)
{
	void *found[2];

	return read_bytes(object, found, sizeof(found)) && found[1] == type;
}

static char *utf8_of(void *text)
{
	intptr_t length = is_of(text, python.text_type) ? python.length(text) : -1;
	char *utf8 = length >= 0 && length <= NAME_LETTERS ? malloc((size_t)length * 4 + 1) : NULL;
	char *to = utf8;

	for (intptr_t i = 0; utf8 != NULL && i < length; i++) {
		uint32_t letter = python.letter(text, i);
		unsigned more = letter < 0x80 ? 0 : letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;

		*to++ = (char)(more == 0 ? letter : 0xff00u >> (more + 1) | letter >> (6 * more));
		while (more-- > 0)
			*to++ = (char)(0x80 | (letter >> (6 * more) & 0x3f));
	}
	if (to != NULL)
		*to = '\0';
	return utf8;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, offsetof(struct python_frame, function));
}

static const struct python_frame *keep_python(struct python_frame *met)
{
	struct python_frame **there, *new = NULL;
	LOCKED(&python_lock);

	there = tfind(met, &python_kept, compare);
	if (there != NULL)
		return *there;
	met->function = utf8_of(met->name_text);
	met->file = utf8_of(met->file_text);
	met->line = met->offset < 0 ? met->first_line : python.line_of(met->code, met->offset);
	if (met->function != NULL && met->file != NULL)
		new = malloc(sizeof(*new));
	if (new != NULL) {
		*new = *met;
		if (tsearch(new, &python_kept, compare) != NULL)
			return new;
	}
	free((char *)met->function);
	free((char *)met->file);
	free(new);
	return NULL;
}

static const struct python_frame *frame_of(const struct layout *layout, const unsigned char *frame,
					   const unsigned char *code)
{
	struct python_frame met = { .code = pointer_at(frame, layout->frame_code),
				    .file_text = pointer_at(code, layout->code_file),
				    .name_text = pointer_at(code, layout->code_name),
				    .first_line = int_at(code, layout->code_line) };

	if (pointer_at(code, sizeof(void *)) != python.code_type ||
	    (layout->frame_owner != 0 && frame[layout->frame_owner] == SHIM))
		return NULL;
	met.offset = layout->lasti_unit != 0
			     ? int_at(frame, layout->frame_at) * layout->lasti_unit
			     : (int)((uintptr_t)pointer_at(frame, layout->frame_at) -
				     (uintptr_t)met.code - layout->code_start);
	return keep_python(&met);
}

/* The calling thread's frames, innermost first, at most `max`; how many there are: 0 where it runs
 * no Python, or one that is not known. The interpreter's lock is neither needed nor taken, and
 * nothing of it is changed; memory that is not what it should be ends the list. */
static unsigned python_frames(const struct python_frame **out, unsigned max)
{
	const struct layout *layout = python.layout;
	unsigned char *thread = layout != NULL ? python.thread() : NULL;
	unsigned char frame[FRAME_ROOM], code[CODE_BYTES];
	void *at = NULL;
	unsigned count = 0;
	size_t bytes;

	if (thread == NULL || !read_bytes(thread + layout->thread_frame, &at, sizeof(at)) ||
	    (layout->cframe_frame >= 0 &&
	     !read_bytes((char *)at + layout->cframe_frame, &at, sizeof(at))))
		return 0;
	bytes = layout->frame_owner != 0 ? layout->frame_owner + 1u
					 : layout->frame_at + sizeof(int);
	while (count < max && at != NULL && read_bytes(at, frame, bytes) &&
	       read_bytes(pointer_at(frame, layout->frame_code), code, sizeof(code))) {
		out[count] = frame_of(layout, frame, code);
		count += out[count] != NULL;
		at = pointer_at(frame, layout->frame_previous);
	}
	return count;
}

/* ---- kept stacks ---- */

#define OWN_FRAMES_MAX 16 /* of npusim, between the program and npu_stack_here() */
#define STACKS_MAX     (1u << 20)
#define CHAINS         (1u << 14)
#define PYTHON         (UINT64_C(1) << 63) /* a frame is the address of a struct python_frame */

struct kept {
	uint64_t hash;
	struct kept *next;     /* of its chain */
	const char *call;      /* npusim's function that the program called */
	_Atomic(char *) lines; /* npu_stack_lines(), once somebody has asked */
	npu_stack number;
	unsigned count;
	void *frames[];
};

static unsigned depth; /* frames of the program; 0: stacks are off */
static int (*libc_unwind)(void **frames, int max) = backtrace; /* a sanitizer's, it may be */
static int (*unwind)(void **frames, int max) = backtrace;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t dw_lock = PTHREAD_MUTEX_INITIALIZER; /* libdw: no lock is taken within */
static struct kept *_Atomic *stacks; /* by number; STACKS_MAX of them, touched as they fill */
static unsigned stack_count = 1;
static struct kept *chains[CHAINS]; /* by hash, where LeakSanitizer finds them; lock */

/* A thread that the child does not have may be inside: its child would wait for it. */
static void before_fork(void)
{
	pthread_mutex_lock(&dw_lock);
	pthread_mutex_lock(&python_lock);
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&python_lock);
	pthread_mutex_unlock(&dw_lock);
}

/* Another thread may have been inside libunwind, which has locks of its own. */
static void after_fork_in_child(void)
{
	unwind = libc_unwind;
	after_fork();
}

/* Who asks for all that is left wants to know whose it is. */
static bool is_wanted(void)
{
	const char *leaks = npu_var_get(NPU_VAR_LEAKS, NULL);

	return strcmp(leaks, "full") == 0 || strncmp(leaks, "fail", strlen("fail")) == 0 ||
	       strcmp(npu_var_get(NPU_VAR_VALIDATE, NULL), "off") != 0;
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
	else if (unset == 0 && is_wanted())
		unset = NPU_STACK_SHORT;
	else if (unset < depth)
		unset = depth;
	if (unset > 0 && stacks == NULL) {
		stacks = mmap(NULL, STACKS_MAX * sizeof(*stacks), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (stacks == MAP_FAILED)
			stacks = NULL;
		else /* sparse: core files go without it */
			madvise(stacks, STACKS_MAX * sizeof(*stacks), MADV_DONTDUMP);
		find(dlopen("libc.so.6", RTLD_LAZY), "backtrace", &libc_unwind);
		unwind = libc_unwind;
		if (!find(RTLD_DEFAULT, "__tsan_init", &library) && /* dies of its thread ends */
		    (library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL)) != NULL)
			find(library, "unw_backtrace", &unwind);
		libc_unwind(warm, 2); /* the first call loads libgcc */
	}
	depth = stacks == NULL ? 0 : unset;
	if (depth > 0)
		find_python();
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
	{ "libcuda.so", OWN },     { "libcudart", OWN },          { "backend-sim.so", OWN },
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

	for (unsigned i = 0; i < RECENT; i++)
		if (at >= recent[i].begin && at < recent[i].end)
			return recent[i].whose;
	if (_dl_find_object(address, &object) != 0)
		return PROGRAM;
	next = (next + 1) % RECENT;
	recent[next] =
		(struct range){ (uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end,
				whose_file(object.dlfo_link_map->l_name) };
	return recent[next].whose;
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
	const struct kept *kept = chains[hash % CHAINS];

	for (; kept != NULL; kept = kept->next)
		if (kept->hash == hash && kept->count == count &&
		    memcmp(kept->frames, frames, count * sizeof(*frames)) == 0)
			return kept->number;
	return 0;
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
	chains[hash % CHAINS] = kept;
	return kept->number = stack_count++;
}

/* The frames of C up to the interpreter's first give way to those of Python. How many there are. */
static unsigned add_python(void **frames, unsigned count)
{
	const struct python_frame *found[NPU_STACK_FULL];
	unsigned native = 0, more;

	while (native < count && !is_python(frames[native]))
		native++;
	if (native == count)
		return count;
	more = python_frames(found, depth - native);
	for (unsigned i = 0; i < more; i++)
		frames[native + i] = (void *)((uintptr_t)found[i] | PYTHON);
	return more > 0 ? native + more : count;
}

/* Of frames[got] from `first` on. */
static npu_stack keep_from(void **frames, int first, int got, const void *entry)
{
	unsigned count = got - first < (int)depth ? (unsigned)(got - first) : depth;
	uint64_t hash;

	if (got <= first)
		return 0;
	frames += first;
	count = add_python(frames, count);
	hash = hash_of(frames, count) ^ (uintptr_t)entry;
	LOCKED(&lock);
	return find_locked(hash, frames, count) ?: add_locked(hash, frames, count, entry);
}

npu_stack npu_stack_here(void)
{
	void *frames[OWN_FRAMES_MAX + NPU_STACK_FULL], *entry = NULL;
	int got = depth > 0 ? unwind(frames, (int)(OWN_FRAMES_MAX + depth)) : 0, first;

	for (first = 0; first < got && first < OWN_FRAMES_MAX; first++) {
		enum whose whose = whose_frame(frames[first]);

		if (whose == PROGRAM)
			break;
		entry = whose == OWN ? frames[first] : entry;
	}
	return keep_from(frames, first, got, entry);
}

npu_stack npu_stack_from(const void *pc)
{
	void *frames[OWN_FRAMES_MAX + NPU_STACK_FULL];
	int got = depth > 0 ? unwind(frames, (int)(OWN_FRAMES_MAX + depth)) : 0, first = 0;

	while (first < got && frames[first] != pc)
		first++;
	if (first < got) /* the others are behind their calls, too */
		frames[first] = (char *)frames[first] + 1;
	return keep_from(frames, first, got, NULL);
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
	void *(*unit)(void *module, uint64_t address, uint64_t *bias);
	void *(*next)(void *module, void *unit, uint64_t *bias);
	int (*has)(void *unit, uint64_t address);
	void *(*line)(void *unit, uint64_t address);
	const char *(*file)(void *line, uint64_t *time, uint64_t *length);
	int (*number)(void *line, int *number);
} dw;
static void open_locked(void)
{
	static struct dwfl_callbacks callbacks;
	void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);

	dw.tried = true;
	if (library == NULL || !find(library, "dwfl_begin", &dw.begin) ||
	    !find(library, "dwfl_linux_proc_report", &dw.proc_report) ||
	    !find(library, "dwfl_report_end", &dw.report_end) ||
	    !find(library, "dwfl_addrmodule", &dw.module) ||
	    !find(library, "dwfl_module_addrname", &dw.name) ||
	    !find(library, "dwfl_module_addrdie", &dw.unit) ||
	    !find(library, "dwfl_module_nextcu", &dw.next) ||
	    !find(library, "dwarf_haspc", &dw.has) ||
	    !find(library, "dwarf_getsrc_die", &dw.line) ||
	    !find(library, "dwarf_linesrc", &dw.file) ||
	    !find(library, "dwarf_lineno", &dw.number) ||
	    !find(library, "dwfl_linux_proc_find_elf", &callbacks.find_elf) ||
	    !find(library, "dwfl_standard_find_debuginfo", &callbacks.find_debuginfo))
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

/* clang writes no table of which unit has which addresses: each is asked, then. */
static void *line_locked(void *module, uint64_t at)
{
	uint64_t bias;
	void *unit = dw.unit(module, at, &bias);

	if (unit == NULL)
		while ((unit = dw.next(module, unit, &bias)) != NULL)
			if (dw.has(unit, at - bias) > 0)
				break;
	return unit != NULL ? dw.line(unit, at - bias) : NULL;
}

struct npu_frame npu_stack_look(const void *address)
{
	uint64_t at = (uintptr_t)address - 1;
	struct npu_frame frame = { 0 };
	const struct python_frame *met;
	void *module, *line = NULL;
	Dl_info info;

	if (((uintptr_t)address & PYTHON) != 0) {
		met = (const void *)((uintptr_t)address & ~PYTHON);
		return (struct npu_frame){ .function = met->function,
					   .file = met->file,
					   .line = met->line };
	}
	pthread_mutex_lock(&dw_lock);
	module = module_locked(at);
	if (module != NULL) {
		frame.function = dw.name(module, at);
		line = line_locked(module, at);
	}
	if (line != NULL && dw.number(line, &frame.line) == 0)
		frame.file = dw.file(line, NULL, NULL);
	pthread_mutex_unlock(&dw_lock);
	if (dladdr((const void *)(uintptr_t)at, &info) == 0)
		return frame;
	if (frame.function == NULL)
		frame.function = info.dli_sname;
	frame.object = info.dli_fname;
	frame.offset = (uintptr_t)address - (uintptr_t)info.dli_fbase;
	return frame;
}

bool npu_stack_ends(const struct npu_frame *frame)
{
	return frame->function != NULL && strcmp(frame->function, "main") == 0;
}

char *npu_stack_frame(const void *address, bool *out_ends)
{
	struct npu_frame frame = npu_stack_look(address);
	char *text = NULL;

	*out_ends = npu_stack_ends(&frame);
	npu_text_add(&text, "%s", frame.function ?: "?");
	if (frame.file != NULL)
		npu_text_add(&text, " at %s:%d", frame.file, frame.line);
	else if (frame.object != NULL)
		npu_text_add(&text, " in %s+%#tx", frame.object, (ptrdiff_t)frame.offset);
	else
		npu_text_add(&text, " at %p", address);
	return text;
}

/* Two threads may word it at once: one of the texts stays. */
const char *npu_stack_lines(npu_stack stack)
{
	struct kept *kept = kept_of(stack);
	char *text = NULL, *before = NULL;

	if (kept == NULL || atomic_load(&kept->lines) != NULL)
		return kept == NULL ? NULL : atomic_load(&kept->lines);
	for (unsigned i = 0; i < kept->count; i++) {
		struct npu_frame frame = npu_stack_look(kept->frames[i]);

		npu_text_add(&text, "%s%s (%s", i > 0 ? "\n" : "", frame.function ?: "?",
			     frame.file ?: frame.object ?: "?");
		npu_text_add(&text, frame.file != NULL ? ":%ju)" : "+%#jx)",
			     frame.file != NULL ? (uintmax_t)frame.line : (uintmax_t)frame.offset);
		if (npu_stack_ends(&frame))
			break;
	}
	if (!atomic_compare_exchange_strong(&kept->lines, &before, text))
		free(text);
	return atomic_load(&kept->lines);
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

#define FRAME_MAX 240 /* of a message's NPU_TEXT_MAX */

char *npu_stack_words(npu_stack stack)
{
	struct kept *kept = kept_of(stack);
	char *text = NULL, *frame;
	size_t over, at = 0;
	bool ends;

	if (kept == NULL)
		return NULL;
	while (at < kept->count && npu_stack_look(kept->frames[at]).file == NULL)
		at++;
	frame = npu_stack_frame(kept->frames[at % kept->count], &ends);
	over = frame != NULL && strlen(frame) > FRAME_MAX ? strlen(frame) - FRAME_MAX : 0;
	npu_text_add(&text, "%s%s%s%s", kept->call ?: "", kept->call != NULL ? ", " : "",
		     over > 0 ? "..." : "", frame != NULL ? frame + over : "?");
	free(frame);
	return text;
}

void npu_stack_add(char **text, npu_stack stack, const char *indent)
{
	struct kept *kept = kept_of(stack);
	bool ends = false;

	if (kept == NULL)
		return;
	if (kept->call != NULL)
		npu_text_add(text, "%s%s\n", indent, kept->call);
	for (unsigned i = 0; i < kept->count && !ends; i++) {
		char *frame = npu_stack_frame(kept->frames[i], &ends);

		npu_text_add(text, "%s%s\n", indent, frame ?: "?");
		free(frame);
	}
}
