/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the real functions, and interposes dlsym(): a program that opens its ACL library and looks
 * up a function there gets ours, since LD_PRELOAD alone does not affect such a lookup.
 */
#include "preload.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Declared by hand in no header: what dlsym() is to us and to everybody else. */
typedef void *dlsym_fn(void *handle, const char *name);

static const char *const names[PRELOAD_FUNCTION_COUNT] = {
#define PRELOAD_NAME(name) [PRELOAD_##name] = #name,
	PRELOAD_FUNCTIONS(PRELOAD_NAME) PRELOAD_ASKED(PRELOAD_NAME)
};
static void *const wrappers[PRELOAD_WRAPPED_COUNT] = {
#define PRELOAD_WRAPPER(name) [PRELOAD_##name] = (void *)(uintptr_t)name,
	PRELOAD_FUNCTIONS(PRELOAD_WRAPPER)
};
static _Atomic(void *) reals[PRELOAD_FUNCTION_COUNT];

const char *preload_name(enum preload_function function)
{
	return names[function];
}

static dlsym_fn *find_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	static _Atomic(void *) found;
	void *fn = atomic_load_explicit(&found, memory_order_acquire);

	for (size_t i = 0; fn == NULL && i < sizeof(versions) / sizeof(versions[0]); i++)
		fn = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	atomic_store_explicit(&found, fn, memory_order_release);
	return (dlsym_fn *)(uintptr_t)fn;
}

/* A library whose functions we call stays loaded. */
static void pin(void *function)
{
	Dl_info info;

	if (dladdr(function, &info) != 0)
		/* cppcheck-suppress leakReturnValNotUsed ; it stays loaded on purpose */
		(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

/* Takes `found` for the real function if none is known, and answers the one that is. */
static void *settle(enum preload_function function, void *found)
{
	void *known = NULL;

	if (atomic_compare_exchange_strong_explicit(&reals[function], &known, found,
						    memory_order_acq_rel, memory_order_acquire)) {
		pin(found);
		return found;
	}
	return known;
}

static bool is_ours(enum preload_function function, const void *found)
{
	return function < PRELOAD_WRAPPED_COUNT && found == wrappers[function];
}

void *preload_real(enum preload_function function)
{
	static const char *const libraries[] = { "libascendcl.so", "libacl_rt.so",
						 "libascendcl.so.1" };
	void *found = atomic_load_explicit(&reals[function], memory_order_acquire);
	dlsym_fn *look_up = find_dlsym();

	if (found != NULL || look_up == NULL)
		return found;
	found = look_up(RTLD_NEXT, names[function]);
	for (size_t i = 0; found == NULL && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);

		if (library == NULL)
			continue;
		found = look_up(library, names[function]);
		dlclose(library);
		if (found != NULL && is_ours(function, found))
			found = NULL;
	}
	return found != NULL ? settle(function, found) : NULL;
}

static int compare_name(const void *name, const void *at)
{
	return strcmp(name, *(const char *const *)at);
}

/* Its number, or PRELOAD_WRAPPED_COUNT. */
static enum preload_function function_of(const char *name)
{
	const char *const *found =
		bsearch(name, names, PRELOAD_WRAPPED_COUNT, sizeof(*names), compare_name);

	return found != NULL ? (enum preload_function)(found - names) : PRELOAD_WRAPPED_COUNT;
}

/* The last call is a jump (this file is compiled so that it is): RTLD_NEXT and RTLD_DEFAULT go by
 * who called, and that must stay the program. */
PRELOAD_EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	dlsym_fn *look_up = find_dlsym();
	enum preload_function function;
	void *found;

	if (look_up == NULL)
		return NULL;
	function = handle == RTLD_NEXT ? PRELOAD_WRAPPED_COUNT : function_of(name);
	if (function == PRELOAD_WRAPPED_COUNT)
		return look_up(handle, name);
	if (handle == RTLD_DEFAULT)
		return preload_real(function) != NULL ? wrappers[function] : NULL;
	found = look_up(handle, name);
	if (found == NULL || is_ours(function, found))
		return found;
	/* another's function of the same name (one more library in front of the ACL) is its own */
	return settle(function, found) == found ? wrappers[function] : found;
}
