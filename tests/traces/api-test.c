/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim/trace.h as a program outside has it, linked with libnpusim-trace.so: what is written is
 * read back equal, and what cannot be written or read is refused in words.
 */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "npusim/trace.h"

static char *folder, *path;

SETUP(api)
{
	folder = g_dir_make_tmp("npusim-api-XXXXXX", NULL);
	ASSERT_NOT_NULL(folder);
	path = g_build_filename(folder, "trace.npt", NULL);
}

TEARDOWN(api)
{
	g_autofree char *packed = g_strconcat(path, ".gz", NULL);
	g_unlink(path);
	g_unlink(packed);
	g_rmdir(folder);
	g_clear_pointer(&path, g_free);
	g_clear_pointer(&folder, g_free);
}

/* ---- records ---- */

/* What each verb needs, as FORMAT.md has it: written down here once more. */
struct need {
	const char *word;
	char kind;
	guint32 has;
};
#define H(what) NPU_TRACE_HAS_##what
static const struct need needs[NPU_TRACE_VERB_COUNT] = {
	[NPU_TRACE_DEVICE_SET] = { "device", 0, H(DEVICE) },
	[NPU_TRACE_DEVICE_RESET] = { "device", 0, H(DEVICE) },
	[NPU_TRACE_RESERVE] = { "reserve", 'r', H(SIZE) },
	[NPU_TRACE_UNRESERVE] = { "unreserve", 'r', 0 },
	[NPU_TRACE_CREATE] = { "create", 'h', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_RELEASE] = { "release", 'h', 0 },
	[NPU_TRACE_RETAIN] = { "retain", 'h', H(AT) },
	[NPU_TRACE_MAP] = { "map", 'r', H(SIZE) | H(HANDLE) },
	[NPU_TRACE_UNMAP] = { "unmap", 'r', 0 },
	[NPU_TRACE_ACCESS] = { "access", 'r', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_EXPORT] = { "export", 's', H(HANDLE) },
	[NPU_TRACE_IMPORT] = { "import", 'h', H(SHARE) | H(DEVICE) },
	[NPU_TRACE_MALLOC] = { "malloc", 'a', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_MFREE] = { "mfree", 'a', 0 },
	[NPU_TRACE_COPY] = { "copy", 0, H(SIZE) },
	[NPU_TRACE_FILL] = { "fill", 0, H(SIZE) },
	[NPU_TRACE_CALL] = { "call", 0, 0 },
	[NPU_TRACE_SEGMENT_ALLOC] = { "segment_alloc", 'a', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_SEGMENT_FREE] = { "segment_free", 'a', H(DEVICE) },
	[NPU_TRACE_SEGMENT_MAP] = { "segment_map", 'r', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_SEGMENT_UNMAP] = { "segment_unmap", 'r', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_ALLOC] = { "alloc", 'b', H(SIZE) | H(DEVICE) },
	[NPU_TRACE_FREE] = { "free", 'b', H(DEVICE) },
	[NPU_TRACE_FREE_REQUESTED] = { "free", 'b', H(DEVICE) },
	[NPU_TRACE_OOM] = { "oom", 0, H(SIZE) | H(DEVICE) },
	[NPU_TRACE_NOTE] = { "note", 0, H(DEVICE) },
};
static const char *const texts[] = {
	"aclrtMemP2PMap",       "",       "a b=c%20 \t=>", "\x7f\x01", "train.py:12 (forward)",
	"\xc3\xa9\xe2\x82\xac", "%%%zz%",
};

static guint64 any64(GRand *dice)
{
	guint64 bits = (guint64)g_rand_int(dice) << 32 | g_rand_int(dice);
	return bits >> g_rand_int_range(dice, 0, 64);
}

static struct npu_trace_name any_name(GRand *dice, char kind)
{
	struct npu_trace_name name = { .kind = kind, .number = g_rand_int(dice) };
	if (kind != NPU_TRACE_NAME_HOST && g_rand_boolean(dice))
		name.offset = any64(dice);
	if (kind == NPU_TRACE_NAME_HOST)
		name.number = 0;
	return name;
}

static struct npu_trace_name any_place(GRand *dice)
{
	return any_name(dice, "ra-"[g_rand_int_range(dice, 0, 3)]);
}

/* Fields of bits that are not set stay 0, as the reader leaves them. */
static struct npu_trace_record any_record(GRand *dice)
{
	static const guint32 pages[] = { 12, 21, 30 };
	struct npu_trace_record r = { .verb = (guint32)g_rand_int_range(dice, 0,
									NPU_TRACE_VERB_COUNT) };
	const struct need *need = &needs[r.verb];
	gboolean event = r.verb >= NPU_TRACE_SEGMENT_ALLOC;

	r.has = g_rand_int(dice) & (2u * H(SMALL) - 1) & ~(guint32)(H(NAME) | H(OP));
	r.has |= need->has;
	if ((r.verb == NPU_TRACE_CALL || r.verb == NPU_TRACE_NOTE) && g_rand_boolean(dice))
		r.has |= H(OP);
	if (g_rand_int_range(dice, 0, 4) == 0)
		r.code = g_rand_int_range(dice, 1, G_MAXINT32);
	if (need->kind || g_rand_boolean(dice)) {
		r.has |= H(NAME);
		r.name = any_name(dice, need->kind == 0 ? "rhsab-"[g_rand_int_range(dice, 0, 6)]
					: r.code && g_rand_boolean(dice) ? NPU_TRACE_NAME_HOST
									 : need->kind);
	}
#define SET(bit, field, value)             \
	do {                               \
		if (r.has & H(bit))        \
			r.field = (value); \
	} while (0)
	SET(HOST_NS, host_ns, any64(dice));
	SET(SIMULATED, simulated_ps, any64(dice));
	SET(THREAD, process, g_rand_int(dice));
	SET(THREAD, thread, g_rand_int(dice));
	SET(SIZE, size, any64(dice));
	SET(DEVICE, device,
	    r.code ? (gint64)g_rand_int(dice) : g_rand_int_range(dice, event ? 0 : -1, 1024));
	r.page_lg2 = 21;
	SET(PAGE, page_lg2, pages[g_rand_int_range(dice, 0, 3)]);
	SET(HANDLE, handle, any_name(dice, "h-"[g_rand_int_range(dice, 0, 2)]));
	SET(SHARE, share, any_name(dice, "s-"[g_rand_int_range(dice, 0, 2)]));
	SET(AT, at, any_place(dice));
	SET(FROM, from, any_place(dice));
	SET(ALIGN, align, any64(dice));
	SET(HINT, hint, any64(dice));
	SET(FLAGS, flags, any64(dice));
	SET(ROUNDED, rounded, any64(dice));
	SET(VA, va, any64(dice));
	SET(KEY, key, any64(dice));
	SET(STREAM, stream, any64(dice));
	SET(FREE, free_bytes, any64(dice));
	SET(TYPE, type, any64(dice));
	SET(OP, op, texts[g_rand_int_range(dice, 0, G_N_ELEMENTS(texts))]);
	SET(SITE, site, texts[g_rand_int_range(dice, 0, G_N_ELEMENTS(texts))]);
	return r;
}

static void expect_name(const struct npu_trace_name *got, const struct npu_trace_name *wanted)
{
	EXPECT_EQ(got->kind, wanted->kind);
	EXPECT_EQ(got->number, wanted->number);
	EXPECT_EQ(got->offset, wanted->offset);
}

static void expect_record(const struct npu_trace_record *got, const struct npu_trace_record *wanted)
{
	EXPECT_EQ(got->has, wanted->has);
	EXPECT_EQ(got->verb, wanted->verb);
	EXPECT_EQ(got->code, wanted->code);
	EXPECT_EQ(got->host_ns, wanted->host_ns);
	EXPECT_EQ(got->simulated_ps, wanted->simulated_ps);
	EXPECT_EQ(got->process, wanted->process);
	EXPECT_EQ(got->thread, wanted->thread);
	EXPECT_EQ(got->device, wanted->device);
	EXPECT_EQ(got->page_lg2, wanted->page_lg2);
	expect_name(&got->name, &wanted->name);
	expect_name(&got->handle, &wanted->handle);
	expect_name(&got->share, &wanted->share);
	expect_name(&got->at, &wanted->at);
	expect_name(&got->from, &wanted->from);
	EXPECT_EQ(got->size, wanted->size);
	EXPECT_EQ(got->align, wanted->align);
	EXPECT_EQ(got->hint, wanted->hint);
	EXPECT_EQ(got->flags, wanted->flags);
	EXPECT_EQ(got->rounded, wanted->rounded);
	EXPECT_EQ(got->va, wanted->va);
	EXPECT_EQ(got->key, wanted->key);
	EXPECT_EQ(got->stream, wanted->stream);
	EXPECT_EQ(got->free_bytes, wanted->free_bytes);
	EXPECT_EQ(got->type, wanted->type);
	EXPECT_STREQ(got->op, wanted->op);
	EXPECT_STREQ(got->site, wanted->site);
}

/* ---- files ---- */

static struct npu_trace_writer *writer(const char *file, unsigned flags)
{
	char *error = NULL;
	struct npu_trace_writer *w = npu_trace_writer_open(file, flags, &error);
	if (w == NULL)
		ADD_FAILURE("%s", error);
	free(error);
	return w;
}

static struct npu_trace_reader *reader(const char *file)
{
	char *error = NULL;
	struct npu_trace_reader *r = npu_trace_reader_open(file, &error);
	if (r == NULL)
		ADD_FAILURE("%s", error);
	free(error);
	return r;
}

static void put(struct npu_trace_writer *w, const struct npu_trace_record *record)
{
	char *error = NULL;
	EXPECT_EQ(npu_trace_writer_put(w, record, &error), 0);
	if (error)
		ADD_FAILURE("%s", error);
	free(error);
}

/* Writes `count` random records to a file and reads them back. */
static void round_trip(const char *file, unsigned flags, guint count)
{
	GRand *dice = g_rand_new_with_seed(count);
	g_autofree struct npu_trace_record *records = g_new(struct npu_trace_record, count);
	struct npu_trace_writer *w = writer(file, flags);
	struct npu_trace_record got;
	struct npu_trace_reader *r;

	ASSERT_NOT_NULL(w);
	for (guint i = 0; i < count; i++) {
		records[i] = any_record(dice);
		put(w, &records[i]);
	}
	g_rand_free(dice);
	EXPECT_EQ(npu_trace_writer_close(w, NULL), 0);
	r = reader(file);
	ASSERT_NOT_NULL(r);
	for (int pass = 0; pass < 2; pass++) {
		for (guint i = 0; i < count && !harness_has_failed(); i++) {
			ASSERT_EQ(npu_trace_reader_next(r, &got), 1);
			EXPECT_EQ(got.line, i + 2u);
			expect_record(&got, &records[i]);
		}
		EXPECT_EQ(npu_trace_reader_next(r, &got), 0);
		EXPECT_FALSE(npu_trace_reader_truncated(r));
		EXPECT_EQ(npu_trace_reader_skipped(r), 0u);
		EXPECT_EQ(npu_trace_reader_rewind(r), 0);
	}
	npu_trace_reader_close(r);
}

TEST(api, random_records_come_back_equal)
{
	round_trip(path, 0, 3000);
}

TEST(api, random_records_come_back_equal_through_a_buffer)
{
	round_trip(path, NPU_TRACE_WRITER_BUFFERED, 20000);
}

TEST(api, random_records_come_back_equal_through_gzip)
{
	g_autofree char *packed = g_strconcat(path, ".gz", NULL);
	g_autofree char *text = NULL;
	round_trip(packed, 0, 5000);
	ASSERT_TRUE(g_file_get_contents(packed, &text, NULL, NULL));
	EXPECT_MEMEQ(text, "\x1f\x8b", 2);
}

/* Each verb with what it needs and no more: the word of FORMAT.md, and back. */
TEST(api, every_verb_is_written_and_read)
{
	for (guint v = 0; v < NPU_TRACE_VERB_COUNT; v++) {
		struct npu_trace_record record = { .verb = v, .size = 4096, .page_lg2 = 21 }, got;
		char line[256];
		record.name = (struct npu_trace_name){ .kind = needs[v].kind, .number = 1 };
		record.handle = (struct npu_trace_name){ .kind = 'h', .number = 2 };
		record.share = (struct npu_trace_name){ .kind = 's', .number = 3 };
		record.at = (struct npu_trace_name){ .kind = 'r', .number = 4, .offset = 5 };
		int length = npu_trace_line(&record, line, sizeof line, NULL);
		ASSERT_GT(length, 0);
		EXPECT_EQ(strlen(line), (gsize)length);
		EXPECT_EQ(line[length - 1], '\n');
		EXPECT_STREQ(npu_trace_verb_name((enum npu_trace_verb)v), needs[v].word);
		EXPECT_TRUE(g_str_has_prefix(line, needs[v].word));
		g_autofree char *text = g_strconcat("npusim-trace 1\n", line, NULL);
		struct npu_trace_reader *r =
			npu_trace_reader_open_bytes(text, strlen(text), "text", NULL);
		ASSERT_NOT_NULL(r);
		ASSERT_EQ(npu_trace_reader_next(r, &got), 1);
		EXPECT_EQ(got.verb, v);
		EXPECT_EQ(got.has, needs[v].has | (needs[v].kind ? (guint32)H(NAME) : 0));
		EXPECT_EQ(npu_trace_reader_next(r, &got), 0);
		npu_trace_reader_close(r);
	}
	EXPECT_NULL(npu_trace_verb_name(NPU_TRACE_VERB_COUNT));
}

TEST(api, lines_are_those_of_the_format)
{
	char line[256];
	struct npu_trace_record map = { .verb = NPU_TRACE_MAP,
					.has = H(HOST_NS) | H(SIMULATED) | H(THREAD),
					.host_ns = 1322,
					.simulated_ps = 131000000,
					.process = 1,
					.thread = 1,
					.size = 20971520,
					.name = { .kind = 'r', .number = 1 },
					.handle = { .kind = 'h', .number = 1 } };
	struct npu_trace_record copy = { .verb = NPU_TRACE_COPY,
					 .has = H(AT) | H(FROM),
					 .size = 4,
					 .at = { .kind = 'a', .number = 2, .offset = 16 },
					 .from = { .kind = NPU_TRACE_NAME_HOST },
					 .code = 107000 };
	ASSERT_GT(npu_trace_line(&map, line, sizeof line, NULL), 0);
	EXPECT_STREQ(line, "@1322 ~131000000 :1.1 map r1+0 size=20971520 handle=h1\n");
	ASSERT_GT(npu_trace_line(&copy, line, sizeof line, NULL), 0);
	EXPECT_STREQ(line, "copy size=4 dst=a2+16 src=host => 107000\n");
}

struct bad_record {
	const char *name;
	struct npu_trace_record record;
	const char *says;
};
#define NAMED(kind_) .name = { .kind = (kind_), .number = 1 }
static const struct bad_record bad_records[] = {
	{ "verb", { .verb = NPU_TRACE_VERB_COUNT }, "none of enum npu_trace_verb" },
	{ "no_name", { .verb = NPU_TRACE_UNMAP }, "name" },
	{ "wrong_kind", { .verb = NPU_TRACE_RELEASE, NAMED('r') }, "release needs a name hN" },
	{ "host_and_no_failure",
	  { .verb = NPU_TRACE_RELEASE, NAMED(NPU_TRACE_NAME_HOST) },
	  "release needs a name hN" },
	{ "handle", { .verb = NPU_TRACE_MAP, NAMED('r') }, "handle" },
	{ "at", { .verb = NPU_TRACE_RETAIN, NAMED('h') }, "at is no name" },
	{ "share", { .verb = NPU_TRACE_IMPORT, NAMED('h') }, "share" },
	{ "device_number", { .verb = NPU_TRACE_CREATE, NAMED('h'), .device = 1024 }, "1023" },
	{ "device_below", { .verb = NPU_TRACE_CREATE, NAMED('h'), .device = -2 }, "device" },
	{ "event_on_the_host", { .verb = NPU_TRACE_ALLOC, NAMED('b'), .device = -1 }, "a device" },
	{ "page",
	  { .verb = NPU_TRACE_CREATE, NAMED('h'), .has = H(PAGE), .page_lg2 = 13 },
	  "page" },
	{ "code", { .verb = NPU_TRACE_CALL, .code = -1 }, "negative" },
	{ "op_null", { .verb = NPU_TRACE_CALL, .has = H(OP) }, "op is NULL" },
	{ "op_elsewhere", { .verb = NPU_TRACE_COPY, .has = H(OP), .op = "x" }, "no other verb" },
	{ "site_null", { .verb = NPU_TRACE_CALL, .has = H(SITE) }, "site is NULL" },
};

TEST_EACH(api, writer_refuses, bad_records, name)
{
	const struct bad_record *bad = param;
	struct npu_trace_writer *w = writer(path, 0);
	g_autofree char *text = NULL;
	char *error = NULL;

	ASSERT_NOT_NULL(w);
	EXPECT_EQ(npu_trace_writer_put(w, &bad->record, &error), -EINVAL);
	ASSERT_NOT_NULL(error);
	EXPECT_CONTAINS(error, bad->says);
	free(error);
	EXPECT_EQ(npu_trace_writer_put(w, &bad->record, NULL), -EINVAL);
	EXPECT_EQ(npu_trace_writer_close(w, NULL), 0);
	ASSERT_TRUE(g_file_get_contents(path, &text, NULL, NULL));
	EXPECT_STREQ(text, "npusim-trace 1\n");
}

TEST(api, a_line_is_64_kib_at_most)
{
	g_autofree char *longest = g_strnfill(NPU_TRACE_LINE_MAX, 'x');
	struct npu_trace_record record = { .verb = NPU_TRACE_CALL, .has = H(OP), .op = longest };
	struct npu_trace_record got;
	struct npu_trace_writer *w = writer(path, 0);
	gsize fits = NPU_TRACE_LINE_MAX - strlen("call op=\n") - 1;
	char *error = NULL;

	ASSERT_NOT_NULL(w);
	EXPECT_EQ(npu_trace_writer_put(w, &record, &error), -E2BIG);
	EXPECT_CONTAINS(error, "64 KiB");
	free(error);
	EXPECT_EQ(npu_trace_writer_info(w, "about", longest, NULL), -E2BIG);
	longest[fits] = '\0';
	put(w, &record);
	EXPECT_EQ(npu_trace_writer_close(w, NULL), 0);
	struct npu_trace_reader *r = reader(path);
	ASSERT_NOT_NULL(r);
	ASSERT_EQ(npu_trace_reader_next(r, &got), 1);
	EXPECT_EQ(strlen(got.op), fits);
	npu_trace_reader_close(r);
}

/* ---- info lines ---- */

static void expect_info(struct npu_trace_reader *r, gsize index, guint32 process, const char *key,
			const char *value)
{
	uint32_t p;
	const char *k, *v;
	ASSERT_TRUE(npu_trace_reader_info(r, index, &p, &k, &v));
	EXPECT_EQ(p, process);
	EXPECT_STREQ(k, key);
	EXPECT_STREQ(v, value);
}

TEST(api, info_may_stand_anywhere)
{
	static const char text[] = "npusim-trace 1\ninfo process=2 soc=A%20B devices=8\n"
				   "call op=x\ninfo soc=C nothing\n";
	struct npu_trace_reader *r = npu_trace_reader_open_bytes(text, strlen(text), "text", NULL);
	struct npu_trace_record got;
	uint32_t p;
	const char *k, *v;

	ASSERT_NOT_NULL(r);
	EXPECT_NULL(npu_trace_reader_info_of(r, "soc"));
	EXPECT_EQ(npu_trace_reader_next(r, &got), 1);
	EXPECT_FALSE(npu_trace_reader_info(r, 2, &p, &k, &v));
	EXPECT_EQ(npu_trace_reader_next(r, &got), 0);
	expect_info(r, 0, 2, "soc", "A B");
	expect_info(r, 1, 2, "devices", "8");
	expect_info(r, 2, 0, "soc", "C");
	EXPECT_FALSE(npu_trace_reader_info(r, 3, &p, &k, &v));
	EXPECT_STREQ(npu_trace_reader_info_of(r, "soc"), "A B");
	npu_trace_reader_close(r);
}

TEST(api, info_is_written_with_any_bytes)
{
	struct npu_trace_writer *w = writer(path, 0);
	struct npu_trace_record got;
	char *error = NULL;

	ASSERT_NOT_NULL(w);
	EXPECT_EQ(npu_trace_writer_info(w, "about", "a = b\n%41 \x7f", NULL), 0);
	EXPECT_EQ(npu_trace_writer_info(w, "no key", "x", &error), -EINVAL);
	EXPECT_CONTAINS(error, "no key");
	free(error);
	EXPECT_EQ(npu_trace_writer_info(w, "", "x", NULL), -EINVAL);
	EXPECT_EQ(npu_trace_writer_close(w, NULL), 0);
	struct npu_trace_reader *r = reader(path);
	ASSERT_NOT_NULL(r);
	EXPECT_EQ(npu_trace_reader_next(r, &got), 0);
	EXPECT_STREQ(npu_trace_reader_info_of(r, "about"), "a = b\n%41 \x7f");
	npu_trace_reader_close(r);
}

/* ---- errors ---- */

TEST(api, errors_name_file_and_line)
{
	static const char text[] = "npusim-trace 1\ncall op=x\nreserve r1\n";
	struct npu_trace_reader *r =
		npu_trace_reader_open_bytes(text, strlen(text), "some.npt", NULL);
	struct npu_trace_record got;

	ASSERT_NOT_NULL(r);
	EXPECT_STREQ(npu_trace_reader_error(r), "");
	EXPECT_EQ(npu_trace_reader_next(r, &got), 1);
	EXPECT_EQ(npu_trace_reader_next(r, &got), -1);
	EXPECT_STREQ(npu_trace_reader_error(r), "some.npt: line 3: reserve needs size=");
	EXPECT_EQ(npu_trace_reader_rewind(r), 0);
	EXPECT_EQ(npu_trace_reader_next(r, &got), 1);
	npu_trace_reader_close(r);
}

TEST(api, what_is_no_trace_is_not_opened)
{
	static const char version[] = "npusim-trace 9\n";
	char *error = NULL;

	EXPECT_NULL(npu_trace_reader_open_bytes(version, strlen(version), "v", &error));
	EXPECT_CONTAINS(error, "v: line 1: the format's version is 9");
	free(error);
	EXPECT_NULL(npu_trace_reader_open(path, &error));
	EXPECT_CONTAINS(error, path);
	EXPECT_CONTAINS(error, "No such file");
	free(error);
	EXPECT_NULL(npu_trace_reader_open(folder, NULL));
	EXPECT_NULL(npu_trace_reader_open_fd(-1, "nobody", &error));
	EXPECT_CONTAINS(error, "nobody");
	free(error);
	npu_trace_reader_close(NULL);
}

TEST(api, what_cannot_be_written_is_told)
{
	struct npu_trace_record record = { .verb = NPU_TRACE_CALL };
	char *error = NULL;

	EXPECT_NULL(npu_trace_writer_open(folder, 0, &error));
	EXPECT_CONTAINS(error, "Is a directory");
	free(error);
	EXPECT_NULL(npu_trace_writer_open(path, NPU_TRACE_WRITER_APPEND, &error));
	EXPECT_CONTAINS(error, "No such file");
	free(error);
	EXPECT_NULL(npu_trace_writer_open("x.npt.gz", NPU_TRACE_WRITER_APPEND, &error));
	EXPECT_CONTAINS(error, "only plain");
	free(error);
	EXPECT_NULL(npu_trace_writer_open("/dev/full", 0, &error));
	EXPECT_CONTAINS(error, "No space left");
	free(error);
	struct npu_trace_writer *w = writer("/dev/full", NPU_TRACE_WRITER_BUFFERED);
	ASSERT_NOT_NULL(w);
	put(w, &record);
	EXPECT_EQ(npu_trace_writer_close(w, &error), -ENOSPC);
	EXPECT_CONTAINS(error, "/dev/full");
	free(error);
	EXPECT_EQ(npu_trace_writer_close(NULL, NULL), 0);
}

TEST(api, reads_a_file_descriptor_and_a_pipe)
{
	struct npu_trace_record got;
	int ends[2];

	ASSERT_EQ(pipe(ends), 0);
	ASSERT_EQ(write(ends[1], "npusim-trace 1\ncall op=a\ncall op", 32), 32);
	close(ends[1]);
	struct npu_trace_reader *r = npu_trace_reader_open_fd(ends[0], "pipe", NULL);
	ASSERT_NOT_NULL(r);
	for (int pass = 0; pass < 2; pass++) {
		EXPECT_EQ(npu_trace_reader_next(r, &got), 1);
		EXPECT_STREQ(got.op, "a");
		EXPECT_EQ(npu_trace_reader_next(r, &got), 0);
		EXPECT_TRUE(npu_trace_reader_truncated(r));
		EXPECT_EQ(npu_trace_reader_rewind(r), 0);
	}
	npu_trace_reader_close(r);
}

/* ---- threads, processes ---- */

#define THREADS 4
#define EACH    2000

static void *write_lines(void *arg)
{
	struct npu_trace_writer *w = arg;
	static _Atomic guint32 next;
	guint32 thread = ++next;

	for (guint64 i = 1; i <= EACH; i++) {
		struct npu_trace_record record = { .verb = NPU_TRACE_FILL,
						   .has = H(HOST_NS) | H(THREAD),
						   .host_ns = npu_trace_writer_now_ns(w),
						   .process = 1,
						   .thread = thread,
						   .size = i };
		if (npu_trace_writer_put(w, &record, NULL) != 0)
			return w;
	}
	return NULL;
}

TEST(api, threads_write_whole_lines_in_their_order)
{
	GHashTable *last = g_hash_table_new(NULL, NULL);
	struct npu_trace_writer *w = writer(path, 0);
	struct npu_trace_record got;
	pthread_t threads[THREADS];
	guint count = 0;
	int more;

	ASSERT_NOT_NULL(w);
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, write_lines, w), 0);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		EXPECT_NULL(result);
	}
	EXPECT_EQ(npu_trace_writer_close(w, NULL), 0);
	struct npu_trace_reader *r = reader(path);
	ASSERT_NOT_NULL(r);
	for (; (more = npu_trace_reader_next(r, &got)) > 0; count++) {
		gpointer key = GUINT_TO_POINTER(got.thread);
		ASSERT_EQ(got.size, GPOINTER_TO_UINT(g_hash_table_lookup(last, key)) + 1u);
		g_hash_table_insert(last, key, GUINT_TO_POINTER((guint)got.size));
	}
	EXPECT_EQ(more, 0);
	EXPECT_EQ(count, (guint)(THREADS * EACH));
	npu_trace_reader_close(r);
	g_hash_table_unref(last);
}

TEST(api, appends_beside_another_writer)
{
	struct npu_trace_record record = { .verb = NPU_TRACE_CALL, .has = H(OP), .op = "one" }, got;
	struct npu_trace_writer *first = writer(path, 0);
	struct npu_trace_writer *second = writer(path, NPU_TRACE_WRITER_APPEND);

	ASSERT_NOT_NULL(first);
	ASSERT_NOT_NULL(second);
	put(first, &record);
	record.op = "two";
	put(second, &record);
	record.op = "three";
	put(first, &record);
	struct npu_trace_reader *r = reader(path);
	ASSERT_NOT_NULL(r);
	for (int i = 0; i < 3; i++) {
		static const char *const ops[] = { "one", "two", "three" };
		ASSERT_EQ(npu_trace_reader_next(r, &got), 1);
		EXPECT_STREQ(got.op, ops[i]);
	}
	EXPECT_EQ(npu_trace_reader_next(r, &got), 0);
	npu_trace_reader_close(r);
	EXPECT_EQ(npu_trace_writer_close(first, NULL), 0);
	EXPECT_EQ(npu_trace_writer_close(second, NULL), 0);
}

/* A process that is killed while it writes leaves whole lines, and each that was put. */
TEST(api, what_was_put_stays_when_the_process_is_killed)
{
	for (int round = 0; round < 10; round++) {
		int ends[2];
		char put_count = 0;
		guint64 seen = 0, last = 0;
		struct npu_trace_record got;
		int more;

		ASSERT_EQ(pipe(ends), 0);
		pid_t pid = fork();
		if (pid == 0) {
			struct npu_trace_writer *w = npu_trace_writer_open(path, 0, NULL);
			struct npu_trace_record record = { .verb = NPU_TRACE_FILL };
			for (;;) {
				record.size++;
				if (npu_trace_writer_put(w, &record, NULL) != 0 ||
				    (record.size % 100 == 0 && write(ends[1], "x", 1) != 1))
					_exit(1);
			}
		}
		close(ends[1]);
		for (int i = 0; i <= round && read(ends[0], &put_count, 1) == 1; i++)
			seen += 100;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while (read(ends[0], &put_count, 1) == 1)
			seen += 100;
		close(ends[0]);
		struct npu_trace_reader *r = reader(path);
		ASSERT_NOT_NULL(r);
		while ((more = npu_trace_reader_next(r, &got)) > 0)
			ASSERT_EQ(got.size, ++last);
		EXPECT_EQ(more, 0);
		EXPECT_GE(last, seen);
		EXPECT_GT(seen, 0u);
		npu_trace_reader_close(r);
	}
}
