/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target over every file of a folder, and over each of them cut off and with single
 * bytes changed: a test without a fuzzing engine.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

#define VARIANTS_MAX 2000

/* The target gets memory of just the size, so that a sanitizer sees a read behind it. */
static void call(const guint8 *bytes, gsize count)
{
	g_autofree guint8 *copy = g_memdup2(bytes, count);
	LLVMFuzzerTestOneInput(copy, count);
}

static guint vary(guint8 *bytes, gsize count)
{
	gsize step = count / VARIANTS_MAX + 1;
	guint calls = 0;
	for (gsize at = 0; at < count; at += step) {
		guint8 old = bytes[at];
		call(bytes, at);
		bytes[at] = (guint8)(old + 1 + at % 255);
		call(bytes, count);
		bytes[at] = old;
		calls += 2;
	}
	return calls;
}

int main(int argc, char **argv)
{
	g_autoptr(GDir) folder = argc == 2 ? g_dir_open(argv[1], 0, NULL) : NULL;
	guint calls = 0, files = 0;
	const char *name;

	if (folder == NULL) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((name = g_dir_read_name(folder)) != NULL) {
		g_autofree char *path = g_build_filename(argv[1], name, NULL);
		g_autofree char *text = NULL;
		gsize count;
		if (!g_file_get_contents(path, &text, &count, NULL))
			continue;
		call((const guint8 *)text, count);
		calls += 1 + vary((guint8 *)text, count);
		files++;
	}
	printf("%u inputs from %u files\n", calls, files);
	return files > 0 ? 0 : 1;
}
