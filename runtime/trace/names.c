/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of names (tsearch) in which ranges that meet compare as equal: it never has two of them,
 * and a search for an address finds the range that holds it.
 */
#include "trace/names.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct trace_name *x = a, *y = b;

	if (x->key < y->key)
		return y->key - x->key < x->bytes ? 0 : -1;
	return x->key - y->key < y->bytes ? 0 : 1;
}

/* Any name whose range meets that one. */
static struct trace_name *find(const struct trace_names *names, uint64_t key, uint64_t bytes)
{
	const struct trace_name range = { .key = key, .bytes = bytes };
	struct trace_name *const *found = tfind(&range, &names->tree, compare);

	return found != NULL ? *found : NULL;
}

struct trace_name *trace_name_find(const struct trace_names *names, uint64_t key)
{
	return find(names, key, 1);
}

bool trace_name_add(struct trace_names *names, struct trace_name name)
{
	struct trace_name *kept = malloc(sizeof(*kept)), *met;

	if (kept == NULL)
		return false;
	*kept = name;
	if (kept->bytes == 0)
		kept->bytes = 1;
	while ((met = find(names, kept->key, kept->bytes)) != NULL)
		trace_name_take(names, met->key, NULL);
	if (tsearch(kept, &names->tree, compare) != NULL)
		return true;
	free(kept);
	return false;
}

bool trace_name_take(struct trace_names *names, uint64_t key, struct trace_name *out)
{
	struct trace_name *name = find(names, key, 1);

	if (name == NULL || name->key != key)
		return false;
	if (out != NULL)
		*out = *name;
	tdelete(name, &names->tree, compare);
	free(name);
	return true;
}

static void add_key(const void *node, VISIT turn, void *list)
{
	const struct trace_name *const *name = node;

	if (turn == postorder || turn == leaf)
		fwrite(&(*name)->key, sizeof((*name)->key), 1, list);
}

size_t trace_names_list(const struct trace_names *names, uint64_t **out_keys)
{
	char *keys = NULL;
	size_t bytes = 0;
	FILE *list = names->tree != NULL ? open_memstream(&keys, &bytes) : NULL;

	if (list != NULL) {
		twalk_r(names->tree, add_key, list);
		fclose(list);
	}
	*out_keys = (uint64_t *)(void *)keys;
	return bytes / sizeof(**out_keys);
}

void trace_names_free(struct trace_names *names)
{
	tdestroy(names->tree, free);
	names->tree = NULL;
}
