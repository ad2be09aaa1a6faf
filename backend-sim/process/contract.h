/* SPDX-License-Identifier: Apache-2.0
 *
 * The two contracts, for calls that reach a case in which the documentation and the driver's
 * source differ: what each of them answers, and the query for the answer in force. The documents'
 * rules are about aclrt functions: a call that is not one's (npusimDocumented) gets the driver's
 * answer, without a note. Called with bsim.lock held.
 */
#ifndef NPUSIM_BSIM_CONTRACT_H
#define NPUSIM_BSIM_CONTRACT_H

#include "process/process.h"

/* One row for every case in which documentation and driver differ. contract.c has the codes, the
 * rule's id and the source. */
enum contract_row {
	CONTRACT_HINT_NOT_1G_ALIGNED, /* R5: 107000; driver: 2 MiB + power of two suffices up to 512
					 MiB */
	CONTRACT_HINT_TAKEN,          /* R6: 207001; driver BUSY 507899 */
	CONTRACT_HINT_OUT_OF_WINDOW,  /* R6: 207001; driver BUSY 507899 */
	CONTRACT_CREATE_UNALIGNED,    /* P3: rounded up; driver PARA_ERROR 507899 */
	CONTRACT_CREATE_MANAGED,      /* location type 3 */
	CONTRACT_MAP_SMALLER,         /* M2: 107000; driver accepts */
	CONTRACT_MAP_LARGER,          /* M2: 107000; driver OUT_OF_MEMORY 207001 */
	CONTRACT_MAP_UNALIGNED_SIZE,  /* M2: 107000; driver PARA_ERROR 507899 */
	CONTRACT_MAP_MIXED_IMPORT,    /* M6: 107000; driver accepts */
	CONTRACT_IMPORT_SAME_PROCESS, /* I5: 507899; driver: its own device alone */
	CONTRACT_SYNC_COPY_TWO_DEVICES, /* R8: 507899; driver copies */
	CONTRACT_NOUC_NEEDS_910C,       /* docs: 207000 on 910B; driver: any */
	CONTRACT_NOTIFY_PIDS,           /* docs: a list; driver: one, else 107000 */
	CONTRACT_ROW_COUNT
};
/* Under the active contract: true if the row's documented answer applies. Leaves the note of what
 * the other contract would have answered (once a row and call name at level warn, then debug). */
bool contract_docs_apply(struct bsim *bs, enum contract_row row, const char *call);
/* The code of the active contract, with the note. */
drvError_t contract_code(struct bsim *bs, enum contract_row row, const char *call);

/* A row as it is written down, for tests and for the description of the backend. */
struct contract_rule {
	const char *rule; /* id of the documents' rule */
	const char *what; /* the case, in words */
	drvError_t docs, driver;
	const char *docs_text, *driver_text; /* what a program sees: the ACL's code, or "success" */
	const char *source;
};

const struct contract_rule *contract_rule(enum contract_row row);

#endif
