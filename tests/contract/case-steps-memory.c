/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on devices and virtual memory: what cases/FORMAT.md lists under these headings.
 */
#include "case-steps.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t marked_free;

/* ---- process and devices ---- */

static void run_init(struct step *s)
{
	CALL(s, aclInit, NULL);
}

static void run_finalize(struct step *s)
{
	CALL(s, aclFinalize);
}

static void run_device(struct step *s)
{
	CALL(s, aclrtSetDevice, (int32_t)step_number(s, 0));
}

static void run_reset_device(struct step *s)
{
	CALL(s, aclrtResetDevice, (int32_t)step_number(s, 0));
}

static void run_current_device(struct step *s)
{
	int32_t device = -1;

	if (CALL(s, aclrtGetDevice, &device) == 0)
		step_show(s, "%d", device);
}

static void run_devices(struct step *s)
{
	uint32_t count = 0;

	if (CALL(s, aclrtGetDeviceCount, &count) == 0)
		step_show(s, "%u", count);
}

static void run_peer_possible(struct step *s)
{
	int32_t can = -1;

	if (CALL(s, aclrtDeviceCanAccessPeer, &can, (int32_t)step_number(s, 0),
		 (int32_t)step_number(s, 1)) == 0)
		step_show(s, "%d", can);
}

static void run_peer(struct step *s)
{
	CALL(s, aclrtDeviceEnablePeerAccess, (int32_t)step_number(s, 0),
	     (uint32_t)step_option_number(s, "flags", 0));
}

static void run_tgid(struct step *s)
{
	int32_t pid = 0;

	if (CALL(s, aclrtDeviceGetBareTgid, &pid) == 0)
		step_show(s, pid == getpid() ? "mine" : "other");
}

static void run_die(struct step *s)
{
	(void)s;
	kill(getpid(), SIGKILL);
}

static void run_exit(struct step *s)
{
	exit((int)step_number(s, 0));
}

/* ---- addresses ---- */

static void show_address(struct step *s, uint64_t va)
{
	const char *hint = step_option(s, "at", NULL);
	const char *alignment = (va & ((UINT64_C(1) << 30) - 1)) == 0   ? "1G"
				: (va & ((UINT64_C(2) << 20) - 1)) == 0 ? "2M"
									: "less";

	step_set(s, 0, va);
	step_show(s, "%s%s", alignment,
		  hint == NULL                           ? ""
		  : step_option_number(s, "at", 0) == va ? " as-asked"
							 : " elsewhere");
}

static void run_reserve(struct step *s)
{
	void *va = NULL;

	if (CALL(s, aclrtReserveMemAddress, &va, step_number(s, 1),
		 step_option_number(s, "align", 0),
		 (void *)(uintptr_t)step_option_number(s, "at", 0),
		 step_option_number(s, "flags", 1)) == 0)
		show_address(s, (uint64_t)(uintptr_t)va);
}

static void run_reserve_nouc(struct step *s)
{
	void *va = NULL;

	if (CALL(s, aclrtReserveMemAddressNoUCMemory, &va, step_number(s, 1),
		 step_option_number(s, "align", 0),
		 (void *)(uintptr_t)step_option_number(s, "at", 0),
		 step_option_number(s, "flags", 1)) == 0)
		show_address(s, (uint64_t)(uintptr_t)va);
}

static void run_unreserve(struct step *s)
{
	CALL(s, aclrtReleaseMemAddress, step_pointer(s, 0));
}

/* ---- physical memory ---- */

static void run_create(struct step *s)
{
	aclrtPhysicalMemProp prop = step_prop(s);
	aclrtDrvMemHandle handle = NULL;

	if (CALL(s, aclrtMallocPhysical, &handle, step_number(s, 1), &prop,
		 step_option_number(s, "flags", 0)) == 0)
		step_set(s, 0, (uint64_t)(uintptr_t)handle);
}

static void run_destroy(struct step *s)
{
	CALL(s, aclrtFreePhysical, step_pointer(s, 0));
}

static void run_granularity(struct step *s)
{
	const char *word = step_word(s, 0);
	uint64_t option = strcmp(word, "minimum") == 0       ? 0
			  : strcmp(word, "recommended") == 0 ? 1
							     : step_number(s, 0);
	aclrtPhysicalMemProp prop = step_prop(s);
	size_t bytes = 0;
	char text[32];

	if (CALL(s, aclrtMemGetAllocationGranularity, &prop, (aclrtMemGranularityOptions)option,
		 &bytes) == 0) {
		case_size_text((int64_t)bytes, text);
		step_show(s, "%s", text);
	}
}

static void run_properties(struct step *s)
{
	aclrtPhysicalMemProp prop;

	memset(&prop, 0xee, sizeof(prop));
	if (CALL(s, aclrtMemGetAllocationPropertiesFromHandle, step_pointer(s, 0), &prop) == 0)
		step_show(s, "%s %s:%u %d %d", step_attr_name(prop.memAttr),
			  step_location_name(prop.location.type), prop.location.id,
			  (int)prop.handleType, (int)prop.allocationType);
}

static void run_retain(struct step *s)
{
	aclrtDrvMemHandle handle = NULL;

	if (CALL(s, aclrtMemRetainAllocationHandle, step_pointer(s, 1), &handle) == 0) {
		step_show_same(s, (uint64_t)(uintptr_t)handle);
		step_set(s, 0, (uint64_t)(uintptr_t)handle);
	}
}

/* ---- mappings and access ---- */

static void run_map(struct step *s)
{
	CALL(s, aclrtMapMem, step_pointer(s, 0), step_number(s, 1),
	     step_option_number(s, "offset", 0), step_pointer(s, 2),
	     step_option_number(s, "flags", 0));
}

static void run_map_no_access(struct step *s)
{
	CALL(s, aclrtMemMapNoAccess, step_pointer(s, 0), step_number(s, 1),
	     step_option_number(s, "offset", 0), step_pointer(s, 2),
	     step_option_number(s, "flags", 0));
}

static void run_unmap(struct step *s)
{
	CALL(s, aclrtUnmapMem, step_pointer(s, 0));
}

/* "grant ADDRESS SIZE [to=..] [and=..] [access=..] [count=..]": and= is a second location. */
static void run_grant(struct step *s)
{
	aclrtMemAccessDesc desc[2] = { step_access(s), step_access(s) };
	bool two = step_option(s, "and", NULL) != NULL;

	if (two)
		desc[1].location = step_location(s, "and");
	CALL(s, aclrtMemSetAccess, step_pointer(s, 0), step_number(s, 1), desc,
	     step_option_number(s, "count", two ? 2 : 1));
}

static void run_access(struct step *s)
{
	aclrtMemLocation location = step_location(s, "of");
	uint64_t flags = 99;

	if (CALL(s, aclrtMemGetAccess, step_pointer(s, 0), &location, &flags) == 0)
		step_show(s, flags == 3   ? "rw"
			     : flags == 1 ? "r"
			     : flags == 0 ? "none"
					  : "unknown");
}

static void run_range(struct step *s)
{
	char *va = step_pointer(s, 0);
	void *base = NULL;
	size_t size = 0;
	char offset_text[32], size_text[32];

	if (CALL(s, aclrtMemGetAddressRange, va, &base, &size) == 0) {
		case_size_text(va - (char *)base, offset_text);
		case_size_text((int64_t)size, size_text);
		step_show(s, "%s %s", offset_text, size_text);
	}
}

static void run_whose(struct step *s)
{
	aclrtPtrAttributes attributes;
	char text[32];

	memset(&attributes, 0xee, sizeof(attributes));
	if (CALL(s, aclrtPointerGetAttributes, step_pointer(s, 0), &attributes) == 0) {
		case_size_text(attributes.pageSize, text);
		step_show(s, "%s:%u %s", step_location_name(attributes.location.type),
			  attributes.location.id, text);
	}
}

/* ---- sharing ---- */

static void run_export(struct step *s)
{
	uint64_t number = 0;

	if (CALL(s, aclrtMemExportToShareableHandle, step_pointer(s, 1),
		 (aclrtMemHandleType)step_option_number(s, "type", 0),
		 step_option_number(s, "flags", 0), &number) == 0)
		step_publish(s, 0, number, NULL, 0);
}

static void run_export_v2(struct step *s)
{
	uint64_t type = step_option_number(s, "type", ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT);
	aclrtMemFabricHandle fabric = { { 0 } };
	uint64_t number = 0;

	if (CALL(s, aclrtMemExportToShareableHandleV2, step_pointer(s, 1),
		 step_option_number(s, "flags", 0), (aclrtMemSharedHandleType)type, &fabric) == 0) {
		memcpy(&number, fabric.data, sizeof(number));
		step_publish(s, 0, number, fabric.data, sizeof(fabric.data));
	}
}

static size_t pids_of(struct step *s, int32_t pids[4])
{
	size_t count = 0;

	while (count < 4 && strcmp(step_word(s, (int)count + 1), "0") != 0) {
		pids[count] = (int32_t)step_number(s, (int)count + 1);
		count++;
	}
	return count;
}

static void run_allow(struct step *s)
{
	int32_t pids[4];
	size_t count = pids_of(s, pids);

	CALL(s, aclrtMemSetPidToShareableHandle, step_number(s, 0), pids,
	     step_option_number(s, "count", count));
}

static void run_allow_v2(struct step *s)
{
	struct case_variable *share = case_variable(step_word(s, 0));
	uint64_t type = step_option_number(s, "type", ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT);
	int32_t pids[4];
	size_t count = pids_of(s, pids);

	CALL(s, aclrtMemSetPidToShareableHandleV2, share->blob, (aclrtMemSharedHandleType)type,
	     pids, count);
}

static void run_import(struct step *s)
{
	aclrtDrvMemHandle handle = NULL;

	if (CALL(s, aclrtMemImportFromShareableHandle, step_number(s, 1),
		 (int32_t)step_option_number(s, "on", 0), &handle) == 0) {
		step_show_same(s, (uint64_t)(uintptr_t)handle);
		step_set(s, 0, (uint64_t)(uintptr_t)handle);
	}
}

static void run_import_v2(struct step *s)
{
	struct case_variable *share = case_variable(step_word(s, 1));
	uint64_t type = step_option_number(s, "type", ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT);
	aclrtDrvMemHandle handle = NULL;

	if (CALL(s, aclrtMemImportFromShareableHandleV2, share->blob,
		 (aclrtMemSharedHandleType)type, step_option_number(s, "flags", 0), &handle) == 0) {
		step_show_same(s, (uint64_t)(uintptr_t)handle);
		step_set(s, 0, (uint64_t)(uintptr_t)handle);
	}
}

static void run_export_key(struct step *s)
{
	char key[65] = "";

	if (CALL(s, aclrtIpcMemGetExportKey, step_pointer(s, 1), step_number(s, 2), key,
		 sizeof(key), step_option_number(s, "flags", 0)) == 0)
		step_publish(s, 0, strlen(key), key, sizeof(key));
}

static void run_allow_key(struct step *s)
{
	struct case_variable *key = case_variable(step_word(s, 0));
	int32_t pids[4];
	size_t count = pids_of(s, pids);

	CALL(s, aclrtIpcMemSetImportPid, (const char *)key->blob, pids, count);
}

static void run_import_key(struct step *s)
{
	struct case_variable *key = case_variable(step_word(s, 1));
	void *va = NULL;

	if (CALL(s, aclrtIpcMemImportByKey, &va, (const char *)key->blob,
		 step_option_number(s, "flags", 0)) == 0)
		step_set(s, 0, (uint64_t)(uintptr_t)va);
}

static void run_close_key(struct step *s)
{
	CALL(s, aclrtIpcMemClose, (const char *)case_variable(step_word(s, 0))->blob);
}

/* ---- capacity ---- */

static void run_mark(struct step *s)
{
	size_t total = 0;

	CALL(s, aclrtGetMemInfo, (aclrtMemAttr)step_attr_of(step_option(s, "of", "hbm")),
	     &marked_free, &total);
}

/* Bytes taken since the mark, by whomever. */
static void run_used(struct step *s)
{
	size_t free = 0, total = 0;
	char text[32];

	if (CALL(s, aclrtGetMemInfo, (aclrtMemAttr)step_attr_of(step_option(s, "of", "hbm")), &free,
		 &total) == 0) {
		case_size_text((int64_t)(marked_free - free), text);
		step_show(s, "%s", text);
	}
}

const struct verb memory_verbs[] = {
	{ "init", run_init },
	{ "finalize", run_finalize },
	{ "device", run_device },
	{ "reset-device", run_reset_device },
	{ "current-device", run_current_device },
	{ "devices", run_devices },
	{ "peer-possible", run_peer_possible },
	{ "peer", run_peer },
	{ "tgid", run_tgid },
	{ "die", run_die },
	{ "exit", run_exit },
	{ "reserve", run_reserve },
	{ "reserve-nouc", run_reserve_nouc },
	{ "unreserve", run_unreserve },
	{ "create", run_create },
	{ "destroy", run_destroy },
	{ "granularity", run_granularity },
	{ "properties", run_properties },
	{ "retain", run_retain },
	{ "map", run_map },
	{ "map-no-access", run_map_no_access },
	{ "unmap", run_unmap },
	{ "grant", run_grant },
	{ "access", run_access },
	{ "range", run_range },
	{ "whose", run_whose },
	{ "export", run_export },
	{ "export-v2", run_export_v2 },
	{ "allow", run_allow },
	{ "allow-v2", run_allow_v2 },
	{ "import", run_import },
	{ "import-v2", run_import_v2 },
	{ "export-key", run_export_key },
	{ "allow-key", run_allow_key },
	{ "import-key", run_import_key },
	{ "close-key", run_close_key },
	{ "mark", run_mark },
	{ "used", run_used },
	{ NULL, NULL },
};
