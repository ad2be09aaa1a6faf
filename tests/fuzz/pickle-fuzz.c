/* SPDX-License-Identifier: Apache-2.0
 *
 * The pickle reader: any bytes give a value or an error, and a value can be looked at.
 */
#include "fuzz.h"
#include "read/readers.h"

/* Looks at a value and what it holds, two levels deep: pickles may hold themselves. */
static gint64 look(const struct pickle_value *v, int depth)
{
	gint64 sum = 0, n;
	switch (v->type) {
	case PICKLE_STR:
		for (gsize i = 0; i < v->length; i++)
			sum += v->text[i];
		return sum;
	case PICKLE_LIST:
	case PICKLE_DICT:
		for (guint i = 0; depth > 0 && i < v->list->len; i++)
			sum ^= look(pickle_item(v, i), depth - 1);
		return pickle_get_int(v, "size", &n) ? sum ^ n : sum;
	default:
		return v->type;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	GError *error = NULL;
	struct input *input = input_open_bytes(bytes, count, "bytes", &error);
	struct pickle *pickle = input ? pickle_read_input(input, NULL, &error) : NULL;
	g_assert((pickle == NULL) == (error != NULL));
	if (pickle)
		look(pickle_root(pickle), 2);
	g_clear_error(&error);
	pickle_free(pickle);
	input_close(input);
	return 0;
}
