/* SPDX-License-Identifier: Apache-2.0
 *
 * The two contracts: every row of the table, met by a call, answers what the table says under
 * either.
 */
#include "space-rig.h"
#include "memory/memory.h"

#include <string.h>

static drvError_t reserve_at(uint64_t bytes, uint64_t hint, uint64_t flag)
{
	void *va = NULL;

	return CALL(halMemAddressReserve, &va, bytes, 0, at(hint), flag);
}

static drvError_t meet_hint_not_aligned(void)
{
	uint64_t hint = bsim_of(drv)->window->normal_base + GIB;

	/* without a contract's say: not even the driver's own alignment */
	EXPECT_EQ(reserve_at(2 * MIB, hint + 4096, 1), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(reserve_at(6 * MIB, hint + 4 * MIB, 1), DRV_ERROR_INVALID_VALUE);
	EXPECT_EQ(reserve_at(2 * GIB, hint + 2 * MIB, 1), DRV_ERROR_INVALID_VALUE);
	return reserve_at(6 * MIB, hint + 8 * MIB, 1);
}

static drvError_t meet_hint_taken(void)
{
	uint64_t hint = bsim_of(drv)->window->normal_base + 4 * GIB;

	EXPECT_EQ(reserve_at(4 * GIB, hint, 1), DRV_ERROR_NONE);
	return reserve_at(GIB, hint + 3 * GIB, 1);
}

static drvError_t meet_hint_out_of_window(void)
{
	return reserve_at(GIB, 0x40000000, 1);
}

static drvError_t meet_create_unaligned(void)
{
	struct drv_mem_prop prop = space_prop(0);
	drv_mem_handle_t *h = NULL;
	drvError_t result = CALL(halMemCreate, &h, 3 * MIB, &prop, 0);

	if (result == DRV_ERROR_NONE)
		space_map(space_reserve(4 * MIB, 0), 4 * MIB, h);
	return result;
}

static drvError_t meet_create_managed(void)
{
	struct drv_mem_prop prop = space_prop(0);
	drv_mem_handle_t *h = NULL;

	prop.side = 3;
	return CALL(halMemCreate, &h, 2 * MIB, &prop, 0);
}

static drvError_t map_part(uint64_t bytes)
{
	uint64_t a = space_reserve(8 * MIB, 0);
	drvError_t result = CALL(halMemMap, at(a), bytes, 0, space_create(0, 4 * MIB), 0);

	if (result == DRV_ERROR_NONE) {
		EXPECT_EQ(space_place(a).bytes, bytes);
		EXPECT_EQ(space_place(a + bytes).kind, NPU_PLACE_RESERVED);
		EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	}
	return result;
}

static drvError_t meet_map_smaller(void)
{
	return map_part(2 * MIB);
}

static drvError_t meet_map_larger(void)
{
	return map_part(6 * MIB);
}

static drvError_t meet_map_unaligned(void)
{
	return map_part(3 * MIB);
}

/* ---- rows that need another process ---- */

static struct space_other other;

static void export_handle(drv_mem_handle_t *handle, struct space_other *self)
{
	struct ShareHandleAttr open = { .enableFlag = SHR_HANDLE_NO_WLIST_ENABLE };

	EXPECT_CODE(DRV_ERROR_NONE, halMemExportToShareableHandle, handle, MEM_HANDLE_TYPE_NONE, 0,
		    &self->value);
	EXPECT_CODE(DRV_ERROR_NONE, halMemShareHandleSetAttribute, self->value,
		    SHR_HANDLE_ATTR_NO_WLIST_IN_SERVER, open);
}

static void export_open(struct space_other *self)
{
	export_handle(space_create(0, 2 * MIB), self);
}

static drvError_t meet_map_mixed(void)
{
	uint64_t a = space_reserve(4 * MIB, 0);
	drv_mem_handle_t *own = space_create(0, 2 * MIB), *imported = NULL;
	drvError_t result;

	space_other_value(&other);
	EXPECT_CODE(DRV_ERROR_NONE, halMemImportFromShareableHandle, other.value, 0, &imported);
	space_map(a, 2 * MIB, own);
	result = CALL(halMemMap, at(a + 2 * MIB), 2 * MIB, 0, imported, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a));
	if (result == DRV_ERROR_NONE)
		EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(a + 2 * MIB));
	space_map(a, 2 * MIB, imported); /* not at once, but one after the other */
	EXPECT_TRUE(space_place(a).imported);
	return result;
}

static drvError_t meet_import_same_process(void)
{
	drv_mem_handle_t *h = NULL;
	struct space_other self;

	export_open(&self);
	EXPECT_CODE(DRV_ERROR_IOCRL_FAIL, halMemImportFromShareableHandle, self.value, 0, &h);
	return CALL(halMemImportFromShareableHandle, self.value, 1, &h);
}

static drvError_t meet_import_own_host_memory(void)
{
	drv_mem_handle_t *h = NULL;
	struct space_other self;
	drvError_t result;

	export_handle(space_create_host(2 * MIB), &self);
	result = CALL(halMemImportFromShareableHandle, self.value, 0, &h);
	if (result == DRV_ERROR_NONE)
		space_map(space_reserve(2 * MIB, 0), 2 * MIB, h);
	return result;
}

static drvError_t meet_sync_copy(void)
{
	uint64_t a = space_reserve(2 * MIB, 0), b = space_reserve(2 * MIB, 0);

	space_map(a, 2 * MIB, space_create(0, 2 * MIB));
	space_map(b, 2 * MIB, space_create(1, 2 * MIB));
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 0, 1, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 1, 0, 0);
	return CALL(drvMemcpy, b, 2 * MIB, a, 2 * MIB);
}

static drvError_t meet_nouc(void)
{
	return reserve_at(GIB, 40 * TIB, MEM_RSV_TYPE_REMOTE_MAP | 1);
}

static drvError_t meet_notify_pids(void)
{
	struct halResourceIdInputInfo in = { .type = DRV_NOTIFY_ID };
	struct halResourceIdOutputInfo out;
	struct drvShrIdInfo info = { .id_type = SHR_ID_NOTIFY_TYPE };
	pid_t pids[2] = { 1, 2 };
	char name[65];

	EXPECT_CODE(DRV_ERROR_NONE, halResourceIdAlloc, 0, &in, &out);
	info.shrid = out.resourceId;
	EXPECT_CODE(DRV_ERROR_NONE, halShrIdCreate, &info, name, sizeof(name));
	return CALL(halShrIdSetPid, name, pids, 2);
}

/* ---- the walk ---- */

static const struct meeting {
	const char *name;
	enum contract_row row;
	drvError_t (*meet)(void);
	void (*body)(struct space_other *self);
} meetings[] = {
	{ "hint_not_1g_aligned", CONTRACT_HINT_NOT_1G_ALIGNED, meet_hint_not_aligned, NULL },
	{ "hint_taken", CONTRACT_HINT_TAKEN, meet_hint_taken, NULL },
	{ "hint_out_of_window", CONTRACT_HINT_OUT_OF_WINDOW, meet_hint_out_of_window, NULL },
	{ "create_unaligned", CONTRACT_CREATE_UNALIGNED, meet_create_unaligned, NULL },
	{ "create_managed", CONTRACT_CREATE_MANAGED, meet_create_managed, NULL },
	{ "map_smaller", CONTRACT_MAP_SMALLER, meet_map_smaller, NULL },
	{ "map_larger", CONTRACT_MAP_LARGER, meet_map_larger, NULL },
	{ "map_unaligned_size", CONTRACT_MAP_UNALIGNED_SIZE, meet_map_unaligned, NULL },
	{ "map_mixed_import", CONTRACT_MAP_MIXED_IMPORT, meet_map_mixed, export_open },
	{ "import_same_process", CONTRACT_IMPORT_SAME_PROCESS, meet_import_same_process, NULL },
	{ "import_own_host_memory", CONTRACT_IMPORT_SAME_PROCESS, meet_import_own_host_memory,
	  NULL },
	{ "sync_copy_two_devices", CONTRACT_SYNC_COPY_TWO_DEVICES, meet_sync_copy, NULL },
	{ "nouc_needs_910c", CONTRACT_NOUC_NEEDS_910C, meet_nouc, NULL },
	{ "notify_pids", CONTRACT_NOTIFY_PIDS, meet_notify_pids, NULL },
};

_Static_assert(sizeof(meetings) / sizeof(meetings[0]) == CONTRACT_ROW_COUNT + 1,
	       "a row is not met, one of them in two ways");

TEARDOWN(contract)
{
	space_close();
}

static bool in_aclrt(void)
{
	return true;
}

/* documented: the calls are an aclrt function's. */
static void meet(const struct meeting *m, const char *contract, bool documented)
{
	const struct contract_rule *rule = &contract_rules[m->row];
	bool docs = documented && strcmp(contract, "docs") == 0;
	drvError_t want = docs ? rule->docs : rule->driver;

	if (m->body != NULL)
		ASSERT_NO_FATAL(space_other_start(&other, m->body));
	ASSERT_NO_FATAL(space_open(contract, NULL));
	if (m->row == CONTRACT_NOUC_NEEDS_910C && !space_has_default_window())
		SKIP("40 TiB is not free here");
	EXPECT_CODE(DRV_ERROR_NONE, npusimDocumentedBy, documented ? in_aclrt : NULL);
	EXPECT_EQ(m->meet(), want);
	EXPECT_CODE(DRV_ERROR_NONE, npusimDocumentedBy, NULL);
	if (want != DRV_ERROR_NONE)
		EXPECT_STRNE(MESSAGE(), "");
	if (m->body != NULL)
		space_other_end(&other);
}

TEST_EACH(contract, docs_answers_as_documented, meetings, name)
{
	meet(param, "docs", true);
}

TEST_EACH(contract, unmarked_calls_are_answered_as_the_source, meetings, name)
{
	meet(param, "docs", false);
}

TEST_EACH(contract, driver_answers_as_the_source, meetings, name)
{
	meet(param, "driver", true);
}

TEST(contract, rows_say_where_they_come_from)
{
	for (unsigned row = 0; row < CONTRACT_ROW_COUNT; row++) {
		const struct contract_rule *rule = &contract_rules[row];

		NOTE("row %u", row);
		EXPECT_STRNE(rule->rule, "");
		EXPECT_CONTAINS(rule->source, "documented: ");
		EXPECT_STRNE(rule->docs_text, rule->driver_text);
		EXPECT_EQ(strncmp(rule->docs_text, "success", 7) == 0,
			  rule->docs == DRV_ERROR_NONE);
		EXPECT_EQ(strncmp(rule->driver_text, "success", 7) == 0,
			  rule->driver == DRV_ERROR_NONE);
	}
}
