/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim check: runs the conformance cases on a driver, device by device, compares the answers
 * with the model, and records everything that is needed to analyse them elsewhere.
 */
#include "check/check.h"

#include "npusim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config.h"
#include "format/out-file.h"

#define LATENCY_DEFAULT (G_GUINT64_CONSTANT(4) << 30)
#define MEMORY_DEFAULT  (G_GUINT64_CONSTANT(1) << 30) /* of a driver's device, without --full */
#define LATENCY_LEAST   (G_GUINT64_CONSTANT(2) << 20)

static struct {
	char *against, *format, *output, *record, *safe, *most, *latency, *only, *library, *cases;
	int device;
	gboolean full, driver, list;
} opt;

static const GOptionEntry entries[] = {
	{ "against", 0, 0, G_OPTION_ARG_STRING, &opt.against,
	  "run the cases on this backend as well, and report where the answers differ", "BACKEND" },
	{ "format", 0, 0, G_OPTION_ARG_STRING, &opt.format, "table (default), tap or junit", "F" },
	{ "output", 'o', 0, G_OPTION_ARG_FILENAME, &opt.output, "write the report to FILE",
	  "FILE" },
	{ "record", 0, 0, G_OPTION_ARG_FILENAME, &opt.record,
	  "keep environment, versions, devices, every call and its time in DIR, to be sent to "
	  "somebody",
	  "DIR" },
	{ "safe", 0, 0, G_OPTION_ARG_STRING, &opt.safe,
	  "one device only, and never more than SIZE of its memory", "SIZE" },
	{ "max-memory", 0, 0, G_OPTION_ARG_STRING, &opt.most,
	  "never more than SIZE of a device's memory; 1G on a driver without --full", "SIZE" },
	{ "device", 0, 0, G_OPTION_ARG_INT, &opt.device,
	  "this device only, others' memory on it or not", "N" },
	{ "full", 0, 0, G_OPTION_ARG_NONE, &opt.full, "also cases that fill a device's memory",
	  NULL },
	{ "latency", 0, 0, G_OPTION_ARG_FILENAME, &opt.latency,
	  "measure how long calls take, and write a profile for the model to FILE", "FILE" },
	{ "only", 0, 0, G_OPTION_ARG_STRING, &opt.only,
	  "cases whose SUITE.NAME has PATTERN in it, or fits it where it has * or ?", "PATTERN" },
	{ "list", 0, 0, G_OPTION_ARG_NONE, &opt.list, "name the cases, and run none", NULL },
	{ "library", 0, 0, G_OPTION_ARG_FILENAME, &opt.library,
	  "check this libascendcl.so, CANN's own say, instead of npusim's", "FILE" },
	{ "cases", 0, 0, G_OPTION_ARG_FILENAME, &opt.cases, "folder of the cases", "DIR" },
	{ NULL, 0, 0, 0, NULL, NULL, NULL },
};

typedef void report_writer(GString *out, const struct check_report *report);
struct check {
	char *library, *folder;
	const char *backend;
	report_writer *write;
	guint64 most_bytes; /* of one device at a time; 0: no limit */
	GPtrArray *cases;   /* of struct test_case */
	struct check_server server;
	struct check_report report;
};

/* By the name of --format, and in the file of a record. */
static const struct {
	const char *name, *file;
	report_writer *write;
} formats[] = { { "table", "report.txt", check_report_table },
		{ "tap", NULL, check_report_tap },
		{ "junit", "report.xml", check_report_junit },
		{ NULL, "steps.tsv", check_report_calls } };

/* ---- options ---- */

static gboolean read_format(struct check *check, GError **error)
{
	for (gsize i = 0; formats[i].name != NULL; i++) {
		if (opt.format == NULL || strcmp(opt.format, formats[i].name) == 0) {
			check->write = formats[i].write;
			return TRUE;
		}
	}
	return refuse_option(error, "--format=%s: it is table, tap or junit", opt.format);
}

static gboolean read_options(struct check *check, GError **error)
{
	const char *most = opt.safe != NULL ? opt.safe : opt.most;

	if (most != NULL &&
	    (!npu_parse_size(most, &check->most_bytes) || check->most_bytes < LATENCY_LEAST))
		return refuse_option(error, "--%s=%s: it is a size of at least 2M, such as 1G",
				     opt.safe != NULL ? "safe" : "max-memory", most);
	if (opt.safe != NULL && opt.full)
		return refuse_option(error, "--safe and --full are opposites: give one");
	if (opt.against != NULL && strcmp(opt.against, "sim") != 0 &&
	    strcmp(opt.against, "hw") != 0)
		return refuse_option(error, "--against=%s: it is sim or hw", opt.against);
	return read_format(check, error);
}

/* Installed beside this command, or in the tree that it was built from. */
static char *find_cases(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *bin = self != NULL ? g_path_get_dirname(self) : g_strdup(".");

	if (opt.cases != NULL)
		return g_strdup(opt.cases);
	if (g_str_has_prefix(bin, NPUSIM_BUILD_ROOT))
		return g_strdup(NPUSIM_CHECK_CASES);
	return g_build_filename(bin, "..", "share", "npusim", "cases", "acl", NULL);
}

/* ---- cases ---- */

/* The program of a case sees this device as its 0, and those after it. */
static void show_devices_from(unsigned device, unsigned devices)
{
	g_autoptr(GString) list = g_string_new(NULL);

	for (unsigned d = device; d < devices; d++)
		g_string_append_printf(list, "%s%u", d > device ? "," : "", d);
	if (device == 0)
		g_unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	else
		g_setenv("ASCEND_RT_VISIBLE_DEVICES", list->str, TRUE);
}

static void fresh_node(const char *backend)
{
	g_autofree char *name = own_node_name("check");

	g_setenv("NPUSIM_NODE", name, TRUE);
	g_setenv("NPUSIM_BACKEND", backend, TRUE);
}

static gboolean is_wanted(const struct test_case *test)
{
	g_autofree char *name = g_strdup_printf("%s.%s", test->suite, test->name);

	if (opt.only == NULL)
		return TRUE;
	return strpbrk(opt.only, "*?") != NULL ? g_pattern_match_simple(opt.only, name)
					       : strstr(name, opt.only) != NULL;
}

static struct check_result *run_on(const struct check *check, const struct test_case *test,
				   unsigned device, const char *backend)
{
	fresh_node(backend);
	return check_case_run(test, device, check->library, opt.driver);
}

static struct check_result *run_case(struct check *check, const struct test_case *test,
				     unsigned device, const struct check_limits *limits)
{
	const char *reason = check_case_skip(test, limits);
	struct check_result *result, *other;

	if (reason != NULL)
		return check_case_skipped(test, device, reason);
	result = run_on(check, test, device, check->backend);
	if (opt.against == NULL)
		return result;
	other = run_on(check, test, device, opt.against);
	check_compare(result, other, check->backend, opt.against);
	check_result_free(other);
	return result;
}

static void run_device(struct check *check, unsigned device)
{
	gboolean is_sim = strcmp(check->backend, "sim") == 0;
	struct check_limits limits = {
		.most_bytes = check->most_bytes,
		.full = opt.full || (is_sim && check->most_bytes == 0),
		.device = device,
		.is_first = check->report.results->len == 0,
		.devices = opt.safe != NULL ? 1 : check->server.devices - device,
		.same_shape =
			device == 0 && check->server.devices == 8 && g_getenv("NPUSIM_HBM") == NULL,
	};

	show_devices_from(device, check->server.devices);
	for (guint i = 0; i < check->cases->len && !interrupted(); i++) {
		const struct test_case *test = g_ptr_array_index(check->cases, i);

		if (!is_wanted(test))
			continue;
		g_ptr_array_add(check->report.results, run_case(check, test, device, &limits));
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\rdevice %u: %u of %u ", device, i + 1, check->cases->len);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* The model beside a real driver is the same server. */
static void shape_model(const struct check *check)
{
	g_autofree char *devices = g_strdup_printf("%u", MIN(check->server.devices, 16));

	g_setenv("NPUSIM_SOC", check->server.soc, FALSE);
	g_setenv("NPUSIM_DEVICES", devices, FALSE);
}

/* Whether others have little of the device's memory; a driver's firmware has some of it, too. */
static gboolean is_free(const struct check_server *server, unsigned device)
{
	return server->free_bytes[device] >= server->total_bytes[device] / 10 * 9;
}

/* On somebody's server: what will be done, before it is. */
static void announce(const struct check *check)
{
	const struct check_server *server = &check->server;
	guint cases = 0;

	for (guint i = 0; i < check->cases->len; i++)
		cases += is_wanted(g_ptr_array_index(check->cases, i));
	for (unsigned d = 0; opt.device < 0 && d < server->devices; d++)
		if (!is_free(server, d))
			fprintf(stderr,
				"npusim check: device %u is left alone: %s of its %s are free; "
				"--device=%u checks it all the same\n",
				d, npu_size_text(server->free_bytes[d]),
				npu_size_text(server->total_bytes[d]), d);
	fprintf(stderr,
		"npusim check: up to %u cases a device, which take at most %s of its "
		"memory at a time and leave nothing behind\n",
		cases, check->most_bytes > 0 ? npu_size_text(check->most_bytes) : "all");
}

static void run_cases(struct check *check)
{
	unsigned device = opt.device >= 0 ? (unsigned)opt.device : 0;
	g_autofree char *model = opt.library == NULL ? part_file(PART_MODEL, NULL) : NULL;
	const char *const libraries[] = { check->library, model, NULL };

	if (model != NULL && (strcmp(check->backend, "sim") == 0 || opt.against != NULL))
		case_preload(libraries);
	if (opt.against != NULL && strcmp(check->backend, "hw") == 0)
		shape_model(check);
	if (strcmp(check->backend, "hw") == 0)
		announce(check);
	for (; device < check->server.devices && !interrupted(); device++) {
		if (opt.device < 0 && !is_free(&check->server, device))
			continue;
		run_device(check, device);
		if (opt.device >= 0 || opt.safe != NULL)
			return;
	}
}

/* ---- latency ---- */

static gboolean write_samples(const char *path, const GArray *samples, GError **error)
{
	g_autoptr(GString) text = g_string_new("call,bytes,page_bytes,ns\n");

	for (guint i = 0; i < samples->len; i++) {
		const struct check_sample *s = &g_array_index(samples, struct check_sample, i);

		g_string_append_printf(text,
				       "%s,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%.3f\n",
				       check_call_name(s->call), s->bytes,
				       G_GUINT64_CONSTANT(1) << s->page_lg2, s->ns);
	}
	return out_file_write(path, text->str, text->len, error);
}

static gboolean write_profile(const struct check *check, const char *path, const GArray *samples,
			      GError **error)
{
	g_autofree char *where = g_strdup_printf("%s, backend %s, device %d", check->server.soc,
						 check->backend, MAX(opt.device, 0));
	g_autofree char *text = check_fit_text(check->server.soc, where, samples, error);

	return text != NULL && out_file_write(path, text, strlen(text), error);
}

static gboolean measure(struct check *check, GError **error)
{
	g_autofree char *profile = opt.latency != NULL
					   ? g_strdup(opt.latency)
					   : g_build_filename(opt.record, "profile.ini", NULL);
	unsigned device = opt.device >= 0 ? (unsigned)opt.device : 0;
	guint64 most = check->most_bytes > 0
			       ? check->most_bytes
			       : MIN(LATENCY_DEFAULT, check->server.free_bytes[device] / 4);
	g_autoptr(GArray) samples = NULL;

	fresh_node(check->backend);
	g_unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	if (!check_latency(check->library, device, most, &samples, error)) {
		g_prefix_error(error, "the latency of calls: ");
		return FALSE;
	}
	if (opt.record != NULL) {
		g_autofree char *csv = g_build_filename(opt.record, "latency.csv", NULL);

		if (!write_samples(csv, samples, error))
			return FALSE;
	}
	return write_profile(check, profile, samples, error);
}

/* ---- the record ---- */

/* What may matter; nothing else of the environment leaves the machine. */
static void append_environment(GString *text)
{
	static const char *const prefixes[] = { "NPUSIM_", "ASCEND_", "LD_LIBRARY_PATH",
						"LD_PRELOAD" };
	g_auto(GStrv) names = g_listenv();

	for (char **name = names; *name != NULL; name++)
		for (gsize i = 0; i < G_N_ELEMENTS(prefixes); i++)
			if (g_str_has_prefix(*name, prefixes[i]))
				g_string_append_printf(text, "env %s=%s\n", *name, g_getenv(*name));
}

static void append_file(GString *text, const char *path)
{
	g_autofree char *contents = NULL;

	if (g_file_get_contents(path, &contents, NULL, NULL))
		g_string_append_printf(text, "\n[%s]\n%s\n", path, contents);
}

static gboolean record_server(const struct check *check, GError **error)
{
	g_autofree char *path = g_build_filename(opt.record, "server.txt", NULL);
	g_autoptr(GString) text = g_string_new(NULL);
	struct utsname machine;

	uname(&machine);
	g_string_append_printf(text, "npusim %s\nsystem %s %s %s\nlibrary %s\n", NPUSIM_VERSION,
			       machine.sysname, machine.release, machine.machine, check->library);
	g_string_append_printf(text, "soc %s\n", check->server.soc);
	for (unsigned d = 0; d < check->server.devices; d++)
		g_string_append_printf(
			text, "device %u free %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT "\n", d,
			check->server.free_bytes[d], check->server.total_bytes[d]);
	append_environment(text);
	if (check->server.backend != NULL)
		g_string_append_printf(text, "\n[backend]\n%s", check->server.backend);
	append_file(text, "/etc/os-release");
	append_file(text, "/etc/ascend_install.info");
	append_file(text, "/usr/local/Ascend/driver/version.info");
	append_file(text, "/usr/local/Ascend/firmware/version.info");
	return out_file_write(path, text->str, text->len, error);
}

static gboolean write_report(const char *path, const struct check_report *report,
			     report_writer *put, GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);

	put(text, report);
	return out_file_write(path, text->str, text->len, error);
}

static gboolean begin_record(const struct check *check, GError **error)
{
	g_autofree char *calls = g_build_filename(opt.record, "calls", NULL);
	g_autofree char *trace = g_build_filename(calls, "%p.npt", NULL);

	g_autoptr(GDir) there = g_dir_open(opt.record, 0, NULL);

	if (there != NULL && g_dir_read_name(there) != NULL)
		return refuse_file(error, EEXIST,
				   "--record=%s: the folder has files, which may be another run's; "
				   "name a new one",
				   opt.record);
	if (g_mkdir_with_parents(calls, 0777) != 0)
		return refuse_file(error, errno, "%s: %s", calls, g_strerror(errno));
	if (!record_server(check, error))
		return FALSE;
	/* Each process of each case: every call to the driver with its time. */
	g_setenv("NPUSIM_TRACE", trace, TRUE);
	return TRUE;
}

static gboolean end_record(const struct check_report *report, GError **error)
{
	gboolean good = TRUE;

	g_unsetenv("NPUSIM_TRACE");
	for (gsize i = 0; good && i < G_N_ELEMENTS(formats); i++) {
		g_autofree char *path = g_build_filename(opt.record, formats[i].file, NULL);
		good = formats[i].file == NULL ||
		       write_report(path, report, formats[i].write, error);
	}
	return good;
}

/* ---- the command ---- */

static gboolean list_cases(const struct check *check, GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (guint i = 0; i < check->cases->len; i++) {
		const struct test_case *test = g_ptr_array_index(check->cases, i);

		if (is_wanted(test))
			g_string_append_printf(text, "%s.%s\n", test->suite, test->name);
	}
	if (text->len == 0)
		return refuse_option(error, "--only=%s: no case fits", opt.only);
	return out_file_write(opt.output ? opt.output : "-", text->str, text->len, error);
}

static gboolean run_all(struct check *check, GError **error)
{
	check->report.start_us = g_get_real_time();
	check->cases = case_folder_read(check->folder, &case_acl, error);
	if (check->cases == NULL)
		return FALSE;
	if (opt.list)
		return list_cases(check, error);
	for (guint i = 0; opt.against != NULL && i < check->cases->len; i++)
		check_case_watch(g_ptr_array_index(check->cases, i));
	if (!check_probe(check->library, &check->server, error))
		return FALSE;
	if (opt.device >= (int)check->server.devices)
		return refuse_option(error, "--device=%d: the devices are 0 to %u", opt.device,
				     check->server.devices - 1);
	if (opt.record != NULL && !begin_record(check, error))
		return FALSE;
	/* an interrupt, and the cases that have run are reported */
	interrupts_watch(TRUE);
	run_cases(check);
	interrupts_leave();
	if (opt.record != NULL && !end_record(&check->report, error))
		return FALSE;
	if (check->report.results->len == 0 && !interrupted())
		return refuse_option(error, "--only=%s: no case fits",
				     opt.only != NULL ? opt.only : "*");
	if ((opt.latency != NULL || opt.record != NULL) && !interrupted() && !measure(check, error))
		return FALSE;
	return write_report(opt.output ? opt.output : "-", &check->report, check->write, error);
}

static int run_check(struct check *check)
{
	g_autoptr(GError) error = NULL;
	int status = NPUSIM_EXIT_OK;

	check->report = (struct check_report){
		.backend = check->backend,
		.server = &check->server,
		.results = g_ptr_array_new_with_free_func((GDestroyNotify)check_result_free),
	};
	check->folder = find_cases();
	/* known before what may take long */
	if ((opt.output != NULL && !out_file_check(opt.output, &error)) ||
	    (opt.latency != NULL && !out_file_check(opt.latency, &error)) ||
	    !(check->library = opt.library ? g_strdup(opt.library) : part_file(PART_ACL, &error)) ||
	    !run_all(check, &error)) {
		status = failure("check", "%s", error->message);
	} else if (check_report_count(&check->report, CHECK_FAILED) > 0) {
		status = NPUSIM_EXIT_FAILED;
	}
	if (interrupted()) {
		failure("check", "%s: the report has the %u cases that had run",
			strsignal(interrupted()), check->report.results->len);
		status = interrupt_status();
	}
	g_ptr_array_unref(check->report.results);
	g_clear_pointer(&check->cases, g_ptr_array_unref);
	check_server_clear(&check->server);
	g_free(check->library);
	g_free(check->folder);
	return status;
}

int cmd_check(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *node = own_node_name("check");
	struct check check = { 0 };
	int status = NPUSIM_EXIT_OK;

	opt.device = -1;
	g_setenv("NPUSIM_FAILURES", "off", FALSE); /* the report has them */
	if (!parse_options("",
			   "Runs the conformance cases on the driver of this server (--backend "
			   "sim: on the model), device\n"
			   "by device, each case in processes of its own.",
			   entries, OPTIONS_OF_CHECK, &argc, &argv, &status))
		return status;
	if (argc > 1)
		return usage_error("check", "it takes no argument '%s'", argv[1]);
	if (!read_options(&check, &error) || !model_options_apply("hw", node, &error) ||
	    (strcmp(npu_var_get(NPU_VAR_VALIDATE, NULL), "off") != 0 &&
	     !run_check_settings(&error)))
		return usage_error("check", "%s", error->message);
	check.backend = g_intern_string(npu_var_get(NPU_VAR_BACKEND, NULL));
	if (check.most_bytes == 0 && !opt.full && strcmp(check.backend, "hw") == 0)
		check.most_bytes = MEMORY_DEFAULT;
	opt.driver = strcmp(npu_var_get(NPU_VAR_CONTRACT, NULL), "driver") == 0;
	g_setenv("NPUSIM_LOG", "error", FALSE);
	g_setenv("NPUSIM_VALIDATE_RULES", "-leak", FALSE); /* many a case ends in between */
	return run_check(&check);
}
