/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables of a process that runs steps, sums of them and of sizes, and sizes as text.
 */
#include "case.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLES_MAX 96

static struct case_variable variables[VARIABLES_MAX];
static int variable_count;

static struct case_variable *find(const char *name)
{
	for (int i = 0; i < variable_count; i++)
		if (strcmp(variables[i].name, name) == 0)
			return &variables[i];
	return NULL;
}

struct case_variable *case_variable(const char *name)
{
	struct case_variable *variable = find(name);

	if (variable != NULL || variable_count == VARIABLES_MAX)
		return variable;
	variable = &variables[variable_count++];
	snprintf(variable->name, sizeof(variable->name), "%s", name);
	return variable;
}

static bool term(const char *text, size_t length, uint64_t *out)
{
	static const char units[] = "KMGT";
	const struct case_variable *variable;
	char word[64], *end;
	const char *unit;

	snprintf(word, sizeof(word), "%.*s", (int)length, text);
	if (isdigit((unsigned char)word[0])) {
		*out = strtoull(word, &end, 0);
		unit = *end == '\0' ? NULL : strchr(units, *end);
		if (unit != NULL)
			*out <<= 10 * (unit - units + 1);
		return *end == '\0' || (unit != NULL && end[1] == '\0');
	}
	variable = strcmp(word, "null") == 0 ? NULL : find(word);
	*out = variable == NULL ? 0 : variable->number;
	return variable != NULL || strcmp(word, "null") == 0;
}

bool case_number(const char *text, uint64_t *out)
{
	const char *whole = text;
	bool minus = false;
	uint64_t value;

	*out = 0;
	while (*text != '\0') {
		size_t length = strcspn(text, "+-");

		if (length > 0 && !term(text, length, &value)) {
			fprintf(stderr, "case: '%.*s' in '%s' has no value\n", (int)length, text,
				whole);
			return false;
		}
		if (length > 0)
			*out = minus ? *out - value : *out + value;
		text += length;
		minus = *text == '-';
		text += *text != '\0';
	}
	return true;
}

void case_size_text(int64_t bytes, char out[32])
{
	static const char units[] = "GMK";
	uint64_t size = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;

	for (int i = 0; i < 3; i++) {
		int shift = 30 - 10 * i;

		if (size != 0 && (size & ((UINT64_C(1) << shift) - 1)) == 0) {
			snprintf(out, 32, "%s%" PRIu64 "%c", bytes < 0 ? "-" : "", size >> shift,
				 units[i]);
			return;
		}
	}
	snprintf(out, 32, "%" PRId64, bytes);
}
