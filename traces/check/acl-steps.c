/* SPDX-License-Identifier: Apache-2.0
 *
 * The ACL dialect of the cases: the steps of cases/FORMAT.md as calls of libascendcl.so.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "acl-doors.h"
#include "acl/acl.h"
#include "case.h"

static const char attr_names[] =
	"ddr hbm ddr-huge ddr-normal hbm-huge hbm-normal ddr-p2p-huge ddr-p2p-normal hbm-p2p-huge "
	"hbm-p2p-normal hbm-huge1g hbm-p2p-huge1g mem-normal mem-huge mem-huge1g mem-p2p-normal "
	"mem-p2p-huge mem-p2p-huge1g";
static const char location_names[] = "host device unregistered managed numa";

/* "device:1", "driver:1", "host", "numa:0", "7:2"; device:0 without. */
static aclrtMemLocation location_of(struct step *s, const char *option)
{
	g_auto(GStrv) parts = g_strsplit(step_option(s, option, "device:0"), ":", 2);
	const char *type = strcmp(parts[0], "driver") == 0 ? "device" : parts[0];

	return (aclrtMemLocation){
		.id = parts[1] == NULL ? 0 : (uint32_t)step_value(s, parts[1]),
		.type = (aclrtMemLocationType)step_choice(s, type, location_names, 0),
	};
}

/* Access takes the driver's number of a device: device:N is the program's device N, driver:N is
 * passed as it is. */
static aclrtMemLocation grantee_of(struct step *s, const char *option)
{
	aclrtMemLocation location = location_of(s, option);
	aclError (*translate)(int32_t user, int32_t * logic);
	int32_t logic;

	*(void **)&translate = dlsym(s->library, "aclrtGetLogicDevIdByUserDevId");
	if (translate != NULL && g_str_has_prefix(step_option(s, option, "device:0"), "device") &&
	    translate((int32_t)location.id, &logic) == ACL_SUCCESS)
		location.id = (uint32_t)logic;
	return location;
}

static gboolean argument(struct step *s, const char *word, uint64_t *out)
{
	static uint8_t buffer[65536];
	static int32_t pids[2]; /* alike, for count= */
	static aclrtPhysicalMemProp prop;
	static aclrtMemAccessDesc descs[2];
	static aclrtMemLocation location;

	if (strcmp(word, "prop") == 0) {
		prop = (aclrtPhysicalMemProp){
			.handleType = (aclrtMemHandleType)step_option_number(s, "handle-type", 0),
			.allocationType =
				(aclrtMemAllocationType)step_option_number(s, "allocation", 0),
			.memAttr = (aclrtMemAttr)step_choice(s, step_option(s, "as", NULL),
							     attr_names, ACL_HBM_MEM_HUGE),
			.location = location_of(s, "on"),
		};
		*out = (uintptr_t)&prop;
	} else if (strcmp(word, "desc") == 0) {
		descs[0].location = grantee_of(s, "to");
		descs[0].flags = (aclrtMemAccessFlags)step_choice(s, step_option(s, "access", NULL),
								  "none r 2 rw", 3);
		descs[1] = descs[0];
		*out = (uintptr_t)descs;
	} else if (strcmp(word, "location") == 0 || strcmp(word, "of") == 0) {
		location = *word == 'l' ? location_of(s, "to") : grantee_of(s, "of");
		*out = (uintptr_t)&location;
	} else if (strcmp(word, "attr") == 0) {
		*out = (uint64_t)step_choice(s, step_option(s, "of", NULL), attr_names,
					     ACL_HBM_MEM);
	} else if (strcmp(word, "pid") == 0) {
		pids[0] = pids[1] = (int32_t)step_number(s, 2);
		*out = (uintptr_t)pids;
	} else if (strcmp(word, "buffer") == 0) {
		*out = (uintptr_t)buffer;
	} else {
		return FALSE;
	}
	return TRUE;
}

/* The call writes 32 bits. */
static void publish_tgid(struct step *s)
{
	s->out[0][0] = (uint32_t)s->out[0][0];
	step_publish(s);
}

static void show_address(struct step *s)
{
	uint64_t va = s->out[STEP_RESULT][0];
	const char *alignment = (va & ((UINT64_C(1) << 30) - 1)) == 0   ? "1G"
				: (va & ((UINT64_C(2) << 20) - 1)) == 0 ? "2M"
									: "less";

	step_show(s, "%s%s", alignment,
		  step_option(s, "at", NULL) == NULL     ? ""
		  : step_option_number(s, "at", 0) == va ? " as-asked"
							 : " elsewhere");
}

static void show_properties(struct step *s)
{
	aclrtPhysicalMemProp prop;
	g_autofree char *attr = NULL;

	memcpy(&prop, s->out[0], sizeof(prop));
	attr = g_strdup(step_word_at(attr_names, (unsigned)prop.memAttr, "none"));
	step_show(s, "%s %s:%u %d %d", attr,
		  step_word_at(location_names, (unsigned)prop.location.type, "none"),
		  prop.location.id, (int)prop.handleType, (int)prop.allocationType);
}

static void show_whose(struct step *s)
{
	aclrtPtrAttributes attributes;

	memcpy(&attributes, s->out[0], sizeof(attributes));
	step_show(s, "%s:%u %s",
		  step_word_at(location_names, (unsigned)attributes.location.type, "none"),
		  attributes.location.id, step_size_text(attributes.pageSize));
}

static void show_memory(struct step *s)
{
	step_show(s, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, s->out[0][0], s->out[1][0]);
}

static void show_soc(struct step *s)
{
	const char *(*soc)(void) = (const char *(*)(void))dlsym(s->library, "aclrtGetSocName");

	step_show(s, "%s", soc != NULL && soc() != NULL ? soc() : "unknown");
}

/* What npusim's library says of its backend. */
static void show_backend(struct step *s)
{
	char *(*backend)(void) = (char *(*)(void))dlsym(s->library, "npusim_backend_text");
	char *text = backend != NULL ? backend() : NULL;

	step_show(s, "%s", text != NULL ? text : "");
	free(text);
}

static void poke(struct step *s)
{
	*(volatile uint8_t *)(uintptr_t)step_number(s, 1) = (uint8_t)step_number(s, 2);
}

static void peek(struct step *s)
{
	step_show(s, "%u", *(volatile uint8_t *)(uintptr_t)step_number(s, 1));
}

/* Of the process's own memory: it begins as zeros. */
static void clear(struct step *s)
{
	memset((void *)(uintptr_t)s->out[STEP_RESULT][0], 0, step_number(s, 2));
}

static const struct case_verb verbs[] = {
	{ "init", "aclInit", "0", NULL },
	{ "finalize", "aclFinalize", "", NULL },
	{ "device", "aclrtSetDevice", "$1", NULL },
	{ "reset-device", "aclrtResetDevice", "$1", NULL },
	{ "current-device", "aclrtGetDevice", "out", step_show_number },
	{ "devices", "aclrtGetDeviceCount", "out", step_show_number },
	{ "peer-possible", "aclrtDeviceCanAccessPeer", "out $1 $2", step_show_number },
	{ "peer", "aclrtDeviceEnablePeerAccess", "$1 flags=0", NULL },
	{ "tgid", "aclrtDeviceGetBareTgid", "out ; $1", publish_tgid },
	{ "soc", NULL, "", show_soc },
	{ "memory", "aclrtGetMemInfo", "attr out out1 ; of=", show_memory },
	{ "backend", NULL, "", show_backend },
	{ "die", "raise", "9", NULL }, /* of the C library, through which it is found */
	{ "exit", "exit", "$1", NULL },
	{ "reserve", "aclrtReserveMemAddress", ">1 $2 align=0 at=0 flags=1", show_address },
	{ "reserve-nouc", "aclrtReserveMemAddressNoUCMemory", ">1 $2 align=0 at=0 flags=1",
	  show_address },
	{ "unreserve", "aclrtReleaseMemAddress", "$1", NULL },
	{ "create", "aclrtMallocPhysical",
	  ">1 $2 prop flags=0 ; on= as= handle-type= allocation=", NULL },
	{ "destroy", "aclrtFreePhysical", "$1", NULL },
	{ "granularity", "aclrtMemGetAllocationGranularity",
	  "prop bound out ; $1 on= as=", step_show_size },
	{ "properties", "aclrtMemGetAllocationPropertiesFromHandle", "$1 out", show_properties },
	{ "retain", "aclrtMemRetainAllocationHandle", "$2 >1 ; same-as=", step_show_same },
	{ "map", "aclrtMapMem", "$1 $2 offset=0 $3 flags=0", NULL },
	{ "unmap", "aclrtUnmapMem", "$1", NULL },
	{ "grant", "aclrtMemSetAccess", "$1 $2 desc count=1 ; to= access=", NULL },
	{ "access", "aclrtMemGetAccess", "$1 of out ; of=", step_show_access },
	{ "range", "aclrtMemGetAddressRange", "$1 out out1", step_show_range },
	{ "whose", "aclrtPointerGetAttributes", "$1 out", show_whose },
	{ "export", "aclrtMemExportToShareableHandle", "$2 type=0 flags=0 out ; $1", step_publish },
	{ "export-v2", "aclrtMemExportToShareableHandleV2", "$2 flags=0 type=1 out ; $1",
	  step_publish },
	{ "allow", "aclrtMemSetPidToShareableHandle", "$1 pid count=1 ; $2", NULL },
	{ "allow-v2", "aclrtMemSetPidToShareableHandleV2", "blob1 type=1 pid 1 ; $2", NULL },
	{ "import", "aclrtMemImportFromShareableHandle", "$2 on=0 >1 ; same-as=", step_show_same },
	{ "import-v2", "aclrtMemImportFromShareableHandleV2",
	  "blob2 type=1 flags=0 >1 ; same-as=", step_show_same },
	{ "export-key", "aclrtIpcMemGetExportKey", "$2 $3 out 65 flags=0 ; $1", step_publish },
	{ "allow-key", "aclrtIpcMemSetImportPid", "blob1 pid 1 ; $2", NULL },
	{ "import-key", "aclrtIpcMemImportByKey", ">1 blob2 flags=0", NULL },
	{ "close-key", "aclrtIpcMemClose", "blob1", NULL },
	{ "mark", "aclrtGetMemInfo", "attr out out1 ; of=", step_mark },
	{ "used", "aclrtGetMemInfo", "attr out out1 ; of=", step_show_used },
	{ "malloc", "aclrtMalloc", ">1 $2 policy=0", NULL },
	{ "free", "aclrtFree", "$1", NULL },
	{ "malloc-host", "aclrtMallocHost", ">1 $2", NULL },
	{ "free-host", "aclrtFreeHost", "$1", NULL },
	{ "plain", "posix_memalign", ">1 4096 $2", clear },
	{ "fill", "aclrtMemset", "$1 room=$3 $2 $3", NULL },
	{ "read", "aclrtMemcpy", "read size $1 size 2 ; ?2", step_show_bytes },
	{ "write", "aclrtMemcpy", "$1 room=$3 written $3 1 ; $2", NULL },
	{ "copy", "aclrtMemcpy", "$1 $3 $2 $3 kind=3", NULL },
	{ "stream", "aclrtCreateStream", ">1", NULL },
	{ "copy-async", "aclrtMemcpyAsync", "$1 $3 $2 $3 kind=3 $4", NULL },
	{ "wait", "aclrtSynchronizeStream", "$1", NULL },
	{ "poke", NULL, "; $1 $2", poke },
	{ "peek", NULL, "; $1", peek },
	{ NULL, NULL, NULL, NULL },
};

#define CODE(code, name) { code, name },
static const struct case_code codes[] = { ACL_CODES(CODE){ 0, NULL } };

const struct case_dialect case_acl = {
	verbs, codes, NULL, "aclGetRecentErrMsg", "npusim_driver_code", "npusim_now_ps", argument
};
