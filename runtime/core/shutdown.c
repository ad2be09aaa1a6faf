/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the process: reports what it still holds.
 */
#include "core/object/process.h"

#include "driver/layer.h"

#include <stdlib.h>
#include <string.h>

static void leak_line(void *arg, const char *text)
{
	unsigned *lines = arg;

	if ((*lines)++ == 0)
		npu_log(NPU_LOG_WARN, "left at the end of the process (NPUSIM_LEAKS=full lists "
				      "all, off says nothing):");
	npu_log(NPU_LOG_WARN, "  %s", text);
}

/* NPUSIM_LEAKS=fail, and something was left: the status that the process ends with. */
static int status_of_leaks;

static void report_leaks(struct npu_driver *drv)
{
	const char *mode = npu_var_get(NPU_VAR_LEAKS, NULL);
	bool fails = strncmp(mode, "fail", strlen("fail")) == 0;
	unsigned lines = 0;

	if (drv == NULL || strcmp(mode, "off") == 0)
		return;
	npu_call(drv, npusimLeaks, leak_line, &lines, fails || strcmp(mode, "full") == 0);
	if (fails && lines > 0)
		status_of_leaks = mode[4] == ':' ? atoi(mode + strlen("fail:")) : 1;
}

/* Other threads may still be inside of the driver, waiting for work that never ends: they are left
 * alone, and so is the driver. What the process holds goes with it. */
__attribute__((destructor)) static void end_of_process(void)
{
	struct npu_driver *drv = core_driver_peek();

	if (drv != NULL) {
		report_leaks(drv);
		core_driver_refuse();
	}
	if (status_of_leaks != 0)
		driver_stack_exit(status_of_leaks);
}
