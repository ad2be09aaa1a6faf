/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA dialect of the cases: the steps of cases/FORMAT.md as calls of libcuda.so.1.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "case-step.h"
#include "cuda/cuda.h"

static uint64_t marked_free;

/* ---- arguments ---- */

static const char handle_types[] = "none fd 2 3 4 5 6 7 fabric";

static CUmemLocation location_of(struct step *s)
{
	return (CUmemLocation){ (CUmemLocationType)step_choice(
					s, "loc", "none device host numa numacurrent", 1),
				(int)step_option_number(s, "dev", 0) };
}

static CUmemAllocationProp prop_of(struct step *s)
{
	CUmemAllocationProp prop = { .location = location_of(s) };

	prop.type = (CUmemAllocationType)step_choice(s, "type", "0 pinned managed", 1);
	prop.requestedHandleTypes =
		(CUmemAllocationHandleType)step_choice(s, "handle", handle_types, 0);
	prop.allocFlags.compressionType = (unsigned char)step_option_number(s, "compression", 0);
	prop.allocFlags.gpuDirectRDMACapable = (unsigned char)step_option_number(s, "rdma", 0);
	prop.allocFlags.usage = (unsigned short)step_option_number(s, "usage", 0);
	return prop;
}

static gboolean argument(struct step *s, const char *word, uint64_t *out)
{
	static CUmemAllocationProp prop;
	static CUmemAccessDesc descs[2];
	static CUmemLocation location;

	if (strcmp(word, "prop") == 0) {
		prop = prop_of(s);
		*out = (uintptr_t)&prop;
	} else if (strcmp(word, "descs") == 0) {
		descs[0].location = location_of(s);
		descs[0].flags = (CUmemAccess_flags)step_choice(s, "flags", "none r 2 rw", 3);
		descs[1] = descs[0];
		*out = (uintptr_t)descs;
	} else if (strcmp(word, "location") == 0) {
		location = location_of(s);
		*out = (uintptr_t)&location;
	} else if (strcmp(word, "type") == 0) {
		*out = (uint64_t)step_choice(s, "type", handle_types, 1);
	} else if (strcmp(word, "granularity") == 0) {
		*out = strcmp(step_word(s, 1), "min") == 0   ? 0
		       : strcmp(step_word(s, 1), "rec") == 0 ? 1
							     : step_number(s, 1);
	} else {
		return FALSE;
	}
	return TRUE;
}

/* ---- what calls gave ---- */

/* Whether it is the value of the variable of option same=. */
static void show_same(struct step *s)
{
	const char *name = step_option(s, "same", NULL);

	if (name != NULL)
		step_show(s, "same=%d", step_value(s, name) == s->out[STEP_RESULT][0]);
}

static void check_address(struct step *s)
{
	uint64_t va = s->out[STEP_RESULT][0], align = step_option_number(s, "align", 0);

	if (va % (UINT64_C(2) << 20) == 0 && (align == 0 || va % align == 0))
		return;
	step_show(s, "0x%" G_GINT64_MODIFIER "x is not aligned", va);
	s->answer->code = CUDA_ERROR_ILLEGAL_STATE;
}

static void show_access(struct step *s)
{
	step_show(s, "flags=%" G_GUINT64_FORMAT, s->out[0][0]);
}

static void show_size(struct step *s)
{
	step_show(s, "%" G_GUINT64_FORMAT "K", s->out[0][0] >> 10);
}

static void show_number(struct step *s)
{
	step_show(s, "%d", (int)s->out[0][0]);
}

static void show_properties(struct step *s)
{
	CUmemAllocationProp prop;

	memcpy(&prop, s->out[0], sizeof(prop));
	step_show(s, "type=%d handle=%d loc=%d id=%d", (int)prop.type,
		  (int)prop.requestedHandleTypes, (int)prop.location.type, prop.location.id);
}

static void keep_fd(struct step *s)
{
	step_set(s, 1, (uint64_t)(int)s->out[0][0]);
}

static void show_range(struct step *s)
{
	step_show(s, "offset=%" G_GUINT64_FORMAT "K size=%" G_GUINT64_FORMAT "K",
		  (step_number(s, 1) - s->out[0][0]) >> 10, s->out[1][0] >> 10);
}

static void show_attribute(struct step *s)
{
	switch (step_number(s, 2)) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		step_show(s, "offset=%" G_GUINT64_FORMAT "K",
			  (step_number(s, 1) - s->out[0][0]) >> 10);
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		show_size(s);
		break;
	default:
		step_show(s, "%" G_GUINT32_FORMAT, (guint32)s->out[0][0]);
	}
}

static void keep_mark(struct step *s)
{
	marked_free = s->out[0][0];
}

static void show_used(struct step *s)
{
	step_show(s, "%" G_GINT64_FORMAT "M",
		  ((gint64)marked_free - (gint64)s->out[0][0]) / (1 << 20));
}

/* ---- calls before or after the step's own ---- */

static void synchronize(struct step *s)
{
	step_call(s, "cuCtxSynchronize", "");
}

static void set_context(struct step *s)
{
	g_autofree char *context = g_strdup_printf("%" G_GUINT64_FORMAT, s->out[0][0]);

	step_call(s, "cuCtxSetCurrent", context);
}

static void get_bytes(struct step *s)
{
	s->size = step_option_number(s, "len", 1);
	s->host = g_malloc0(s->size);
	if (step_call(s, "cuMemcpyDtoH_v2", "host $1 size") != CUDA_SUCCESS)
		return;
	if (s->size == 1)
		step_show(s, "%d", s->host[0]);
	else
		step_show(s, "first=%d last=%d", s->host[0], s->host[s->size - 1]);
}

static void host_to_device(struct step *s)
{
	s->size = step_number(s, 2);
	s->host = g_malloc(s->size);
	memset(s->host, (int)step_number(s, 3), s->size);
	step_call(s, "cuMemcpyHtoD_v2", "$1 host size");
}

static void close_fd(struct step *s)
{
	s->answer->code = close((int)step_number(s, 1)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static void open_null(struct step *s)
{
	step_set(s, 1, (uint64_t)open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* ---- the dialect ---- */

static const struct case_verb verbs[] = {
	{ "init", "cuInit", "flags=0", NULL },
	{ "ctx", "cuDevicePrimaryCtxRetain", "out 0", set_context },
	{ "noctx", "cuCtxSetCurrent", "0", NULL },
	{ "ctxreset", "cuDevicePrimaryCtxReset_v2", "0", NULL },
	{ "sync", "cuCtxSynchronize", "", NULL },
	{ "reserve", "cuMemAddressReserve", ">1 $2 align=0 addr=0 flags=0", check_address },
	{ "addrfree", "cuMemAddressFree", "$1 $2", NULL },
	{ "create", "cuMemCreate", ">1 $2 prop flags=0", show_same },
	{ "createnull", "cuMemCreate", "out 2M 0 0", NULL },
	{ "release", "cuMemRelease", "$1", NULL },
	{ "map", "cuMemMap", "$1 $2 $3 $4 flags=0", NULL },
	{ "unmap", "cuMemUnmap", "$1 $2", NULL },
	{ "access", "cuMemSetAccess", "$1 $2 descs count=1", NULL },
	{ "getaccess", "cuMemGetAccess", "out location $1", show_access },
	{ "gran", "cuMemGetAllocationGranularity", "out prop granularity", show_size },
	{ "props", "cuMemGetAllocationPropertiesFromHandle", "out $1", show_properties },
	{ "retain", "cuMemRetainAllocationHandle", ">1 $2", show_same },
	{ "export", "cuMemExportToShareableHandle", "out $2 type flags=0", keep_fd },
	{ "import", "cuMemImportFromShareableHandle", ">1 $2 type", show_same },
	{ "closefd", NULL, NULL, close_fd },
	{ "devnull", NULL, NULL, open_null },
	{ "set", "cuMemsetD8_v2", "$1 $2 $3", synchronize },
	{ "get", NULL, NULL, get_bytes },
	{ "h2d", NULL, NULL, host_to_device },
	{ "d2d", "cuMemcpyDtoD_v2", "$1 $2 $3", synchronize },
	{ "alloc", "cuMemAlloc_v2", ">1 $2", show_same },
	{ "free", "cuMemFree_v2", "$1", NULL },
	{ "range", "cuMemGetAddressRange_v2", "out out1 $1", show_range },
	{ "attr", "cuPointerGetAttribute", "out $2 $1", show_attribute },
	{ "devattr", "cuDeviceGetAttribute", "out $1 0", show_number },
	{ "mark", "cuMemGetInfo_v2", "out out1", keep_mark },
	{ "used", "cuMemGetInfo_v2", "out out1", show_used },
	{ NULL, NULL, NULL, NULL },
};

#define CODE(code, name, text) { code, &#name[sizeof("CUDA_ERROR_") - 1] },
static const struct case_code codes[] = { CUDA_ERRORS(CODE){ 0, NULL } };

static const char *const beginning[] = { "init", "ctx", "mark", NULL };
const struct case_dialect case_cuda = { verbs, codes, beginning, NULL, argument };
