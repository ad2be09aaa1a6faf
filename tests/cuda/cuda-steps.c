/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA dialect of the cases: the steps of cases/FORMAT.md as calls of libcuda.so.1.
 */
#include <string.h>

#include "traces/check/case.h"
#include "cuda/cuda.h"

static const char handle_types[] = "none fd 2 3 4 5 6 7 fabric";

static CUmemLocation location_of(struct step *s)
{
	return (CUmemLocation){ (CUmemLocationType)step_choice(s, step_option(s, "loc", NULL),
							       "none device host numa numacurrent",
							       1),
				(int)step_option_number(s, "dev", 0) };
}

static gboolean argument(struct step *s, const char *word, uint64_t *out)
{
	static CUmemAllocationProp prop;
	static CUmemAccessDesc descs[2];
	static CUmemLocation location;

	if (strcmp(word, "prop") == 0) {
		prop = (CUmemAllocationProp){
			.type = (CUmemAllocationType)step_choice(s, step_option(s, "type", NULL),
								 "0 pinned managed", 1),
			.requestedHandleTypes = (CUmemAllocationHandleType)step_choice(
				s, step_option(s, "handle", NULL), handle_types, 0),
			.location = location_of(s),
			.allocFlags = {
				.compressionType =
					(unsigned char)step_option_number(s, "compression", 0),
				.gpuDirectRDMACapable =
					(unsigned char)step_option_number(s, "rdma", 0),
				.usage = (unsigned short)step_option_number(s, "usage", 0),
			},
		};
		*out = (uintptr_t)&prop;
	} else if (strcmp(word, "descs") == 0) {
		descs[0].location = location_of(s);
		descs[0].flags = (CUmemAccess_flags)step_choice(s, step_option(s, "flags", NULL),
								"none r 2 rw", 3);
		descs[1] = descs[0];
		*out = (uintptr_t)descs;
	} else if (strcmp(word, "location") == 0) {
		location = location_of(s);
		*out = (uintptr_t)&location;
	} else if (strcmp(word, "type") == 0) {
		*out = (uint64_t)step_choice(s, step_option(s, "type", NULL), handle_types, 1);
	} else {
		return FALSE;
	}
	return TRUE;
}

static void check_address(struct step *s)
{
	uint64_t va = s->out[STEP_RESULT][0], align = step_option_number(s, "align", 0);

	if (va % (UINT64_C(2) << 20) == 0 && (align == 0 || va % align == 0))
		return;
	step_show(s, "0x%" G_GINT64_MODIFIER "x is not aligned", va);
	s->answer->code = CUDA_ERROR_ILLEGAL_STATE;
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

static void show_attribute(struct step *s)
{
	switch (step_number(s, 2)) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		step_show(s, "%s", step_size_text((int64_t)(step_number(s, 1) - s->out[0][0])));
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		step_show_size(s);
		break;
	default:
		step_show(s, "%" G_GUINT32_FORMAT, (guint32)s->out[0][0]);
	}
}

static void synchronize(struct step *s)
{
	step_call(s, "cuCtxSynchronize", "");
}

static void set_context(struct step *s)
{
	step_call(s, "cuCtxSetCurrent", "context");
}

#define PROP "loc= dev= type= handle= compression= rdma= usage="
static const struct case_verb verbs[] = {
	{ "init", "cuInit", "flags=0", NULL },
	{ "ctx", "cuDevicePrimaryCtxRetain", "&context 0", set_context },
	{ "reserve", "cuMemAddressReserve", ">1 $2 align=0 addr=0 flags=0", check_address },
	{ "addrfree", "cuMemAddressFree", "$1 $2", NULL },
	{ "create", "cuMemCreate", ">1 $2 prop flags=0 ; " PROP " same-as=", step_show_same },
	{ "release", "cuMemRelease", "$1", NULL },
	{ "map", "cuMemMap", "$1 $2 $3 $4 flags=0", NULL },
	{ "unmap", "cuMemUnmap", "$1 $2", NULL },
	{ "access", "cuMemSetAccess", "$1 $2 descs count=1 ; flags= loc= dev=", NULL },
	{ "getaccess", "cuMemGetAccess", "out location $1 ; loc= dev=", step_show_access },
	{ "gran", "cuMemGetAllocationGranularity", "out prop bound ; $1 " PROP, step_show_size },
	{ "props", "cuMemGetAllocationPropertiesFromHandle", "out $1", show_properties },
	{ "retain", "cuMemRetainAllocationHandle", ">1 $2 ; same-as=", step_show_same },
	{ "export", "cuMemExportToShareableHandle", "out $2 type flags=0 ; $1 type=", keep_fd },
	{ "import", "cuMemImportFromShareableHandle",
	  ">1 $2 type ; type= same-as=", step_show_same },
	{ "pipe", "pipe", "out ; $1", keep_fd }, /* of the C library: a file that is no handle */
	{ "set", "cuMemsetD8_v2", "$1 $2 $3", synchronize },
	{ "read", "cuMemcpyDtoH_v2", "read $1 size ; ?2", step_show_bytes },
	{ "write", "cuMemcpyHtoD_v2", "$1 written $3 ; $2", NULL },
	{ "d2d", "cuMemcpyDtoD_v2", "$1 $2 $3", synchronize },
	{ "alloc", "cuMemAlloc_v2", ">1 $2 ; same-as=", step_show_same },
	{ "free", "cuMemFree_v2", "$1", NULL },
	{ "range", "cuMemGetAddressRange_v2", "out out1 $1", step_show_range },
	{ "attr", "cuPointerGetAttribute", "out $2 $1", show_attribute },
	{ "devattr", "cuDeviceGetAttribute", "out $1 0", step_show_number },
	{ "mark", "cuMemGetInfo_v2", "out out1", step_mark },
	{ "used", "cuMemGetInfo_v2", "out out1", step_show_used },
	{ NULL, NULL, NULL, NULL },
};

#define CODE(code, name, text) { code, &#name[sizeof("CUDA_ERROR_") - 1] },
static const struct case_code codes[] = { CUDA_ERRORS(CODE){ 0, NULL } };

static const char *const beginning[] = { "init", "ctx", "mark", NULL };
const struct case_dialect case_cuda = { verbs, codes, beginning, NULL, NULL, NULL, argument };
