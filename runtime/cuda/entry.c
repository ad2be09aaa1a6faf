/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGetProcAddress, through which most programs find all other functions, by the lists of these,
 * and second names of functions.
 */
#include "cuda-internal.h"
#include "cuda-names.h"

#include <string.h>

#define FLAGS_KNOWN     UINT64_C(3) /* legacy and per-thread default stream */
#define FLAG_PER_THREAD UINT64_C(2)

#define FUNCTION(symbol, ...) void at_##symbol(void) __asm__(#symbol);
CUDA_MODELLED(FUNCTION)
CUDA_UNMODELLED(FUNCTION)
CUDA_ALIASES(FUNCTION)

static const struct entry {
	const char *symbol, *name;
	int since;
	void (*function)(void);
} entries[] = {
#define ENTRY(symbol, name, since) { #symbol, #name, since, at_##symbol },
#define SECOND(alias, symbol)      { #alias, "", 0, at_##alias },
	CUDA_MODELLED(ENTRY) CUDA_UNMODELLED(ENTRY) CUDA_ALIASES(SECOND)
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

/* The newest that a program of that version may have; *known: there is one of any version. */
static const struct entry *find(const char *name, int version, bool *known)
{
	const struct entry *best = NULL;

	*known = false;
	for (size_t i = 0; i < ENTRIES; i++) {
		if (strcmp(entries[i].name, name) != 0)
			continue;
		*known = true;
		if (entries[i].since <= version && (best == NULL || best->since < entries[i].since))
			best = &entries[i];
	}
	return best;
}

/* The function for a default stream a thread, where it has one of its own. */
static const struct entry *per_thread(const struct entry *entry)
{
	size_t length = strlen(entry->symbol);

	for (size_t i = 0; i < ENTRIES; i++)
		if (strncmp(entries[i].symbol, entry->symbol, length) == 0 &&
		    (strcmp(entries[i].symbol + length, "_ptsz") == 0 ||
		     strcmp(entries[i].symbol + length, "_ptds") == 0))
			return &entries[i];
	return entry;
}

/* As CUDA documents it: a name that is unknown, or newer than `version`, is no failure, but NULL.
 */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
	const struct entry *entry;
	bool known;

	if (flags >= FLAGS_KNOWN || version > CUDA_VERSION)
		return cuda_invalid("version %d, flags %llu: the version is at most %d, the flags "
				    "are 0, 1 or 2",
				    version, (unsigned long long)flags, CUDA_VERSION);
	entry = find(symbol, version, &known);
	if (entry != NULL && flags == FLAG_PER_THREAD)
		entry = per_thread(entry);
	*function = NULL;
	if (entry != NULL)
		memcpy(function, &entry->function, sizeof(*function));
	else
		answer = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (status != NULL)
		*status = answer;
	return CUDA_SUCCESS;
}

/* Of CUDA 11, which documents NOT_FOUND. */
CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	CUresult code = cuGetProcAddress_v2(symbol, function, version, flags, NULL);

	if (code == CUDA_SUCCESS && *function == NULL)
		return cuda_fail(CUDA_ERROR_NOT_FOUND, "there is no %s for version %d", symbol,
				 version);
	return code;
}

/* Jumps to the function, whatever its parameters: both have the same. Not an alias: a stack's
 * frames are to have the name of the function. */
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
