/* SPDX-License-Identifier: Apache-2.0
 *
 * This library among those of the process: tells `npusim run` that a process of its run has it, and
 * warns of a second library of the same name.
 */
#include "driver/layer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* A program that loads the library and makes no call has joined, too. */
__attribute__((constructor)) static void tell_run(void)
{
	const char *path = npu_var_get(NPU_VAR_JOIN_FILE, NULL);
	int fd = path[0] != '\0' ? open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (write(fd, "+", 1) != 1)
		npu_log(NPU_LOG_DEBUG, "%s cannot be written", path);
	close(fd);
}

struct others {
	bool with_hal;
	char own[PATH_MAX];
	char *paths; /* a line each */
};

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* Under any version: libascendcl.so.1. The CUDA driver's name counts only where we have it: a
 * program may use both kinds of device. */
static bool is_our_name(const struct others *others, const char *name)
{
	if (begins(basename(others->own), "libcuda."))
		return begins(name, "libcuda.so.1");
	return begins(name, "libascendcl.so") || begins(name, "libacl_rt.so") ||
	       (others->with_hal && begins(name, "libascend_hal.so"));
}

/* The list is the loader's, and locked: nothing is asked of it here. */
static int find_others(struct dl_phdr_info *info, size_t size, void *data)
{
	struct others *others = data;
	char real[PATH_MAX];

	(void)size;
	if (info->dlpi_name[0] != '\0' && is_our_name(others, basename(info->dlpi_name)) &&
	    realpath(info->dlpi_name, real) != NULL && strcmp(real, others->own) != 0)
		npu_text_add(&others->paths, "%s\n", real);
	return 0;
}

/* Our libascend_hal.so and our libascendcl.so share one model; two copies of either do not. */
static bool is_partner(const struct others *others, const char *path)
{
	void *handle = strncmp(basename(path), basename(others->own), 10) != 0
			       ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD)
			       : NULL;
	bool ours = handle != NULL && (dlsym(handle, NPUSIM_HAL_SYMBOL) != NULL ||
				       dlsym(handle, "npusim_backend_text") != NULL);

	if (handle != NULL)
		dlclose(handle);
	return ours;
}

static bool is_in_list(const char *variable, const char *folder, size_t length)
{
	const char *at = secure_getenv(variable);

	for (size_t next; at != NULL && *at != '\0'; at += next + (at[next] == ':')) {
		next = strcspn(at, ":");
		if (strncmp(at, folder, length) == 0 && strspn(at + length, "/") + length == next)
			return true;
	}
	return false;
}

/* What is likely; the loader keeps no account. */
static const char *what_brought_it(const char *path)
{
	const char *preload = secure_getenv("LD_PRELOAD");

	if (preload != NULL && strstr(preload, basename(path)) != NULL)
		return "LD_PRELOAD has it";
	if (is_in_list("LD_LIBRARY_PATH", path, (size_t)(basename(path) - path - 1)))
		return "LD_LIBRARY_PATH has its folder";
	return "a DT_RPATH or DT_RUNPATH names its folder, or dlopen() its path";
}

void driver_warn_of_others(bool with_hal)
{
	static atomic_flag looked = ATOMIC_FLAG_INIT;
	struct others others = { .with_hal = with_hal };
	char *place = NULL, *path;
	Dl_info own;

	if (atomic_flag_test_and_set(&looked) || dladdr((void *)find_others, &own) == 0 ||
	    realpath(own.dli_fname, others.own) == NULL)
		return;
	dl_iterate_phdr(find_others, &others);
	path = others.paths != NULL ? strtok_r(others.paths, "\n", &place) : NULL;
	for (; path != NULL; path = strtok_r(NULL, "\n", &place))
		if (!is_partner(&others, path))
			npu_log(NPU_LOG_WARN,
				"this process also has %s, which is not npusim's: calls that reach "
				"it get its answers, not those of %s; %s",
				path, others.own, what_brought_it(path));
	free(others.paths);
}
