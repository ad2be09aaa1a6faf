/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder of runtime/trace: its names against a plain list of them, and what it writes of
 * calls that are about things it has seen, and about others.
 */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "trace/names.h"
#include "trace/recorder.h"

/* ---- names ---- */

static gboolean overlap(const struct trace_name *a, const struct trace_name *b)
{
	return a->key < b->key ? b->key - a->key < a->bytes : a->key - b->key < b->bytes;
}

/* An array in no order, in which everything is looked at. */
static void oracle_add(GArray *list, struct trace_name name)
{
	for (guint i = list->len; i-- > 0;) {
		if (overlap(&g_array_index(list, struct trace_name, i), &name))
			g_array_remove_index_fast(list, i);
	}
	g_array_append_val(list, name);
}

static const struct trace_name *oracle_find(GArray *list, guint64 key)
{
	const struct trace_name probe = { .key = key, .bytes = 1 };

	for (guint i = 0; i < list->len; i++) {
		if (overlap(&g_array_index(list, struct trace_name, i), &probe))
			return &g_array_index(list, struct trace_name, i);
	}
	return NULL;
}

static gboolean oracle_take(GArray *list, guint64 key)
{
	for (guint i = 0; i < list->len; i++) {
		if (g_array_index(list, struct trace_name, i).key == key) {
			g_array_remove_index_fast(list, i);
			return TRUE;
		}
	}
	return FALSE;
}

TEST(recorder, names_are_those_of_a_plain_list)
{
	GRand *dice = g_rand_new_with_seed(3);
	GArray *list = g_array_new(FALSE, FALSE, sizeof(struct trace_name));
	struct trace_names names = { 0 };

	EXPECT_NULL(trace_name_find(&names, 0));
	EXPECT_FALSE(trace_name_take(&names, 0, NULL));
	for (guint step = 1; step <= 20000 && !harness_has_failed(); step++) {
		guint64 key = (guint64)g_rand_int_range(dice, 0, 4000);
		int what = g_rand_int_range(dice, 0, 10);
		struct trace_name name = { .key = key,
					   .bytes = (guint64)g_rand_int_range(dice, 1, 12),
					   .number = step,
					   .letter = 'r' };
		if (key > 3990) /* the end of what there is */
			name.key = UINT64_MAX - (4000 - key), name.bytes = 4000 - key;
		if (what < 4) {
			ASSERT_TRUE(trace_name_add(&names, name));
			oracle_add(list, name);
		} else if (what < 7) {
			EXPECT_EQ(trace_name_take(&names, name.key, NULL),
				  (bool)oracle_take(list, name.key));
		} else {
			const struct trace_name *got = trace_name_find(&names, name.key);
			const struct trace_name *wanted = oracle_find(list, name.key);
			ASSERT_EQ(got == NULL, wanted == NULL);
			EXPECT_EQ(got ? got->number : 0, wanted ? wanted->number : 0);
		}
	}
	while (list->len > 0) {
		struct trace_name out, last = g_array_index(list, struct trace_name, list->len - 1);
		ASSERT_TRUE(trace_name_take(&names, last.key, &out));
		EXPECT_EQ(out.number, last.number);
		g_array_set_size(list, list->len - 1);
	}
	EXPECT_NULL(names.tree);
	trace_names_free(&names);
	g_array_unref(list);
	g_rand_free(dice);
}

TEST(recorder, a_name_of_nothing_has_its_address)
{
	struct trace_names names = { 0 };

	ASSERT_TRUE(trace_name_add(&names, (struct trace_name){ .key = 7, .number = 1 }));
	EXPECT_NOT_NULL(trace_name_find(&names, 7));
	EXPECT_NULL(trace_name_find(&names, 8));
	trace_names_free(&names);
}

/* ---- lines ---- */

static char *path;

SETUP(recorder)
{
	g_autofree char *folder = g_dir_make_tmp("npusim-recorder-XXXXXX", NULL);
	path = g_build_filename(folder, "trace.npt", NULL);
}

TEARDOWN(recorder)
{
	g_autofree char *folder = g_path_get_dirname(path);
	g_unlink(path);
	g_rmdir(folder);
	g_clear_pointer(&path, g_free);
}

#define VA     ((void *)(uintptr_t)0x12c000000000)
#define HANDLE ((void *)(uintptr_t)0x7000)

static struct trace_call answered(struct trace_recorder *recorder, const char *op, gint32 code)
{
	struct trace_call call = trace_call_begin(recorder, op);
	call.code = code;
	return call;
}

/* The lines of the file but the first two, without stamps. */
static char *lines_of(const char *file)
{
	g_autofree char *text = NULL;
	g_autoptr(GRegex) stamps = g_regex_new("^@\\d+ ", G_REGEX_MULTILINE, 0, NULL);
	const char *at;

	if (!g_file_get_contents(file, &text, NULL, NULL))
		return g_strdup("no file");
	at = strchr(text, '\n');
	at = at ? strchr(at + 1, '\n') : NULL;
	return at ? g_regex_replace(stamps, at + 1, -1, 0, "", 0, NULL) : g_strdup("no head");
}

TEST(recorder, handles_are_counted_and_come_back)
{
	struct trace_recorder *r = trace_recorder_open(path, "backend=test");
	struct trace_call ok, bad;
	struct trace_ending ending;

	ASSERT_NOT_NULL(r);
	ok = answered(r, "call", 0);
	bad = answered(r, "call", 107000);
	TRACE_RECORD(r, &ok, RESERVE, .name = TRACE_AT(VA), .size = 8192, .hint = 0, .flags = 1);
	TRACE_RECORD(r, &ok, CREATE, .name = TRACE_AT(HANDLE), .size = 4096, .device = 2,
		     .page_lg2 = 21);
	TRACE_RECORD(r, &ok, MAP, .has = NPU_TRACE_HAS_NO_ACCESS,
		     .name = TRACE_AT((char *)VA + 4096), .size = 4096, .handle = TRACE_AT(HANDLE));
	TRACE_RECORD(r, &ok, RETAIN, .name = TRACE_AT(HANDLE), .at = TRACE_AT((char *)VA + 4096));
	ending = trace_ends(r, NPU_TRACE_RELEASE, HANDLE);
	trace_record_end(r, &ok, &ending);
	ending = trace_ends(r, NPU_TRACE_RELEASE, HANDLE);
	trace_record_end(r, &bad, &ending); /* it did not end */
	ending = trace_ends(r, NPU_TRACE_RELEASE, HANDLE);
	trace_record_end(r, &ok, &ending);
	TRACE_RECORD(r, &ok, CREATE, .name = TRACE_AT(HANDLE), .size = 4096,
		     .device = NPU_TRACE_HOST, .page_lg2 = 0); /* another at the same place */
	ending = trace_ends(r, NPU_TRACE_UNRESERVE, VA);
	trace_record_end(r, &bad, &ending);
	TRACE_RECORD(r, &ok, UNMAP, .name = TRACE_AT((char *)VA + 4096));
	trace_recorder_close(r);
	g_autofree char *lines = lines_of(path);
	EXPECT_STREQ(lines, ":1.1 reserve r1 size=8192 flags=1 va=0x12c000000000\n"
			    ":1.1 create h1 size=4096 device=2 page=2m\n"
			    ":1.1 map r1+4096 size=4096 handle=h1 access=none\n"
			    ":1.1 retain h1 at=r1+4096\n"
			    ":1.1 release h1\n"
			    ":1.1 release h1 => 107000\n"
			    ":1.1 release h1\n"
			    ":1.1 create h2 size=4096 device=host\n"
			    ":1.1 unreserve r1 => 107000\n"
			    ":1.1 unmap r1+4096\n");
}

TEST(recorder, what_it_has_not_seen_is_a_call)
{
	struct trace_recorder *r = trace_recorder_open(path, "");
	struct trace_call ok, bad;
	struct trace_ending ending;

	ASSERT_NOT_NULL(r);
	ok = answered(r, "someCall", 0);
	bad = answered(r, "someCall", 107000);
	TRACE_RECORD(r, &ok, MAP, .name = TRACE_AT(VA), .size = 4096, .handle = TRACE_AT(HANDLE));
	TRACE_RECORD(r, &bad, MAP, .name = TRACE_AT(VA), .size = 4096, .handle = TRACE_AT(HANDLE));
	TRACE_RECORD(r, &ok, UNMAP, .name = TRACE_AT(VA));
	ending = trace_ends(r, NPU_TRACE_MFREE, VA);
	trace_record_end(r, &ok, &ending);
	ending = trace_ends(r, NPU_TRACE_RELEASE, HANDLE);
	trace_record_end(r, &bad, &ending);
	TRACE_RECORD(r, &ok, COPY, .at = TRACE_AT(1), .from = TRACE_AT(2), .size = 3);
	trace_recorder_about(r, "soc=X");
	trace_recorder_close(r);
	g_autofree char *lines = lines_of(path);
	EXPECT_STREQ(lines, ":1.1 call op=someCall\n"
			    ":1.1 map host size=4096 handle=h0 => 107000\n"
			    ":1.1 call op=someCall\n"
			    ":1.1 call op=someCall\n"
			    ":1.1 call op=someCall => 107000\n"
			    ":1.1 copy size=3 dst=host src=host\n"
			    "info soc=X\n");
}

/* The file of another process of the run than the first, or of a process's second program. */
static char *own_name(pid_t pid, const char *number)
{
	g_autofree char *stem = g_strndup(path, strlen(path) - strlen(".npt"));

	return g_strdup_printf("%s.%d%s.npt", stem, (int)pid, number);
}

TEST(recorder, a_child_of_fork_begins_anew)
{
	struct trace_recorder *r = trace_recorder_open(path, "backend=test");
	struct trace_call ok;

	ASSERT_NOT_NULL(r);
	ok = answered(r, "someCall", 0);
	TRACE_RECORD(r, &ok, RESERVE, .name = TRACE_AT(VA), .size = 8192, .hint = 0, .flags = 1);
	pid_t pid = fork();
	if (pid == 0) {
		TRACE_RECORD(r, &ok, UNMAP, .name = TRACE_AT(VA));
		TRACE_RECORD(r, &ok, RESERVE, .name = TRACE_AT(VA), .size = 4096, .hint = 0,
			     .flags = 0);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	TRACE_RECORD(r, &ok, UNMAP, .name = TRACE_AT(VA));
	trace_recorder_close(r);
	g_autofree char *child = own_name(pid, "");
	g_autofree char *lines = lines_of(path), *lines_of_child = lines_of(child);
	g_autofree char *head = NULL, *says = g_strdup_printf(" pid=%d ", (int)pid);
	EXPECT_STREQ(lines, ":1.1 reserve r1 size=8192 flags=1 va=0x12c000000000\n"
			    ":1.1 unmap r1+0\n");
	EXPECT_STREQ(lines_of_child, ":1.1 call op=someCall\n"
				     ":1.1 reserve r1 size=4096 flags=0 va=0x12c000000000\n");
	ASSERT_TRUE(g_file_get_contents(child, &head, NULL, NULL));
	EXPECT_CONTAINS(head, says);
	g_unlink(child);
}

/* A process, and the two below it, to the depth: each opens the recorder itself. */
static void tree(unsigned depth)
{
	struct trace_recorder *r;
	pid_t below[2] = { -1, -1 };

	for (int i = 0; i < 2 && depth > 0; i++) {
		below[i] = fork();
		if (below[i] == 0) {
			tree(depth - 1);
			_exit(0);
		}
	}
	r = trace_recorder_open(path, "backend=test");
	for (int i = 0; r != NULL && i < 100; i++) {
		struct trace_call call = answered(r, "someCall", 0);

		TRACE_RECORD(r, &call, FILL, .at = TRACE_AT(0), .size = 4096);
	}
	for (int i = 0; i < 2; i++)
		if (below[i] > 0)
			waitpid(below[i], NULL, 0);
	trace_recorder_close(r);
}

TEST(recorder, each_process_of_a_run_has_a_whole_file)
{
	g_autofree char *folder = g_path_get_dirname(path);
	GDir *dir;
	const char *name;
	guint files = 0;
	pid_t pids[3]; /* one after the other: those that have ended keep their files */

	setenv("NPUSIM_RUN", "tree", 1);
	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			tree(i == 0 ? 3 : 0);
			_exit(0);
		}
		waitpid(pids[i], NULL, 0);
	}
	unsetenv("NPUSIM_RUN");
	dir = g_dir_open(folder, 0, NULL);
	ASSERT_NOT_NULL(dir);
	while ((name = g_dir_read_name(dir)) != NULL) {
		g_autofree char *file = g_build_filename(folder, name, NULL);
		g_autofree char *lines = lines_of(file), *head = NULL, *plain = NULL;
		const char *pid;
		guint count = 0;

		files++;
		ASSERT_TRUE(g_file_get_contents(file, &head, NULL, NULL));
		pid = strstr(head, " pid=");
		plain = own_name(pid != NULL ? atoi(pid + strlen(" pid=")) : 0, "");
		EXPECT_TRUE(strcmp(file, path) == 0 || strcmp(file, plain) == 0);
		for (const char *at = lines; (at = strstr(at, ":1.1 fill size=4096 ")) != NULL;
		     at++)
			count++;
		EXPECT_EQ(count, 100u);
		EXPECT_EQ(strstr(head, "info program") == g_strrstr(head, "info program"), true);
		g_unlink(file);
	}
	g_dir_close(dir);
	EXPECT_EQ(files, 15u + 2u);
}

TEST(recorder, time_of_a_call_stands_on_its_first_line)
{
	struct trace_recorder *r = trace_recorder_open(path, "backend=test");
	struct trace_call call;

	ASSERT_NOT_NULL(r);
	call = answered(r, "someCall", 0);
	call.took_ns = 700;
	for (guint64 size = 1; size <= 3; size++)
		TRACE_RECORD(r, &call, FILL, .at = TRACE_AT(0), .size = size);
	trace_recorder_close(r);
	g_autofree char *lines = lines_of(path);
	EXPECT_STREQ(lines, "+700 :1.1 fill size=1 dst=host\n"
			    ":1.1 fill size=2 dst=host\n"
			    ":1.1 fill size=3 dst=host\n");
}

TEST(recorder, the_next_run_empties_the_file)
{
	struct trace_recorder *r;
	struct trace_call ok;
	g_autofree char *second = own_name(getpid(), ""), *third = own_name(getpid(), "-2");

	setenv("NPUSIM_RUN", "first", 1);
	for (int i = 0; i < 3; i++) {
		r = trace_recorder_open(path, "backend=test");
		ASSERT_NOT_NULL(r);
		ok = answered(r, "someCall", 0);
		TRACE_RECORD(r, &ok, FILL, .at = TRACE_AT(0), .size = (guint64)i + 1);
		trace_recorder_close(r);
	}
	g_autofree char *one = lines_of(path), *two = lines_of(second), *three = lines_of(third);
	EXPECT_STREQ(one, ":1.1 fill size=1 dst=host\n");
	EXPECT_STREQ(two, ":1.1 fill size=2 dst=host\n");
	EXPECT_STREQ(three, ":1.1 fill size=3 dst=host\n");
	g_unlink(second);
	g_unlink(third);
	setenv("NPUSIM_RUN", "second", 1);
	r = trace_recorder_open(path, "backend=test");
	unsetenv("NPUSIM_RUN");
	ASSERT_NOT_NULL(r);
	trace_recorder_close(r);
	g_autofree char *again = lines_of(path);
	EXPECT_STREQ(again, "");
}

TEST(recorder, a_file_that_cannot_be_made_is_told)
{
	EXPECT_NULL(trace_recorder_open("/no/such/folder/trace.npt", ""));
	EXPECT_EQ(errno, ENOENT);
	trace_recorder_close(NULL);
}

#define THREADS 4
#define ROUNDS  100

static void *work(void *arg)
{
	struct trace_recorder *r = arg;
	static _Atomic guintptr next;
	guintptr mine = ++next << 32;

	for (guintptr i = 0; i < ROUNDS; i++) {
		struct trace_call ok = answered(r, "call", 0);
		void *va = (void *)(mine + i * 4096), *handle = (void *)(mine + i * 64);
		struct trace_ending ending;

		TRACE_RECORD(r, &ok, RESERVE, .name = TRACE_AT(va), .size = 4096, .hint = 0,
			     .flags = 0);
		TRACE_RECORD(r, &ok, CREATE, .name = TRACE_AT(handle), .size = 4096, .device = 0,
			     .page_lg2 = 21);
		TRACE_RECORD(r, &ok, MAP, .name = TRACE_AT(va), .size = 4096,
			     .handle = TRACE_AT(handle));
		TRACE_RECORD(r, &ok, UNMAP, .name = TRACE_AT(va));
		ending = trace_ends(r, NPU_TRACE_RELEASE, handle);
		trace_record_end(r, &ok, &ending);
		ending = trace_ends(r, NPU_TRACE_UNRESERVE, va);
		trace_record_end(r, &ok, &ending);
	}
	return NULL;
}

TEST(recorder, threads_share_it)
{
	struct trace_recorder *r = trace_recorder_open(path, "");
	GThread *threads[THREADS];
	guint count = 0;

	ASSERT_NOT_NULL(r);
	for (int i = 0; i < THREADS; i++)
		threads[i] = g_thread_new("work", work, r);
	for (int i = 0; i < THREADS; i++)
		g_thread_join(threads[i]);
	trace_recorder_close(r);
	g_autofree char *lines = lines_of(path);
	for (const char *at = lines; (at = strchr(at, '\n')) != NULL; at++)
		count++;
	EXPECT_EQ(count, (guint)(THREADS * ROUNDS * 6));
	EXPECT_NULL(strstr(lines, "call op="));
}
