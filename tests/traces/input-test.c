/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as they come: plain, gzip in one or several members, damaged, cut off, empty, pipes, and
 * what is no file.
 */
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/test.h"
#include "backend-sim/node/node.h"
#include "format/input.h"
#include "read/trace.h"

static char *folder;

SETUP(input)
{
	folder = g_dir_make_tmp("npusim-input-XXXXXX", NULL);
	ASSERT_NOT_NULL(folder);
}

TEARDOWN(input)
{
	g_autofree char *file = g_build_filename(folder, "file", NULL);
	g_unlink(file);
	g_rmdir(folder);
	g_clear_pointer(&folder, g_free);
}

static char *write_file(const void *bytes, gsize count)
{
	char *path = g_build_filename(folder, "file", NULL);
	EXPECT_TRUE(g_file_set_contents(path, bytes, (gssize)count, NULL));
	return path;
}

static void add_member(GByteArray *out, const void *bytes, gsize count)
{
	z_stream z = { 0 };
	gsize room = count + count / 1000 + 256;
	g_autofree guint8 *packed = g_malloc(room);
	ASSERT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)bytes;
	z.avail_in = (uInt)count;
	z.next_out = packed;
	z.avail_out = (uInt)room;
	ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
	g_byte_array_append(out, packed, (guint)(room - z.avail_out));
	deflateEnd(&z);
}

/* Hard to compress, so that the packed form is longer than a piece of what zlib reads. */
static GByteArray *noise(gsize count)
{
	GByteArray *out = g_byte_array_sized_new((guint)count);
	g_autoptr(GRand) random = g_rand_new_with_seed(1);
	while (out->len < count) {
		guint32 word = g_rand_int(random);
		g_byte_array_append(out, (const guint8 *)&word, 4);
	}
	return out;
}

static GBytes *whole(const char *path, GError **error)
{
	struct input *in = input_open(path, error);
	GBytes *bytes = in ? input_whole(in, error) : NULL;
	input_close(in);
	return bytes;
}

static void expect_bytes(const char *path, const void *bytes, gsize count)
{
	GError *error = NULL;
	g_autoptr(GBytes) got = whole(path, &error);
	if (got == NULL)
		FAIL("%s", error->message);
	ASSERT_EQ(g_bytes_get_size(got), count);
	EXPECT_MEMEQ(g_bytes_get_data(got, NULL), bytes, count);
}

static void expect_error(const char *path, const char *says)
{
	GError *error = NULL;
	g_autoptr(GBytes) got = whole(path, &error);
	EXPECT_NULL(got);
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error->message, says);
	EXPECT_CONTAINS(error->message, path);
	g_error_free(error);
}

TEST(input, reads_plain_bytes)
{
	g_autofree char *path = write_file("a\0b\n", 4);
	expect_bytes(path, "a\0b\n", 4);
}

TEST(input, reads_an_empty_file)
{
	g_autofree char *path = write_file("", 0);
	expect_bytes(path, NULL, 0);
}

TEST(input, reads_gzip_of_several_pieces_and_members)
{
	g_autoptr(GByteArray) all = noise(3u << 20);
	g_autoptr(GByteArray) packed = g_byte_array_new();
	static const guint8 zeros[512];
	add_member(packed, all->data, 1u << 20);
	add_member(packed, "", 0);
	add_member(packed, all->data + (1u << 20), 2u << 20);
	/* blocks of a tape are filled up with zeros */
	g_byte_array_append(packed, zeros, sizeof zeros);
	g_autofree char *path = write_file(packed->data, packed->len);
	expect_bytes(path, all->data, all->len);
}

TEST(input, gives_the_same_again_after_a_rewind)
{
	g_autoptr(GByteArray) packed = g_byte_array_new();
	add_member(packed, "first", 5);
	add_member(packed, "second", 6);
	g_autofree char *path = write_file(packed->data, packed->len);
	struct input *in = input_open(path, NULL);
	char text[32];
	ASSERT_NOT_NULL(in);
	EXPECT_EQ(input_take(in, (guint8 *)text, 7, NULL), 7);
	for (int pass = 0; pass < 2; pass++) {
		input_rewind(in);
		EXPECT_EQ(input_take(in, (guint8 *)text, sizeof text, NULL), 11);
		EXPECT_MEMEQ(text, "firstsecond", 11);
		EXPECT_EQ(input_take(in, (guint8 *)text, sizeof text, NULL), 0);
	}
	input_close(in);
}

TEST(input, every_cut_of_a_gzip_file_ends_early)
{
	g_autoptr(GByteArray) packed = g_byte_array_new();
	add_member(packed, "some text, some text, some text", 31);
	for (guint n = 2; n < packed->len; n++) {
		GError *error = NULL;
		struct input *in = input_open_bytes(packed->data, n, "cut", &error);
		ASSERT_NOT_NULL(in);
		g_autoptr(GBytes) got = input_whole(in, &error);
		ASSERT_NULL(got);
		EXPECT_CONTAINS(error->message, "ends early");
		g_error_free(error);
		input_close(in);
	}
}

TEST(input, damaged_gzip_is_named_with_its_place)
{
	g_autoptr(GByteArray) all = noise(64u << 10);
	g_autoptr(GByteArray) packed = g_byte_array_new();
	add_member(packed, all->data, all->len);
	packed->data[packed->len - 8] ^= 1; /* the checksum */
	g_autofree char *path = write_file(packed->data, packed->len);
	expect_error(path, "gzip damaged at byte");
	packed->data[packed->len - 8] ^= 1;
	packed->data[2] = 9; /* the method */
	g_autofree char *again = write_file(packed->data, packed->len);
	expect_error(again, "gzip damaged at byte");
}

TEST(input, bytes_after_the_last_member_are_damage)
{
	g_autoptr(GByteArray) packed = g_byte_array_new();
	add_member(packed, "text", 4);
	g_byte_array_append(packed, (const guint8 *)"junk", 4);
	g_autofree char *path = write_file(packed->data, packed->len);
	expect_error(path, "gzip damaged at byte");
}

TEST(input, reads_a_pipe)
{
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	ASSERT_EQ(write(ends[1], "npusim", 6), 6);
	close(ends[1]);
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", ends[0]);
	expect_bytes(path, "npusim", 6);
	close(ends[0]);
}

TEST(input, names_what_cannot_be_read)
{
	g_autofree char *missing = g_build_filename(folder, "missing", NULL);
	expect_error(missing, "cannot be opened: No such file");
	expect_error(folder, "cannot be read: Is a directory");
}

TEST(input, a_file_of_an_unknown_kind_is_named)
{
	static const char *const unknown[] = { "PK\3\4", "npusim-tra", "npusim-tracer 1\n", "2 1\n",
					       "1 of these is text\n" };
	GError *error = NULL;

	for (guint i = 0; i < G_N_ELEMENTS(unknown); i++) {
		g_autofree char *path = write_file(unknown[i], strlen(unknown[i]));
		EXPECT_NULL(trace_open(path, &error));
		ASSERT_NOT_NULL(error);
		EXPECT_EQ(error->code, (int)TRACE_ERROR_UNKNOWN);
		EXPECT_CONTAINS(error->message, path);
		EXPECT_CONTAINS(error->message, "PyTorch");
		g_clear_error(&error);
	}
	g_autofree char *empty = write_file("", 0);
	EXPECT_NULL(trace_open(empty, &error));
	EXPECT_CONTAINS(error->message, "empty");
	g_error_free(error);
}

/* ---- the limit on memory ---- */

/* A /proc and a /sys of its own: files, by path, with their text. */
struct group_case {
	const char *name;
	const char *files[8];
	guint64 bytes; /* of the limit; 0: that of the machine */
};
static const struct group_case group_cases[] = {
	{ "no_groups", { NULL }, 0 },
	{ "v2",
	  { "proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max", "268435456\n" },
	  64 << 20 },
	{ "v2_of_an_outer_group",
	  { "proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max", "max\n",
	    "sys/fs/cgroup/a/memory.max", "134217728\n" },
	  32 << 20 },
	{ "v2_in_a_container",
	  { "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "268435456\n" },
	  64 << 20 },
	{ "v1",
	  { "proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/a\n",
	    "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "268435456\n" },
	  64 << 20 },
	{ "v1_whose_path_is_the_hosts",
	  { "proc/self/cgroup", "2:memory:/docker/0123\n0::/docker/0123\n",
	    "sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n" },
	  64 << 20 },
	{ "v1_without_a_limit",
	  { "proc/self/cgroup", "2:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
	    "9223372036854771712\n" },
	  0 },
	{ "at_least_16_mib",
	  { "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "4096\n" },
	  16 << 20 },
};

TEST_EACH(input, the_limit_is_a_quarter_of_what_the_groups_allow, group_cases, name)
{
	const struct group_case *it = param;
	guint64 machine = (guint64)sysconf(_SC_PHYS_PAGES) * (guint64)sysconf(_SC_PAGESIZE);

	for (guint i = 0; it->files[i]; i += 2) {
		g_autofree char *path = g_build_filename(folder, it->files[i], NULL);
		g_autofree char *in = g_path_get_dirname(path);
		ASSERT_EQ(g_mkdir_with_parents(in, 0755), 0);
		ASSERT_TRUE(g_file_set_contents(path, it->files[i + 1], -1, NULL));
	}
	EXPECT_EQ(memory_limit_default(node_host_limit_bytes(folder)),
		  it->bytes ? it->bytes : machine / 4);
	g_autofree char *remove = g_strdup_printf("rm -r %s/*", folder);
	EXPECT_TRUE(it->files[0] == NULL || system(remove) == 0);
}

TEST(input, what_does_not_fit_is_refused_with_its_part)
{
	GError *error = NULL;

	EXPECT_TRUE(memory_limit_ask(G_MAXUINT64, &error, "all"));
	memory_limit_set(MEMORY_LIMIT_LEAST);
	EXPECT_FALSE(memory_limit_ask(MEMORY_LIMIT_LEAST, &error, "list %d", 7));
	memory_limit_set(0);
	ASSERT_NOT_NULL(error);
	EXPECT_EQ(error->code, (int)TRACE_ERROR_MEMORY);
	EXPECT_CONTAINS(error->message, "list 7: ");
	EXPECT_CONTAINS(error->message, "16.00 MiB that --memory allows");
	g_error_free(error);
}
