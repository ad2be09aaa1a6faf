/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim check: runs the conformance cases on a driver, device by device, compares the answers
 * with the model, and records everything that is needed to analyse them elsewhere.
 */
#include "npusim.h"

#include <sys/utsname.h>

#include "config.h"
#include "show/show.h"

#define MEASURE_DEFAULT (G_GUINT64_CONSTANT(4) << 30)
#define MEMORY_DEFAULT  (G_GUINT64_CONSTANT(1) << 30) /* of a driver's device, without --full */
#define MEASURE_LEAST   (G_GUINT64_CONSTANT(2) << 20)
#define MEASURE_SHARE   4 /* of what is free a fourth is measured with */

enum { ON_SIM, ON_HW, ON_ONE };
static const char *const backends[] = { "sim", "hw", NULL };

static struct {
	char *output, *record, *calibrate, *only, *library, *cases;
	guint against, format;
	guint64 safe_bytes, most_bytes; /* of one device at a time; 0: no limit */
	gint64 device;
	gboolean full, driver, list;
} opt = { .against = ON_ONE, .device = -1 };

/* By --format, and in the file of a record. */
typedef void report_writer(GString *out, const struct check_report *report);
static const char *const format_names[] = { "table", "tap", "junit", NULL };
static const struct {
	const char *file;
	report_writer *write;
} formats[] = { { "report.txt", check_report_table },
		{ NULL, check_report_tap },
		{ "report.xml", junit_of_cases },
		{ "steps.tsv", check_report_calls } };

static const struct option options[] = {
	OPTION_WORDS("against", &opt.against, backends, "BACKEND",
		     "run the cases on this backend as well, and report where the answers differ"),
	OPTION_WORDS("format", &opt.format, format_names, "F", "table (default), tap or junit"),
	OPTION_SHORT("output", 'o', OUTPUT, &opt.output, "FILE", "write the report to FILE"),
	OPTION("record", FILE, &opt.record, "DIR",
	       "keep environment, versions, devices, every call and its time in DIR, to be sent to "
	       "somebody"),
	OPTION_RANGE("safe", SIZE, &opt.safe_bytes, MEASURE_LEAST, 0, "SIZE",
		     "one device only, and never more than SIZE of its memory"),
	OPTION_RANGE("max-memory", SIZE, &opt.most_bytes, MEASURE_LEAST, 0, "SIZE",
		     "never more than SIZE of a device's memory; 1G on a driver without --full"),
	OPTION_RANGE("device", NUMBER, &opt.device, 0, 0, "N",
		     "this device only, others' memory on it or not"),
	OPTION("full", FLAG, &opt.full, NULL, "also cases that fill a device's memory"),
	OPTION_RANGE("step-timeout", NUMBER, &case_step_seconds, 1, 86400, "S",
		     "end a step that has no answer after S seconds; 60"),
	OPTION("calibrate", OUTPUT, &opt.calibrate, "FILE",
	       "measure calls, links and translation, and write a profile for the model to FILE, "
	       "and to FILE.txt how sure it is and what the model makes of it"),
	OPTION("only", TEXT, &opt.only, "PATTERN",
	       "cases whose SUITE.NAME has PATTERN in it, or fits it where it has * or ?"),
	OPTION("list", FLAG, &opt.list, NULL, "name the cases, and run none"),
	OPTION("library", FILE, &opt.library, "FILE",
	       "check this libascendcl.so, CANN's own say, instead of npusim's"),
	OPTION("cases", FILE, &opt.cases, "DIR", "folder of the cases"),
	{ 0 },
};

static gboolean is_own;  /* npusim's library */
static GPtrArray *cases; /* of struct test_case */
static struct check_report report;
static unsigned first_device;
static int stopped; /* the signal that ended the run of the cases; or 0 */

static gboolean is_on(guint backend)
{
	return strcmp(report.backend, backends[backend]) == 0;
}

static void fresh_node(const char *backend)
{
	g_autofree char *name = own_node_name();

	g_setenv("NPUSIM_NODE", name, TRUE);
	g_setenv("NPUSIM_BACKEND", backend, TRUE);
}

/* Those that are wanted. FALSE and error: there are none. */
static gboolean read_cases(GError **error)
{
	g_autofree char *known = opt.cases ? NULL : part_folder("map.case", error);
	const char *folder = opt.cases ?: known;

	cases = folder ? case_folder_read(folder, &case_acl, error) : NULL;
	if (cases == NULL)
		return FALSE;
	for (guint i = cases->len; opt.only && i-- > 0;) {
		const struct test_case *test = cases->pdata[i];
		const char *name = npu_text("%s.%s", test->suite, test->name);

		if (strpbrk(opt.only, "*?") ? !g_pattern_match_simple(opt.only, name)
					    : !strstr(name, opt.only))
			g_ptr_array_remove_index(cases, i);
	}
	return cases->len > 0 ||
	       refuse(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "--only=%s: no case fits", opt.only);
}

/* The most that the steps of a case could hold together, in whole pages of the largest that each
 * may get: 1 GiB where it asks for them, else 2 MiB; variables count as nothing. */
static guint64 memory_of(const struct test_case *test)
{
	guint64 sum = 0, bytes;

	for (guint s = 0; s < test->steps->len; s++) {
		const char *words = case_step_at(test, s)->words;
		g_auto(GStrv) argv = g_strsplit(words, " ", -1);
		guint64 page = g_regex_match_simple("(huge1g|policy=[67])( |$)", words, 0, 0)
				       ? G_GUINT64_CONSTANT(1) << 30
				       : 2 << 20;

		if (!g_regex_match_simple("^(call \\S*[Aa]lloc|create |malloc|plain )", words, 0,
					  0))
			continue;
		for (char **word = argv; *word != NULL; word++) {
			case_number(strchr(*word, '=') != NULL ? "" : *word, &bytes);
			sum += round_up(bytes, page);
		}
	}
	return sum;
}

/* Why a case cannot run on this device, or NULL. */
static const char *why_skipped(const struct test_case *test, unsigned device)
{
	const struct case_result *first = report.results->len ? report.results->pdata[0] : NULL;
	unsigned devices = opt.safe_bytes > 0 ? 1 : report.server.devices - device;
	guint64 bytes = memory_of(test);
	gboolean chooses = FALSE;

	for (guint i = 0; i < test->settings->len; i++)
		chooses |=
			g_str_has_prefix(test->settings->pdata[i], "ASCEND_RT_VISIBLE_DEVICES") ||
			g_str_has_prefix(test->settings->pdata[i], "NPUSIM_SOC");
	if (test->full_size && !opt.full && (!is_on(ON_SIM) || opt.most_bytes > 0))
		return "fills a device, and --full is not given";
	if (test->full_size && (device > 0 || report.server.devices != 8 || g_getenv("NPUSIM_HBM")))
		return "is written for a server of eight devices, each with all its memory free";
	if (opt.most_bytes > 0 && bytes > opt.most_bytes)
		return npu_text("takes up to %s, and %s are allowed (--safe, --max-memory)",
				npu_size_text(bytes), npu_size_text(opt.most_bytes));
	if (test->devices > devices)
		return npu_text("needs %u devices, and there are %u from this one on",
				test->devices, devices);
	if (device > 0 && test->numbered)
		return "its answers name device 0";
	return chooses && first && first->device != device
		       ? "chooses its own devices: it ran with the first one"
		       : NULL;
}

static struct case_result *run_on(const struct test_case *test, const char *backend)
{
	fresh_node(backend);
	return case_run(test, opt.library, opt.driver, FALSE);
}

static void run_case(const struct test_case *test, unsigned device)
{
	const char *why = why_skipped(test, device);
	struct case_result *result =
		why ? case_result_new(test, why) : run_on(test, report.backend);

	if (!why && opt.against != ON_ONE) {
		/* what is recorded is the driver's that is checked */
		g_autofree char *trace = g_strdup(g_getenv("NPUSIM_TRACE"));
		struct case_result *other;

		g_unsetenv("NPUSIM_TRACE");
		other = run_on(test, backends[opt.against]);
		if (trace)
			g_setenv("NPUSIM_TRACE", trace, TRUE);
		check_compare(result, other, report.backend, backends[opt.against]);
		case_result_free(other);
	}
	result->device = device;
	g_ptr_array_add(report.results, result);
	report.counts[result->status]++;
}

/* Whether others have little of the device's memory; a driver's firmware has some of it, too. A
 * model is the check's own. */
static gboolean is_free(unsigned device)
{
	return is_on(ON_SIM) ||
	       report.server.free_bytes[device] >= report.server.total_bytes[device] / 10 * 9;
}

static void run_cases(void)
{
	const struct check_server *server = &report.server;
	g_autofree char *model = is_own ? part_file("backend-sim.so", NULL) : NULL;
	const char *const libraries[] = { opt.library, model, NULL };
	struct progress bar;

	if (model != NULL && (is_on(ON_SIM) || opt.against != ON_ONE))
		case_preload(libraries);
	if (opt.against != ON_ONE && is_on(ON_HW)) {
		/* the model beside a real driver is the same server */
		g_setenv("NPUSIM_SOC", server->soc, FALSE);
		g_setenv("NPUSIM_DEVICES", npu_text("%u", MIN(server->devices, 16)), FALSE);
	}
	/* on somebody's server: what will be done, before it is */
	for (unsigned d = 0; is_on(ON_HW) && opt.device < 0 && d < server->devices; d++)
		if (!is_free(d))
			failure("device %u is left alone: %s of its %s are free; --device=%u "
				"checks it all the same",
				d, npu_size_text(server->free_bytes[d]),
				npu_size_text(server->total_bytes[d]), d);
	if (is_on(ON_HW))
		failure("up to %u cases a device, which take at most %s of its memory at a time "
			"and leave nothing behind",
			cases->len, opt.most_bytes > 0 ? npu_size_text(opt.most_bytes) : "all");
	for (unsigned d = first_device; d < server->devices && !interrupted(); d++) {
		g_autoptr(GString) list = g_string_new(NULL);

		if (opt.device < 0 && !is_free(d))
			continue;
		/* the program of a case sees this device as its 0, and those after it */
		for (unsigned other = d; other < server->devices; other++)
			g_string_append_printf(list, "%s%u", other > d ? "," : "", other);
		g_unsetenv("ASCEND_RT_VISIBLE_DEVICES");
		if (d > 0)
			g_setenv("ASCEND_RT_VISIBLE_DEVICES", list->str, TRUE);
		progress_start(&bar, "cases", cases->len);
		for (guint i = 0; i < cases->len && !interrupted(); i++) {
			run_case(cases->pdata[i], d);
			progress_step(i + 1, &bar);
		}
		progress_end(&bar);
		if (opt.device >= 0 || opt.safe_bytes > 0) /* one alone */
			break;
	}
}

static GArray *figures_on(const char *backend, GError **error)
{
	const struct check_server *server = &report.server;
	/* the other die of a 910C's chip is nearer than a peer */
	unsigned first = first_device,
		 peer = first ^ (g_str_has_prefix(server->soc, "Ascend910_93") ? 2 : 1);
	guint64 most = opt.most_bytes > 0 ? opt.most_bytes : MEASURE_DEFAULT;

	if (server->free_bytes[first] < MEASURE_SHARE * MEASURE_LEAST) {
		refuse(error, G_FILE_ERROR, G_FILE_ERROR_NOSPC,
		       "device %u has %s free, of which measuring takes a quarter: it needs at "
		       "least %s",
		       first, npu_size_text(server->free_bytes[first]),
		       npu_size_text(MEASURE_SHARE * MEASURE_LEAST));
		return NULL;
	}
	fresh_node(backend);
	if (isatty(STDERR_FILENO))
		failure("measuring on %s, which may take minutes", backend);
	GArray *figures =
		check_measure(opt.library, first, peer < server->devices ? peer : first,
			      MIN(most, server->free_bytes[first] / MEASURE_SHARE), error);
	if (figures == NULL)
		g_prefix_error(error, "measuring on %s: ", backend);
	return figures;
}

/* Replays what the processes of cases recorded, each from an empty server, with the profile that
 * the environment names: this process has a device open then, and starts no other. */
static void predict_calls(GString *out)
{
	static struct replay_match matches[REPLAY_MATCHES];
	g_autofree char *folder = g_build_filename(opt.record, "calls", NULL);
	g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
	g_autoptr(GString) times = g_string_new(NULL);
	struct policy_options policy;
	const struct replay_options how = { .policy = &policy, .matches = matches };
	const char *name;

	policy_options_init(&policy);
	fresh_node(backends[ON_SIM]);
	while (dir && (name = g_dir_read_name(dir)) != NULL) {
		g_autofree char *path = g_build_filename(folder, name, NULL);
		g_autoptr(GError) cause = NULL;
		struct trace *trace = trace_open(path, &cause);
		struct replay *replay = trace ? replay_run(trace, &how, &cause) : NULL;

		if (cause != NULL)
			g_string_append_printf(out, "%s is left out: %s\n", name, cause->message);
		replay_free(replay);
		trace_free(trace);
	}
	result_times_text(times, matches);
	if (times->len > 0)
		g_string_append_printf(
			out, "\nThe cases' calls, and by the model with what was found:\n\n%s",
			times->str);
	policy_options_clear(&policy);
}

/* Writes the profile, and what a model with it makes of the same, where there is one. */
static gboolean calibrate(const char *path, GError **error)
{
	const struct check_server *server = &report.server;
	g_autoptr(GString) profile = g_string_new(NULL), text = g_string_new(NULL);
	g_autofree char *beside = g_strconcat(path, ".txt", NULL);
	g_autofree char *absolute = g_canonicalize_filename(path, NULL);
	g_autofree char *where = g_strdup_printf("%s, backend %s, device %u", server->soc,
						 report.backend, first_device);
	g_autoptr(GArray) figures = NULL, modelled = NULL;

	g_unsetenv("ASCEND_RT_VISIBLE_DEVICES");
	g_setenv("NPUSIM_CONTENTS", "off", TRUE); /* what copies move does not matter */
	/* what the cases did is judged and told already; what is measured is none */
	g_setenv("NPUSIM_VALIDATE", "off", TRUE);
	g_setenv("NPUSIM_FAILURES", "off", TRUE);
	g_setenv("NPUSIM_LEAKS", "off", TRUE);
	g_setenv("NPUSIM_LOG", "error", TRUE);
	figures = figures_on(report.backend, error);
	if (figures == NULL || !sim_fit(server->soc, where, figures, profile, text, error) ||
	    !out_file_write(path, profile->str, profile->len, error))
		return FALSE;
	g_setenv("NPUSIM_SOC", absolute, TRUE);
	g_setenv("NPUSIM_DEVICES", npu_text("%u", MIN(server->devices, 16)), FALSE);
	/* another's library has no model */
	modelled = is_own ? figures_on(backends[ON_SIM], error)
			  : g_array_new(FALSE, FALSE, sizeof(struct sim_figure));
	if (modelled == NULL)
		return FALSE;
	g_string_append(text, "\nMeasured, and by the model with what was found:\n\n");
	check_figures_text(text, figures, modelled);
	/* a model's calls tell no time that they took */
	if (is_own && opt.record != NULL && !strstr(server->backend, "backend=sim\n"))
		predict_calls(text);
	return out_file_write(beside, text->str, text->len, error);
}

static void write_server(GString *text, const struct check_report *of)
{
	static const char *const files[] = { "/etc/os-release", "/etc/ascend_install.info",
					     "/usr/local/Ascend/driver/version.info",
					     "/usr/local/Ascend/firmware/version.info" };
	/* of the environment what may matter; nothing else of it leaves the machine */
	static const char wanted[] = "^(NPUSIM_|ASCEND_|LD_LIBRARY_PATH|LD_PRELOAD)";
	const struct check_server *server = &of->server;
	g_auto(GStrv) names = g_listenv();
	struct utsname machine;

	uname(&machine);
	g_string_append_printf(text, "npusim %s\nsystem %s %s %s\nlibrary %s\nsoc %s\n",
			       NPUSIM_VERSION, machine.sysname, machine.release, machine.machine,
			       opt.library, server->soc);
	for (unsigned d = 0; d < server->devices; d++)
		g_string_append_printf(text, "device %u free " U64 " of " U64 "\n", d,
				       server->free_bytes[d], server->total_bytes[d]);
	for (char **name = names; *name != NULL; name++)
		if (g_regex_match_simple(wanted, *name, 0, 0))
			g_string_append_printf(text, "env %s=%s\n", *name, g_getenv(*name));
	if (*server->backend)
		g_string_append_printf(text, "\n[backend]\n%s", server->backend);
	for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *contents = NULL;

		if (g_file_get_contents(files[i], &contents, NULL, NULL))
			g_string_append_printf(text, "\n[%s]\n%s\n", files[i], contents);
	}
}

static gboolean write_report(const char *path, report_writer *put, GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);

	put(text, &report);
	return out_file_write(path, text->str, text->len, error);
}

static gboolean check_all(GError **error)
{
	const char *output = opt.output ? opt.output : "-";
	g_autoptr(GString) names = g_string_new(NULL);
	struct check_server *server = &report.server;

	report.start_us = g_get_real_time();
	if (!read_cases(error))
		return FALSE;
	for (guint i = 0; opt.list && i < cases->len; i++) {
		const struct test_case *test = cases->pdata[i];

		g_string_append_printf(names, "%s.%s\n", test->suite, test->name);
	}
	if (opt.list)
		return out_file_write(output, names->str, names->len, error);
	for (guint i = 0; opt.against != ON_ONE && i < cases->len; i++)
		check_case_watch(cases->pdata[i]);
	if (!check_probe(opt.library, server, error))
		return FALSE;
	if (server->devices == 0)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			      "the driver is there, and has no device");
	for (unsigned d = 0; d < server->devices; d++)
		if (server->trouble[d] != NULL)
			return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "device %u: %s", d,
				      server->trouble[d]);
	if (opt.device >= server->devices)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_NODEV,
			      "--device=%d: the devices are 0 to %u", (int)opt.device,
			      server->devices - 1);
	if (opt.record != NULL) {
		g_autofree char *calls = g_build_filename(opt.record, "calls", NULL);
		g_autofree char *trace = g_build_filename(calls, "%p.npt", NULL);
		g_autofree char *about = g_build_filename(opt.record, "server.txt", NULL);
		g_autoptr(GDir) there = g_dir_open(opt.record, 0, NULL);

		if (there != NULL && g_dir_read_name(there) != NULL)
			return refuse_file(error, EEXIST,
					   "--record=%s: the folder has files, which may be "
					   "another run's; name a new one",
					   opt.record);
		if (g_mkdir_with_parents(calls, 0777) != 0)
			return refuse_file(error, errno, "%s: %s", calls, g_strerror(errno));
		if (!write_report(about, write_server, error))
			return FALSE;
		/* each process of each case: every call to the driver with its time */
		g_setenv("NPUSIM_TRACE", trace, TRUE);
	}
	/* an interrupt, and the cases that have run are reported */
	interrupts_watch(TRUE);
	run_cases();
	stopped = interrupted();
	interrupts_leave();
	if (report.results->len == 0 && !stopped)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_AGAIN,
			      "no device is free enough; --device=N checks one all the same");
	if (opt.record != NULL) {
		g_unsetenv("NPUSIM_TRACE");
		/* the record is worth more than somebody who reads the report to its end */
		signal(SIGPIPE, SIG_IGN);
	}
	/* of what cannot be written, the first is told, and the rest is written */
	gboolean good = write_report(output, formats[opt.format].write, error);
	for (gsize i = 0; opt.record != NULL && i < G_N_ELEMENTS(formats); i++) {
		if (formats[i].file == NULL)
			continue;
		g_autofree char *path = g_build_filename(opt.record, formats[i].file, NULL);
		good &= write_report(path, formats[i].write, good ? error : NULL);
	}
	if (opt.record && !opt.calibrate)
		opt.calibrate = g_build_filename(opt.record, "profile.ini", NULL);
	return (opt.calibrate == NULL || stopped ||
		calibrate(opt.calibrate, good ? error : NULL)) &&
	       good;
}

static int run(char **words, GError **error)
{
	const char *profile = opt.calibrate;
	g_autofree char *beside = profile ? g_strconcat(profile, ".txt", NULL) : NULL;

	(void)words;
	g_setenv("NPUSIM_FAILURES", "off", FALSE); /* the report has them */
	if (opt.safe_bytes > 0 && opt.full)
		return refuse_option(error, "--safe and --full are opposites: give one");
	if (profile && (strcmp(profile, "-") == 0 || g_str_has_suffix(profile, ".gz") ||
			(g_file_test(profile, G_FILE_TEST_EXISTS) &&
			 !g_file_test(profile, G_FILE_TEST_IS_REGULAR))))
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
			      "--calibrate=%s: the model reads the profile back, and a report is "
			      "written beside it: name a regular file that does not end in .gz",
			      profile);
	if (beside && !out_file_check(beside, error))
		return NPUSIM_EXIT_FAILED;
	if (!model_options_apply("hw", error) ||
	    (strcmp(npu_var_get(NPU_VAR_VALIDATE, NULL), "off") != 0 && !run_check_settings(error)))
		return NPUSIM_EXIT_USAGE;
	report.backend = g_intern_string(npu_var_get(NPU_VAR_BACKEND, NULL));
	if (opt.safe_bytes > 0)
		opt.most_bytes = opt.safe_bytes;
	else if (opt.most_bytes == 0 && !opt.full && is_on(ON_HW))
		opt.most_bytes = MEMORY_DEFAULT;
	opt.driver = strcmp(npu_var_get(NPU_VAR_CONTRACT, NULL), "driver") == 0;
	g_setenv("NPUSIM_LOG", "error", FALSE);
	g_setenv("NPUSIM_VALIDATE_RULES", "-leak", FALSE); /* many a case ends in between */
	report.results = g_ptr_array_new_with_free_func((GDestroyNotify)case_result_free);
	is_own = opt.library == NULL;
	first_device = opt.device >= 0 ? (unsigned)opt.device : 0;
	gboolean good = (!is_own || (opt.library = part_file(ACL, error))) && check_all(error);
	if (stopped) {
		failure("%s: the report has the %u cases that had run", strsignal(stopped),
			report.results->len);
		return interrupt_status();
	}
	return good && report.counts[CASE_FAILED] == 0 ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
}

VERB(check, "run the conformance cases on a driver, or compare it with the model", "",
     "Runs the conformance cases on the driver of this server (--backend sim: on the model), "
     "device\nby device, each case in processes of its own.",
     0, 0, WITH_MODEL | WITH_TRACE | WITH_VALIDATE, options, run);
