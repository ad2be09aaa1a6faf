/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime/base: variables, sizes, messages, the log.
 */
#include "harness/test.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SETUP(env)
{
	for (int i = 0; i < NPU_VAR_COUNT; i++)
		unsetenv(npu_var_info((enum npu_var)i)->name);
}

static const struct size_case {
	const char *label, *text;
	bool valid;
	uint64_t bytes;
} sizes[] = {
	{ "plain", "2097152", true, 2097152 },
	{ "kilo", "4K", true, 4096 },
	{ "mega", "512M", true, UINT64_C(512) << 20 },
	{ "giga_small_letter", "64g", true, UINT64_C(64) << 30 },
	{ "tera_long", "2TiB", true, UINT64_C(2) << 40 },
	{ "largest", "18446744073709551615", true, UINT64_MAX },
	{ "zero", "0", true, 0 },
	{ "too_large", "18446744073709551616", false, 0 },
	{ "too_large_by_unit", "16777216T", false, 0 },
	{ "empty", "", false, 0 },
	{ "negative", "-1", false, 0 },
	{ "blank", " 1", false, 0 },
	{ "no_number", "G", false, 0 },
	{ "fraction", "1.5G", false, 0 },
	{ "other_unit", "1E", false, 0 },
	{ "unit_and_more", "1Gx", false, 0 },
	{ "half_of_long_unit", "1Gi", false, 0 },
};

TEST_EACH(size, parses, sizes, label)
{
	const struct size_case *c = param;
	uint64_t bytes = 77;

	EXPECT_EQ(npu_parse_size(c->text, &bytes), c->valid);
	EXPECT_EQ(bytes, c->valid ? c->bytes : 77);
}

TEST(size, null_is_none)
{
	uint64_t bytes;

	EXPECT_FALSE(npu_parse_size(NULL, &bytes));
}

TEST(size, text_names_the_unit)
{
	EXPECT_STREQ(npu_size_text(2097152), "2097152 (2 MiB)");
	EXPECT_STREQ(npu_size_text(UINT64_C(3) << 30), "3221225472 (3 GiB)");
	EXPECT_STREQ(npu_size_text(1000), "1000");
	EXPECT_STREQ(npu_size_text(1610612736), "1610612736 (about 1.50 GiB)");
	EXPECT_STREQ(npu_size_words(1610612736), "1.50 GiB");
	EXPECT_STREQ(npu_size_words(1023), "1023 B");
	EXPECT_STREQ(npu_size_words(1023.4), "1023 B");
	EXPECT_STREQ(npu_size_words(1023.6), "1.00 KiB");
	EXPECT_STREQ(npu_size_words(-1048575), "-1.00 MiB");
	EXPECT_STREQ(npu_size_text(1073741823), "1073741823 (about 1.00 GiB)");
	EXPECT_STREQ(npu_size_words(-4096), "-4.00 KiB");
	EXPECT_STREQ(npu_size_words(-1000), "-1000 B");
	EXPECT_STREQ(npu_size_words(0), "0 B");
}

TEST(size, what_is_counted_has_its_ending)
{
	EXPECT_STREQ(npu_counted(1, "mapping"), "1 mapping");
	EXPECT_STREQ(npu_counted(0, "mapping"), "0 mappings");
	EXPECT_STREQ(npu_counted(1, "process"), "1 process");
	EXPECT_STREQ(npu_counted(UINT64_MAX, "process"), "18446744073709551615 processes");
}

TEST(size, four_texts_live_at_once)
{
	char all[200];

	snprintf(all, sizeof(all), "%s %s %s %s", npu_size_text(1), npu_size_text(2),
		 npu_size_text(3), npu_size_text(4));
	EXPECT_STREQ(all, "1 2 3 4");
}

TEST(env, table_is_complete)
{
	for (int i = 0; i < NPU_VAR_COUNT; i++) {
		const struct npu_var_info *info = npu_var_info((enum npu_var)i);

		ASSERT_NOT_NULL(info);
		EXPECT_CONTAINS(info->name, "NPUSIM_");
		EXPECT_NE(info->values[0], '\0');
		EXPECT_NE(info->help[0], '\0');
		EXPECT_NOT_NULL(info->initial);
	}
	EXPECT_NULL(npu_var_info(NPU_VAR_COUNT));
}

TEST(env, default_where_unset_or_empty)
{
	bool from_env = true;

	EXPECT_STREQ(npu_var_get(NPU_VAR_CONTRACT, &from_env), "docs");
	EXPECT_FALSE(from_env);
	setenv("NPUSIM_CONTRACT", "", 1);
	EXPECT_STREQ(npu_var_get(NPU_VAR_CONTRACT, &from_env), "docs");
	EXPECT_FALSE(from_env);
	setenv("NPUSIM_CONTRACT", "driver", 1);
	EXPECT_STREQ(npu_var_get(NPU_VAR_CONTRACT, &from_env), "driver");
	EXPECT_TRUE(from_env);
}

static const struct value_case {
	const char *label, *name, *value;
	const char *error; /* a part of it; NULL: valid */
} values[] = {
	{ "backend", "NPUSIM_BACKEND", "sim", NULL },
	{ "backend_unknown", "NPUSIM_BACKEND", "sin", "hw, sim, auto" },
	{ "backend_nearest", "NPUSIM_BACKEND", "sin", "is sim meant?" },
	{ "devices", "NPUSIM_DEVICES", "16", NULL },
	{ "devices_zero", "NPUSIM_DEVICES", "0", "1 to 16" },
	{ "devices_many", "NPUSIM_DEVICES", "17", "1 to 16" },
	{ "devices_text", "NPUSIM_DEVICES", "two", "1 to 16" },
	{ "hbm", "NPUSIM_HBM", "512M", NULL },
	{ "hbm_zero", "NPUSIM_HBM", "0", "a size above 0" },
	{ "host_memory", "NPUSIM_HOST_MEMORY", "64G", NULL },
	{ "host_memory_text", "NPUSIM_HOST_MEMORY", "much", "a size above 0" },
	{ "node", "NPUSIM_NODE", "test-1.x_y", NULL },
	{ "node_path", "NPUSIM_NODE", "../x", "1 to 63" },
	{ "node_long", "NPUSIM_NODE",
	  "0123456789012345678901234567890123456789012345678901234567890123", "1 to 63" },
	{ "window", "NPUSIM_WINDOW", "0x100000000000", NULL },
	{ "window_size", "NPUSIM_WINDOW", "0x200000000+32G", NULL },
	{ "window_size_text", "NPUSIM_WINDOW", "0x1000000000+all", "0x200000000+32G" },
	{ "window_auto", "NPUSIM_WINDOW", "auto", NULL },
	{ "window_text", "NPUSIM_WINDOW", "low", "an address" },
	{ "log", "NPUSIM_LOG", "debug", NULL },
	{ "log_unknown", "NPUSIM_LOG", "verbose", "error, warn, info, debug" },
	{ "leaks", "NPUSIM_LEAKS", "full", NULL },
	{ "leaks_unknown", "NPUSIM_LEAKS", "some", "summary, full, off" },
	{ "patience", "NPUSIM_PATIENCE", "0.5", NULL },
	{ "patience_off", "NPUSIM_PATIENCE", "off", NULL },
	{ "patience_zero", "NPUSIM_PATIENCE", "0", "seconds above 0" },
	{ "report_stderr", "NPUSIM_REPORT_STDERR", "65024:1234567", NULL },
	{ "report_stderr_half", "NPUSIM_REPORT_STDERR", "65024:", "device:inode" },
	{ "report_stderr_text", "NPUSIM_REPORT_STDERR", "tty", "device:inode" },
	{ "patience_text", "NPUSIM_PATIENCE", "10s", "or off" },
	{ "timing_unknown", "NPUSIM_TIMING", "1", "on, off" },
};

TEST_EACH(env, checks, values, label)
{
	const struct value_case *c = param;
	char *error = NULL;

	setenv(c->name, c->value, 1);
	if (c->error == NULL) {
		EXPECT_TRUE(npu_var_check_all(&error));
		EXPECT_NULL(error);
	} else {
		ASSERT_FALSE(npu_var_check_all(&error));
		EXPECT_CONTAINS(error, c->name);
		EXPECT_CONTAINS(error, c->value);
		EXPECT_CONTAINS(error, c->error);
	}
	free(error);
}

static void misspelt(void *arg)
{
	char *error = NULL;

	(void)arg;
	setenv("NPUSIM_BAKEND", "sim", 1);
	setenv("NPUSIM_QUITE_ANOTHER_THING", "1", 1);
	EXPECT_TRUE(npu_var_check_all(&error));
	npu_var_warn_unknown();
	npu_var_warn_unknown();
}

/* How often the last child wrote it. */
static int count_of(const char *text)
{
	int count = 0;

	for (const char *at = harness_last_stderr(); (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

TEST(env, unknown_names_are_warned_of_once)
{
	EXPECT_EXIT(0, misspelt, NULL);
	EXPECT_CONTAINS(harness_last_stderr(),
			"NPUSIM_BAKEND is no variable of npusim; is NPUSIM_BACKEND meant?");
	EXPECT_CONTAINS(harness_last_stderr(),
			"NPUSIM_QUITE_ANOTHER_THING is no variable of npusim");
	EXPECT_NULL(strstr(harness_last_stderr(),
			   "NPUSIM_QUITE_ANOTHER_THING is no variable of npusim; is"));
	EXPECT_EQ(count_of("NPUSIM_BAKEND"), 1);
}

TEST(nearest, knows_when_nothing_is_near)
{
	static const char *const names[] = { "docs", "driver" };

	EXPECT_STREQ(npu_nearest("drivr", names, 2), "driver");
	EXPECT_STREQ(npu_nearest("DOCS", names, 2), "docs");
	EXPECT_NULL(npu_nearest("hardware", names, 2));
	EXPECT_STREQ(npu_meant("drivr", names, 2, "--"), "; is --driver meant?");
	EXPECT_STREQ(npu_meant("hardware", names, 2, "--"), "");
}

TEST(nearest, takes_the_beginning_of_a_name_for_it_where_no_typo_is_nearer)
{
	static const char *const names[] = { "bank_groups", "banks", "sdma_outstanding",
					     "core_outstanding_bytes", "tlb_l1_entries" };

	EXPECT_STREQ(npu_nearest("bank", names, 5), "banks");
	EXPECT_STREQ(npu_nearest("bank_g", names, 5), "bank_groups");
	EXPECT_STREQ(npu_nearest("core_outstanding", names, 5), "core_outstanding_bytes");
	EXPECT_STREQ(npu_nearest("TLB_L1_E", names, 5), "tlb_l1_entries");
	EXPECT_NULL(npu_nearest("tlb_l1", names, 5)); /* not half of it */
}

TEST(message, set_prefix_clear)
{
	npu_message_clear();
	EXPECT_STREQ(npu_message(), "");
	npu_message_set("size=%d is too large", 5);
	npu_message_prefix("%s: ", "call");
	EXPECT_STREQ(npu_message(), "call: size=5 is too large");
	npu_message_set("again: %s", npu_message());
	EXPECT_STREQ(npu_message(), "again: call: size=5 is too large");
	npu_message_clear();
	EXPECT_STREQ(npu_message(), "");
}

TEST(message, is_cut_not_overrun)
{
	char *text = malloc(10001);

	memset(text, 'x', 10000);
	text[10000] = '\0';
	npu_message_set("%s", text);
	EXPECT_EQ(strlen(npu_message()), 4095);
	npu_message_prefix("%s", text);
	EXPECT_EQ(strlen(npu_message()), 4095);
	npu_message_clear();
	free(text);
}

TEST(message, texts_stay_while_others_are_made)
{
	for (int i = 0; i < 100; i++) {
		const char *text = npu_text("%*d", 1 + 7 * i % 500, i);

		for (int n = 0; n < 4; n++)
			EXPECT_EQ(strlen(npu_text("%*s", 600, "")), NPU_TEXT_MAX - 1);
		EXPECT_EQ(atoi(text), i);
	}
}

static void log_to_file(void *path)
{
	setenv("NPUSIM_LOG_FILE", path, 1);
	setenv("NPUSIM_LOG", "info", 1);
	EXPECT_TRUE(npu_log_enabled(NPU_LOG_INFO));
	EXPECT_FALSE(npu_log_enabled(NPU_LOG_DEBUG));
	npu_log(NPU_LOG_INFO, "an info of %d", 3);
	npu_log(NPU_LOG_DEBUG, "a debug");
	npu_log(NPU_LOG_ERROR, "%2000s", "long");
}

TEST(log, file_and_level)
{
	char path[] = "/tmp/npusim-log-XXXXXX", text[4096] = "";
	int fd = mkstemp(path);
	FILE *file;

	ASSERT_GE(fd, 0);
	EXPECT_EXIT(0, log_to_file, path);
	file = fdopen(fd, "r");
	ASSERT_GT(fread(text, 1, sizeof(text) - 1, file), 0);
	EXPECT_CONTAINS(text, "] info: an info of 3\nnpusim[");
	EXPECT_CONTAINS(text, "long\n");
	EXPECT_NULL(strstr(text, "a debug"));
	EXPECT_GT(strlen(text), 2000);
	fclose(file);
	unlink(path);
}

static void log_to_nowhere(void *arg)
{
	(void)arg;
	setenv("NPUSIM_LOG_FILE", "/nonexistent/file", 1);
	npu_log(NPU_LOG_WARN, "still heard");
}

TEST(log, falls_back_to_stderr)
{
	EXPECT_EXIT(0, log_to_nowhere, NULL);
	EXPECT_CONTAINS(harness_last_stderr(),
			"NPUSIM_LOG_FILE=/nonexistent/file cannot be opened");
	EXPECT_CONTAINS(harness_last_stderr(), "warn: still heard");
}

/* ---- reports ---- */

/* fd 2 of each case: the harness's own, or the log's file. */
static const struct report_case {
	const char *label;
	bool same_log, shown; /* fd 2 is the log's file; is NPUSIM_REPORT_STDERR's */
} report_cases[] = {
	{ "captured", false, false },
	{ "shown_already", false, true },
	{ "log_is_stderr", true, false },
};

static const char report_line[] = "npusim[1] error: a report\n";

struct report_files {
	char log[32], report[32];
	const struct report_case *of;
};

static void write_report(void *arg)
{
	const struct report_files *files = arg;
	struct stat err;
	char id[64];

	if (files->of->same_log)
		dup2(open(files->log, O_WRONLY | O_APPEND), STDERR_FILENO);
	fstat(STDERR_FILENO, &err);
	snprintf(id, sizeof(id), "%llu:%llu", (unsigned long long)err.st_dev,
		 (unsigned long long)err.st_ino + !files->of->shown);
	setenv("NPUSIM_LOG_FILE", files->log, 1);
	setenv("NPUSIM_REPORT_FILE", files->report, 1);
	setenv("NPUSIM_REPORT_STDERR", id, 1);
	npu_log_enabled(NPU_LOG_ERROR);
	setenv("NPUSIM_REPORT_FILE", "/nonexistent/file", 1); /* read once */
	errno = EDOM;
	npu_report_write(report_line, strlen(report_line));
	EXPECT_EQ(errno, EDOM);
}

static void expect_file(char *path, const char *wanted)
{
	char text[256] = "";
	int fd = open(path, O_RDONLY);

	EXPECT_GE(read(fd, text, sizeof(text) - 1), 0);
	EXPECT_STREQ(text, wanted);
	close(fd);
	unlink(path);
}

TEST_EACH(report, goes_to_each_file_once, report_cases, label)
{
	const struct report_case *c = param;
	struct report_files files = { "/tmp/npusim-log-XXXXXX", "/tmp/npusim-report-XXXXXX", c };

	close(mkstemp(files.log));
	close(mkstemp(files.report));
	EXPECT_EXIT(0, write_report, &files);
	if (!c->same_log)
		EXPECT_STREQ(harness_last_stderr(), report_line);
	expect_file(files.log, report_line);
	expect_file(files.report, c->shown ? "" : report_line);
}
