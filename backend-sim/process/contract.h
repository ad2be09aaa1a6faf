/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of the table of contracts, for tests and for the description of the backend. bsim.h has
 * what calls use.
 */
#ifndef NPUSIM_BSIM_CONTRACT_H
#define NPUSIM_BSIM_CONTRACT_H

#include "process/process.h"

struct contract_rule {
	const char *rule; /* id of the documents' rule */
	const char *what; /* the case, in words */
	drvError_t docs, driver;
	const char *docs_text, *driver_text; /* what a program sees: the ACL's code, or "success" */
	const char *source;
};

const struct contract_rule *contract_rule(enum contract_row row);

#endif
