/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a trace goes, and what it says of the program before the first event.
 */
#include "trace-head.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A blank, '%' or control character of a value is written as %XX. */
static void put_value(FILE *file, const char *value)
{
	for (; *value != '\0'; value++) {
		unsigned char c = (unsigned char)*value;

		if (c <= ' ' || c == '%' || c == 0x7f)
			fprintf(file, "%%%02X", c);
		else
			fputc(c, file);
	}
}

void trace_write_head(FILE *file, struct npu_driver *lower, uint64_t start_ns)
{
	char soc[64] = "";
	uint32_t devices = 0;

	fprintf(file, "npusim-trace 1\ninfo program=");
	put_value(file, program_invocation_short_name);
	fprintf(file, " pid=%d start=%" PRIu64 " backend=%s contract=%s", (int)getpid(), start_ns,
		lower->name, npu_var_get(NPU_VAR_CONTRACT, NULL));
	if (npu_call(lower, halGetSocVersion, 0, soc, (uint32_t)sizeof(soc)) == DRV_ERROR_NONE &&
	    soc[0] != '\0') {
		fprintf(file, " soc=");
		put_value(file, soc);
	}
	if (npu_call(lower, drvGetDevNum, &devices) == DRV_ERROR_NONE)
		fprintf(file, " devices=%u", devices);
	fputc('\n', file);
}

char *trace_file_name(const char *path)
{
	const char *mark = strstr(path, "%p");
	char *text;

	if (mark == NULL)
		return strdup(path);
	return asprintf(&text, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2) < 0
		       ? NULL
		       : text;
}

FILE *trace_file_open(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "a");

	if (file == NULL && fd >= 0)
		close(fd);
	return file;
}
