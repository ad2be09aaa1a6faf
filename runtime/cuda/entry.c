/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGetProcAddress, through which most programs find all other functions, and second names of
 * functions. Both are generated from the lists of functions.
 */
#include "cuda-internal.h"
#include "cuda-names.h"

#include <string.h>

#define FLAGS_KNOWN UINT64_C(3) /* legacy and per-thread default stream */

#define PROTOTYPE(symbol, name, since) CUresult symbol(void);
CUDA_UNMODELLED(PROTOTYPE)
#define DOOR(symbol, params, args) CUresult door_##symbol params __asm__(#symbol);
CUDA_DOORS(DOOR)

static const struct entry {
	const char *name;
	int since;
	void (*function)(void);
} entries[] = {
#define ENTRY(symbol, name, since, params) { #name, since, (void (*)(void))door_##symbol },
	CUDA_FUNCTIONS(ENTRY)
#undef ENTRY
#define ENTRY(symbol, name, since) { #name, since, (void (*)(void))symbol },
		CUDA_UNMODELLED(ENTRY)
#undef ENTRY
};

/* The newest that a program of that version may have; *known: there is one of any version. */
static const struct entry *find(const char *name, int version, bool *known)
{
	const struct entry *best = NULL;

	*known = false;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (strcmp(entries[i].name, name) != 0)
			continue;
		*known = true;
		if (entries[i].since <= version && (best == NULL || best->since < entries[i].since))
			best = &entries[i];
	}
	return best;
}

CUDA_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
					 uint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
	const struct entry *entry;
	bool known;

	if (symbol == NULL || function == NULL || (flags & ~FLAGS_KNOWN) != 0)
		return cuda_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress",
				 "symbol %p, function %p, flags %llu", (const void *)symbol,
				 (void *)function, (unsigned long long)flags);
	entry = find(symbol, version, &known);
	*function = NULL;
	if (entry != NULL)
		memcpy(function, &entry->function, sizeof(*function));
	else
		answer = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (status != NULL)
		*status = answer;
	if (entry != NULL)
		return CUDA_SUCCESS;
	return cuda_fail(CUDA_ERROR_NOT_FOUND, "cuGetProcAddress", "there is no %s for version %d",
			 symbol, version);
}

CUDA_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
				      uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* ---- second names ---- */

/* Jumps to the function, whatever its parameters: both have the same. */
#if defined(__x86_64__)
#define JUMP(symbol) "\tjmp " #symbol "@PLT\n"
#elif defined(__aarch64__)
#define JUMP(symbol) "\tb " #symbol "\n"
#else
#error "second names are not written for this processor"
#endif
#define ALIAS(alias, symbol)                                                                  \
	__asm__("\t.text\n"                                                                   \
		"\t.globl " #alias "\n"                                                       \
		"\t.type " #alias ", %function\n" #alias ":\n" JUMP(symbol) "\t.size " #alias \
									    ", .-" #alias "\n");
CUDA_ALIASES(ALIAS)
