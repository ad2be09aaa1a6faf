/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of the case files (README.md): words to arguments, calls to answers. One case at a time, in
 * the process that runs it.
 */
#include "case-run.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MAX 64
#define WORDS_MAX 16

struct step {
	char text[256];
	char *word[WORDS_MAX];
	unsigned words;
	char value[128]; /* what the call gave, beside its code */
};

static struct {
	char name[32];
	uint64_t value;
} names[NAMES_MAX];
static unsigned name_count;
static size_t marked_free;

/* ---- arguments ---- */

static uint64_t *named(const char *name, size_t length)
{
	for (unsigned i = 0; i < name_count; i++)
		if (strlen(names[i].name) == length && strncmp(names[i].name, name, length) == 0)
			return &names[i].value;
	if (name_count == NAMES_MAX || length >= sizeof(names[0].name))
		abort();
	memcpy(names[name_count].name, name, length);
	return &names[name_count++].value;
}

static uint64_t one_term(const char *text, size_t length)
{
	static const char suffixes[] = "KMGT";
	char *end;
	uint64_t number;
	const char *suffix;

	if (!isdigit((unsigned char)*text))
		return *named(text, length);
	number = strtoull(text, &end, 0);
	suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
	return suffix != NULL ? number << 10 * (suffix - suffixes + 1) : number;
}

static uint64_t value_of(const char *text)
{
	uint64_t sum = 0;
	bool minus = false;

	while (*text != '\0') {
		size_t length = strcspn(text, "+-");
		uint64_t term = length > 0 ? one_term(text, length) : 0;

		sum += minus ? -term : term;
		text += length;
		minus = *text == '-';
		text += *text != '\0';
	}
	return sum;
}

static uint64_t word(const struct step *s, unsigned i)
{
	return i < s->words ? value_of(s->word[i]) : 0;
}

/* The text behind KEY=; NULL: not given. */
static const char *option(const struct step *s, const char *key)
{
	size_t length = strlen(key);

	for (unsigned i = 1; i < s->words; i++)
		if (strncmp(s->word[i], key, length) == 0 && s->word[i][length] == '=')
			return s->word[i] + length + 1;
	return NULL;
}

static uint64_t number_option(const struct step *s, const char *key, uint64_t otherwise)
{
	const char *text = option(s, key);

	return text != NULL ? value_of(text) : otherwise;
}

/* One of the names, by its place in the list, or a number. */
static int choice(const struct step *s, const char *key, const char *const *list, int otherwise)
{
	const char *text = option(s, key);

	if (text == NULL)
		return otherwise;
	for (int i = 0; list[i] != NULL; i++)
		if (strcmp(list[i], text) == 0)
			return i;
	return (int)value_of(text);
}

static CUmemLocation location_of(const struct step *s)
{
	static const char *const kinds[] = {
		"none", "device", "host", "numa", "numacurrent", NULL
	};

	return (CUmemLocation){ (CUmemLocationType)choice(s, "loc", kinds, 1),
				(int)number_option(s, "dev", 0) };
}

static const char *const handle_kinds[] = { "none", "fd", "2", "3",      "4",
					    "5",    "6",  "7", "fabric", NULL };

static CUmemAllocationProp prop_of(const struct step *s)
{
	static const char *const types[] = { "0", "pinned", "managed", NULL };
	CUmemAllocationProp prop = { .location = location_of(s) };

	prop.type = (CUmemAllocationType)choice(s, "type", types, 1);
	prop.requestedHandleTypes = (CUmemAllocationHandleType)choice(s, "handle", handle_kinds, 0);
	prop.allocFlags.compressionType = (unsigned char)number_option(s, "compression", 0);
	prop.allocFlags.gpuDirectRDMACapable = (unsigned char)number_option(s, "rdma", 0);
	prop.allocFlags.usage = (unsigned short)number_option(s, "usage", 0);
	return prop;
}

#define SAY(s, ...) snprintf((s)->value, sizeof((s)->value), __VA_ARGS__)

static CUresult keep(struct step *s, CUresult code, uint64_t value)
{
	const char *same = option(s, "same");

	if (code != CUDA_SUCCESS)
		return code;
	*named(s->word[1], strlen(s->word[1])) = value;
	if (same != NULL)
		SAY(s, "same=%d", value == value_of(same));
	return code;
}

/* ---- calls of virtual memory management ---- */

static CUresult do_reserve(struct step *s)
{
	uint64_t align = number_option(s, "align", 0);
	CUdeviceptr va = 0;
	CUresult code = cuMemAddressReserve(&va, word(s, 2), align, number_option(s, "addr", 0),
					    number_option(s, "flags", 0));

	if (code == CUDA_SUCCESS && (va % (2u << 20) != 0 || (align != 0 && va % align != 0))) {
		SAY(s, "0x%llx is not aligned", va);
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	return keep(s, code, va);
}

static CUresult do_addrfree(struct step *s)
{
	return cuMemAddressFree(word(s, 1), word(s, 2));
}

static CUresult do_create(struct step *s)
{
	CUmemAllocationProp prop = prop_of(s);
	CUmemGenericAllocationHandle handle = 0;
	CUresult code = cuMemCreate(&handle, word(s, 2), &prop, number_option(s, "flags", 0));

	return keep(s, code, handle);
}

static CUresult do_createnull(struct step *s)
{
	CUmemGenericAllocationHandle handle;

	(void)s;
	return cuMemCreate(&handle, 2u << 20, NULL, 0);
}

static CUresult do_release(struct step *s)
{
	return cuMemRelease(word(s, 1));
}

static CUresult do_map(struct step *s)
{
	return cuMemMap(word(s, 1), word(s, 2), word(s, 3), word(s, 4),
			number_option(s, "flags", 0));
}

static CUresult do_unmap(struct step *s)
{
	return cuMemUnmap(word(s, 1), word(s, 2));
}

static CUresult do_access(struct step *s)
{
	static const char *const kinds[] = { "none", "r", "2", "rw", NULL };
	CUmemAccessDesc desc = { location_of(s), (CUmemAccess_flags)choice(s, "flags", kinds, 3) };
	CUmemAccessDesc descs[2] = { desc, desc };

	return cuMemSetAccess(word(s, 1), word(s, 2), descs, number_option(s, "count", 1));
}

static CUresult do_getaccess(struct step *s)
{
	CUmemLocation location = location_of(s);
	unsigned long long flags = 0;
	CUresult code = cuMemGetAccess(&flags, &location, word(s, 1));

	if (code == CUDA_SUCCESS)
		SAY(s, "flags=%llu", flags);
	return code;
}

static CUresult do_gran(struct step *s)
{
	CUmemAllocationProp prop = prop_of(s);
	size_t size = 0;
	int which = strcmp(s->word[1], "min") == 0   ? 0
		    : strcmp(s->word[1], "rec") == 0 ? 1
						     : (int)word(s, 1);
	CUresult code = cuMemGetAllocationGranularity(&size, &prop,
						      (CUmemAllocationGranularity_flags)which);

	if (code == CUDA_SUCCESS)
		SAY(s, "%zuK", size >> 10);
	return code;
}

static CUresult do_props(struct step *s)
{
	CUmemAllocationProp prop;
	CUresult code = cuMemGetAllocationPropertiesFromHandle(&prop, word(s, 1));

	if (code == CUDA_SUCCESS)
		SAY(s, "type=%d handle=%d loc=%d id=%d", (int)prop.type,
		    (int)prop.requestedHandleTypes, (int)prop.location.type, prop.location.id);
	return code;
}

static CUresult do_retain(struct step *s)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult code = cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)word(s, 2));

	return keep(s, code, handle);
}

static CUresult do_export(struct step *s)
{
	unsigned char shareable[64] = { 0 };
	int fd;
	CUresult code = cuMemExportToShareableHandle(
		shareable, word(s, 2),
		(CUmemAllocationHandleType)choice(s, "type", handle_kinds, 1),
		number_option(s, "flags", 0));

	memcpy(&fd, shareable, sizeof(fd));
	return keep(s, code, (uint64_t)fd);
}

static CUresult do_import(struct step *s)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult code = cuMemImportFromShareableHandle(
		&handle, (void *)(uintptr_t)word(s, 2),
		(CUmemAllocationHandleType)choice(s, "type", handle_kinds, 1));

	return keep(s, code, handle);
}

static CUresult do_closefd(struct step *s)
{
	return close((int)word(s, 1)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static CUresult do_devnull(struct step *s)
{
	return keep(s, CUDA_SUCCESS, (uint64_t)open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* ---- bytes and classic memory ---- */

static CUresult finish(CUresult code)
{
	return code == CUDA_SUCCESS ? cuCtxSynchronize() : code;
}

static CUresult do_set(struct step *s)
{
	return finish(cuMemsetD8_v2(word(s, 1), (unsigned char)word(s, 2), word(s, 3)));
}

static CUresult do_get(struct step *s)
{
	size_t bytes = number_option(s, "len", 1);
	unsigned char *to = calloc(1, bytes);
	CUresult code = cuMemcpyDtoH_v2(to, word(s, 1), bytes);

	if (code == CUDA_SUCCESS && bytes == 1)
		SAY(s, "%d", to[0]);
	else if (code == CUDA_SUCCESS)
		SAY(s, "first=%d last=%d", to[0], to[bytes - 1]);
	free(to);
	return code;
}

static CUresult do_h2d(struct step *s)
{
	size_t bytes = word(s, 2);
	unsigned char *from = malloc(bytes);
	CUresult code;

	memset(from, (int)word(s, 3), bytes);
	code = cuMemcpyHtoD_v2(word(s, 1), from, bytes);
	free(from);
	return code;
}

static CUresult do_d2d(struct step *s)
{
	return finish(cuMemcpyDtoD_v2(word(s, 1), word(s, 2), word(s, 3)));
}

static CUresult do_alloc(struct step *s)
{
	CUdeviceptr va = 0;
	CUresult code = cuMemAlloc_v2(&va, word(s, 2));

	return keep(s, code, va);
}

static CUresult do_free(struct step *s)
{
	return cuMemFree_v2(word(s, 1));
}

static CUresult do_range(struct step *s)
{
	CUdeviceptr base = 0;
	size_t size = 0;
	CUresult code = cuMemGetAddressRange_v2(&base, &size, word(s, 1));

	if (code == CUDA_SUCCESS)
		SAY(s, "offset=%lluK size=%zuK", (word(s, 1) - base) >> 10, size >> 10);
	return code;
}

static CUresult do_attr(struct step *s)
{
	CUpointer_attribute which = (CUpointer_attribute)word(s, 2);
	uint64_t value = 0;
	CUresult code = cuPointerGetAttribute(&value, which, word(s, 1));

	if (code != CUDA_SUCCESS)
		return code;
	if (which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
		SAY(s, "offset=%" PRIu64 "K", (word(s, 1) - value) >> 10);
	else if (which == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
		SAY(s, "%" PRIu64 "K", value >> 10);
	else
		SAY(s, "%" PRIu32, (uint32_t)value);
	return code;
}

static CUresult do_devattr(struct step *s)
{
	int value = 0;
	CUresult code = cuDeviceGetAttribute(&value, (CUdevice_attribute)word(s, 1), 0);

	if (code == CUDA_SUCCESS)
		SAY(s, "%d", value);
	return code;
}

static CUresult do_mark(struct step *s)
{
	size_t total;

	(void)s;
	return cuMemGetInfo_v2(&marked_free, &total);
}

static CUresult do_used(struct step *s)
{
	size_t now = 0, total;
	CUresult code = cuMemGetInfo_v2(&now, &total);

	if (code == CUDA_SUCCESS)
		SAY(s, "%lldM", ((long long)marked_free - (long long)now) / (1 << 20));
	return code;
}

/* ---- contexts ---- */

static CUresult do_init(struct step *s)
{
	return cuInit((unsigned)number_option(s, "flags", 0));
}

static CUresult do_ctx(struct step *s)
{
	CUcontext context = NULL;
	CUresult code = cuDevicePrimaryCtxRetain(&context, 0);

	(void)s;
	return code == CUDA_SUCCESS ? cuCtxSetCurrent(context) : code;
}

static CUresult do_noctx(struct step *s)
{
	(void)s;
	return cuCtxSetCurrent(NULL);
}

static CUresult do_ctxreset(struct step *s)
{
	(void)s;
	return cuDevicePrimaryCtxReset_v2(0);
}

static CUresult do_sync(struct step *s)
{
	(void)s;
	return cuCtxSynchronize();
}

static const struct {
	const char *name;
	CUresult (*run)(struct step *s);
} calls[] = {
#define CALL(name) { #name, do_##name },
	CALL(reserve) CALL(addrfree) CALL(create) CALL(createnull) CALL(release) CALL(map)
		CALL(unmap) CALL(access) CALL(getaccess) CALL(gran) CALL(props) CALL(retain)
			CALL(export) CALL(import) CALL(closefd) CALL(devnull) CALL(set) CALL(get)
				CALL(h2d) CALL(d2d) CALL(alloc) CALL(free) CALL(range) CALL(attr)
					CALL(devattr) CALL(mark) CALL(used) CALL(init) CALL(ctx)
						CALL(noctx) CALL(ctxreset) CALL(sync)
#undef CALL
};

/* ---- a step ---- */

static CUresult run_call(struct step *s)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].name, s->word[0]) == 0)
			return calls[i].run(s);
	fprintf(stderr, "there is no call '%s'\n", s->word[0]);
	_exit(2);
}

static const char *code_text(CUresult code)
{
	const char *name = "?";

	cuGetErrorName(code, &name);
	if (code == CUDA_SUCCESS)
		return "OK";
	return strncmp(name, "CUDA_ERROR_", 11) == 0 ? name + 11 : name;
}

bool case_run_step(const char *line)
{
	struct step s = { .words = 0 };
	char wanted_code[48] = "", wanted_value[96] = "", *arrow, *place = NULL;
	CUresult code;

	snprintf(s.text, sizeof(s.text), "%s", line);
	arrow = strstr(s.text, "=>");
	if (arrow == NULL || sscanf(arrow + 2, " %47s %95[^\n]", wanted_code, wanted_value) < 1) {
		fprintf(stderr, "'%s' says no answer\n", line);
		return false;
	}
	*arrow = '\0';
	for (char *w = strtok_r(s.text, " \t", &place); w != NULL && s.words < WORDS_MAX;
	     w = strtok_r(NULL, " \t", &place))
		s.word[s.words++] = w;
	code = run_call(&s);
	if (strcmp(code_text(code), wanted_code) == 0 &&
	    (wanted_value[0] == '\0' || strcmp(wanted_value, s.value) == 0))
		return true;
	fprintf(stderr, "'%s': the answer is %s %s\n", line, code_text(code), s.value);
	return false;
}

bool case_begin(bool bare)
{
	size_t total;

	if (bare)
		return true;
	return cuInit(0) == CUDA_SUCCESS && do_ctx(NULL) == CUDA_SUCCESS &&
	       cuMemGetInfo_v2(&marked_free, &total) == CUDA_SUCCESS;
}
