/* SPDX-License-Identifier: Apache-2.0
 *
 * A libascendcl.so whose messages have codes, as CANN's have, another one on the model; the rest of
 * it is npusim's. With STUCK=opening it does not come to its end when it is opened, with STUCK=end
 * when its process ends, with STUCK=message when it is asked for one; with no signal let in.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"

static void stick(const char *when)
{
	const char *stuck = getenv("STUCK");
	sigset_t all;

	sigfillset(&all);
	while (stuck != NULL && strcmp(stuck, when) == 0) {
		sigprocmask(SIG_BLOCK, &all, NULL);
		pause();
	}
}

__attribute__((constructor)) static void on_opening(void)
{
	stick("opening");
}

__attribute__((destructor)) static void on_end(void)
{
	stick("end");
}

__attribute__((visibility("default"))) const char *aclGetRecentErrMsg(void)
{
	static char text[128];
	const char *backend = getenv("NPUSIM_BACKEND");
	bool model = backend != NULL && strcmp(backend, "sim") == 0;

	stick("message");
	snprintf(text, sizeof(text), "(ERROR) [PID: 1] Invalid_Argument(%s): failed with %d (E",
		 model ? "EE1001" : "EE1003", aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	return text;
}
