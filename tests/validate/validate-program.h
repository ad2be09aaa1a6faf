/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of validate-program share: made before a case and given back after it.
 */
#ifndef TEST_VALIDATE_PROGRAM_H
#define TEST_VALIDATE_PROGRAM_H

#include <acl/acl.h>

#include "harness/as-written.h"

#define MIB  (1u << 20)
#define PART (256u << 10) /* of what is copied and filled: each page takes time */

extern aclrtStream one, two;
extern aclrtEvent event, other_event;
extern char *device; /* 4 PARTs, all of it written */
extern char *pinned; /* a PART */

/* Prints the code of a call that is to succeed and does not. */
void must(aclError code, const char *call);
#define MUST(call) must(call, #call)

void copy_in(aclrtStream stream); /* a PART, pinned to device */
void copy_out(aclrtStream stream);

struct mapping {
	char *va;
	aclrtDrvMemHandle handle;
};
struct mapping map(void); /* 2 MiB of device 0 */
void unmap(struct mapping mapping);

struct validate_case {
	const char *name; /* NULL ends a table */
	void (*run)(void);
};
#define CASE(name)          \
	{                   \
#name, name \
	}
extern const struct validate_case bytes_cases[]; /* validate-bytes.c */
extern const struct validate_case rules_cases[]; /* validate-rules.c */

#endif
