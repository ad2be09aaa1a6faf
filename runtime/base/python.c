/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of Python: a thread's are read from its own thread state, which CPython keeps in
 * thread-local storage. The thread may have dropped the interpreter's lock, as ctypes does, so only
 * functions are called that read what cannot change while the frame is there: its code and the
 * names in it. All that is reached by an offset of a structure is read by the kernel, so that an
 * offset that is wrong finds nothing, and breaks nothing.
 */
#include "base/python.h"

#include "base/lock.h"

#include <dlfcn.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

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

/* A frame as it was met: where its code and its names lie, and the instruction. */
struct met {
	void *code, *file, *name;
	int offset, first_line;
};
struct kept {
	struct met met;
	struct npu_python_frame frame;
};
pthread_mutex_t npu_python_lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept; /* a tree of struct kept (tsearch()), only added to; npu_python_lock */

/* ---- the interpreter ---- */

bool npu_python_symbol(void *library, const char *name, void *out)
{
	void *symbol = dlsym(library, name);

	if (symbol != NULL)
		memcpy(out, &symbol, sizeof(symbol));
	return symbol != NULL;
}

void npu_python_find(void)
{
	const char *(*version)(void);
	struct dl_find_object object;
	const struct layout *layout = layouts,
			    *end = layouts + sizeof(layouts) / sizeof(layouts[0]);

	if (python.layout != NULL || !npu_python_symbol(RTLD_DEFAULT, "Py_GetVersion", &version) ||
	    !npu_python_symbol(RTLD_DEFAULT, "PyCode_Type", &python.code_type) ||
	    !npu_python_symbol(RTLD_DEFAULT, "PyUnicode_Type", &python.text_type) ||
	    !npu_python_symbol(RTLD_DEFAULT, "PyGILState_GetThisThreadState", &python.thread) ||
	    !npu_python_symbol(RTLD_DEFAULT, "PyCode_Addr2Line", &python.line_of) ||
	    !npu_python_symbol(RTLD_DEFAULT, "PyUnicode_GetLength", &python.length) ||
	    !npu_python_symbol(RTLD_DEFAULT, "PyUnicode_ReadChar", &python.letter) ||
	    _dl_find_object((void *)(uintptr_t)python.thread, &object) != 0)
		return;
	python.begin = (uintptr_t)object.dlfo_map_start;
	python.end = (uintptr_t)object.dlfo_map_end;
	while (layout < end && strncmp(version(), layout->version, strlen(layout->version)) != 0)
		layout++;
	python.layout = layout < end ? layout : NULL;
}

bool npu_python_has(const void *address)
{
	return python.layout != NULL && (uintptr_t)address >= python.begin &&
	       (uintptr_t)address < python.end;
}

/* ---- memory that may be anything ---- */

static bool read_two(const void *from, void *to, size_t bytes, const void *from2, void *to2,
		     size_t bytes2)
{
	struct iovec local[] = { { to, bytes }, { to2, bytes2 } };
	struct iovec remote[] = { { (void *)(uintptr_t)from, bytes },
				  { (void *)(uintptr_t)from2, bytes2 } };

	return process_vm_readv(getpid(), local, 2, remote, 2, 0) == (ssize_t)(bytes + bytes2);
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

	return read_two(object, found, sizeof(found), NULL, NULL, 0) && found[1] == type;
}

/* ---- kept ---- */

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
	return memcmp(&((const struct kept *)a)->met, &((const struct kept *)b)->met,
		      sizeof(struct met));
}

static const struct npu_python_frame *keep(const struct met *met)
{
	struct kept wanted = { .met = *met }, **there, *new = NULL;
	LOCKED(&npu_python_lock);

	there = tfind(&wanted, &kept, compare);
	if (there != NULL)
		return &(*there)->frame;
	wanted.frame.function = utf8_of(met->name);
	wanted.frame.file = utf8_of(met->file);
	wanted.frame.line =
		met->offset < 0 ? met->first_line : python.line_of(met->code, met->offset);
	if (wanted.frame.function != NULL && wanted.frame.file != NULL)
		new = malloc(sizeof(*new));
	if (new != NULL) {
		*new = wanted;
		if (tsearch(new, &kept, compare) != NULL)
			return &new->frame;
	}
	free((char *)wanted.frame.function);
	free((char *)wanted.frame.file);
	free(new);
	return NULL;
}

/* ---- the thread's frames ---- */

static size_t frame_bytes(const struct layout *layout)
{
	return layout->frame_owner != 0 ? layout->frame_owner + 1u : layout->frame_at + sizeof(int);
}

static const struct npu_python_frame *
frame_of(const struct layout *layout, const unsigned char *frame, const unsigned char *code)
{
	struct met met;

	if (pointer_at(code, sizeof(void *)) != python.code_type ||
	    (layout->frame_owner != 0 && frame[layout->frame_owner] == SHIM))
		return NULL;
	memset(&met, 0, sizeof(met)); /* its gaps are compared, too */
	met.code = pointer_at(frame, layout->frame_code);
	met.file = pointer_at(code, layout->code_file);
	met.name = pointer_at(code, layout->code_name);
	met.first_line = int_at(code, layout->code_line);
	met.offset = layout->lasti_unit != 0
			     ? int_at(frame, layout->frame_at) * layout->lasti_unit
			     : (int)((uintptr_t)pointer_at(frame, layout->frame_at) -
				     (uintptr_t)met.code - layout->code_start);
	return keep(&met);
}

unsigned npu_python_frames(const struct npu_python_frame **out, unsigned max)
{
	const struct layout *layout = python.layout;
	unsigned char *thread = layout != NULL ? python.thread() : NULL;
	unsigned char frame[FRAME_ROOM], next[FRAME_ROOM], code[CODE_BYTES];
	size_t bytes;
	void *at = NULL;
	unsigned count = 0;

	if (thread == NULL ||
	    !read_two(thread + layout->thread_frame, &at, sizeof(at), NULL, NULL, 0) ||
	    (layout->cframe_frame >= 0 &&
	     !read_two((char *)at + layout->cframe_frame, &at, sizeof(at), NULL, NULL, 0)))
		return 0;
	bytes = frame_bytes(layout);
	if (at == NULL || !read_two(at, frame, bytes, NULL, NULL, 0))
		return 0;
	while (count < max) {
		at = pointer_at(frame, layout->frame_previous);
		if (!read_two(pointer_at(frame, layout->frame_code), code, sizeof(code), at, next,
			      at != NULL ? bytes : 0))
			break;
		out[count] = frame_of(layout, frame, code);
		count += out[count] != NULL;
		if (at == NULL)
			break;
		memcpy(frame, next, bytes);
	}
	return count;
}
