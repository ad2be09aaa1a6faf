/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the two contracts: one row for each case in which the documentation and the driver's
 * source answer differently, and the note that a program leaves when a row applies. Owns the codes
 * of both; where a row applies is decided by the callers.
 */
#include "process/process.h"

#include <glib.h>

/* Rules are those of CANN 8.5's pages on the virtual memory calls (R: aclrtReserveMemAddress, P:
 * aclrtMallocPhysical, M: aclrtMapMem, I: aclrtMemImportFromShareableHandle), and 9.1's on notifies
 * (N). Where a page names no code, the one here is this model's choice. */
#define RULE(row, rule, what, docs, driver, docs_text, driver_text, source)                       \
	[CONTRACT_##row] = { rule,        what,  DRV_ERROR_##docs, DRV_ERROR_##driver, docs_text, \
			     driver_text, source }
/* clang-format off */
const struct contract_rule contract_rules[CONTRACT_ROW_COUNT] = {
	RULE(HINT_NOT_1G_ALIGNED, "R5", "an expected address that is not a multiple of 1 GiB",
	     INVALID_VALUE, NONE, "107000", "success",
	     "documented: ACL_ERROR_RT_PARAM_INVALID; driver: up to 512 MiB, 2 MiB and the next "
	     "power of two suffice"),
	RULE(HINT_TAKEN, "R6", "an expected address that is occupied",
	     OUT_OF_MEMORY, BUSY, "207001", "507899",
	     "documented: ACL_ERROR_RT_MEMORY_ALLOCATION; driver: busy"),
	RULE(HINT_OUT_OF_WINDOW, "R6", "an expected address outside 16 TiB to 24 TiB",
	     OUT_OF_MEMORY, BUSY, "207001", "507899",
	     "documented: ACL_ERROR_RT_MEMORY_ALLOCATION; driver: busy"),
	RULE(CREATE_UNALIGNED, "P3", "a physical size that is no multiple of the granularity",
	     NONE, PARA_ERROR, "success, rounded up", "507899",
	     "documented: aligning the size saves memory; driver: refuses it"),
	RULE(CREATE_MANAGED, "P5", "location type 3, managed",
	     INVALID_VALUE, INVALID_VALUE, "100000", "107000",
	     "documented: host or device; driver: side out of range, where the runtime above "
	     "lets it pass"),
	RULE(MAP_SMALLER, "M2", "a mapped size below the handle's",
	     INVALID_VALUE, NONE, "107000", "success",
	     "documented: equal to the size of aclrtMallocPhysical; driver: maps the first part"),
	RULE(MAP_LARGER, "M2", "a mapped size above the handle's",
	     INVALID_VALUE, OUT_OF_MEMORY, "107000", "207001",
	     "documented: equal to the size of aclrtMallocPhysical; driver: the handle has no "
	     "more pages"),
	RULE(MAP_UNALIGNED_SIZE, "M2", "a mapped size that is no multiple of the granularity",
	     INVALID_VALUE, PARA_ERROR, "107000", "507899",
	     "documented: a multiple of ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM; driver: invalid "
	     "argument"),
	RULE(MAP_MIXED_IMPORT, "M6", "handles made here and imported ones in one reservation",
	     INVALID_VALUE, NONE, "107000", "success",
	     "documented: not at once; driver: does not look"),
	RULE(IMPORT_SAME_PROCESS, "I5",
	     "an import in the exporting process, of host memory or on another device",
	     IOCRL_FAIL, NONE, "507899", "success",
	     "documented: across processes only; driver: refuses the memory's own device alone"),
	RULE(SYNC_COPY_TWO_DEVICES, "R8",
	     "a synchronous copy of reserved memory between two devices",
	     IOCRL_FAIL, NONE, "507899", "success",
	     "documented: aclrtMemcpyAsync only; driver: copies"),
	RULE(NOUC_NEEDS_910C, "NoUC", "a range outside the window on a 910B",
	     NOT_SUPPORT, NONE, "207000", "success",
	     "documented: the 910C only (aclrtReserveMemAddressNoUCMemory); driver: any device"),
	RULE(NOTIFY_PIDS, "N1", "several processes that may import a notify, in one call",
	     NONE, INVALID_VALUE, "success", "107000",
	     "documented: as many as the array has (aclrtNotifySetImportPid); driver: one"),
};
/* clang-format on */

static void note(const struct bsim *bs, enum contract_row row, const char *call)
{
	static GHashTable *noted[CONTRACT_ROW_COUNT]; /* calls, literals; bsim.lock */
	const struct contract_rule *rule = &contract_rules[row];
	enum npu_log_level level;
	bool docs = bs->contract == BSIM_DOCS;

	noted[row] = noted[row] ?: g_hash_table_new(NULL, NULL);
	level = g_hash_table_add(noted[row], (void *)call) ? NPU_LOG_WARN : NPU_LOG_DEBUG;
	if (npu_log_enabled(level))
		npu_log(level, "%s: %s (rule %s): %s by %s; %s by %s (%s)", call, rule->what,
			rule->rule, docs ? rule->docs_text : rule->driver_text,
			docs ? "the documents" : "the driver's source",
			docs ? rule->driver_text : rule->docs_text,
			docs ? "the driver's source" : "the documents", rule->source);
}

bool contract_docs_apply(struct bsim *bs, enum contract_row row, const char *call)
{
	if (bs->is_documented == NULL || !bs->is_documented())
		return false;
	note(bs, row, call);
	return bs->contract == BSIM_DOCS;
}

drvError_t contract_code(struct bsim *bs, enum contract_row row, const char *call)
{
	return contract_docs_apply(bs, row, call) ? contract_rules[row].docs
						  : contract_rules[row].driver;
}

BSIM_QUESTION(npusimDocumentedBy, (npu_ask_fn, ask))
{
	bs->is_documented = ask;
	return DRV_ERROR_NONE;
}
