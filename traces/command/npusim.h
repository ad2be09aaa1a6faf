/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the verbs of the npusim command, and the options that they share.
 */
#ifndef NPUSIM_TRACES_NPUSIM_H
#define NPUSIM_TRACES_NPUSIM_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "check/check.h"
#include "format/input.h"
#include "format/out-file.h"

/* Exit statuses: 0 done, 1 failed, 2 wrong usage, 4 a file that takes more than --memory; run
 * passes its program's on. */
enum { NPUSIM_EXIT_OK = 0, NPUSIM_EXIT_FAILED = 1, NPUSIM_EXIT_USAGE = 2, NPUSIM_EXIT_MEMORY = 4 };

/* Of run and record, as a shell has them: the program cannot be run, or is not there. */
enum { NPUSIM_EXIT_NOT_RUNNABLE = 126, NPUSIM_EXIT_NOT_FOUND = 127 };

enum option_kind {
	OPTION_FLAG = G_OPTION_ARG_NONE,
	OPTION_TEXT = G_OPTION_ARG_FILENAME, /* any bytes: may name a file */
	OPTION_FILE = G_OPTION_ARG_FILENAME,
	OPTION_TEXTS = G_OPTION_ARG_FILENAME_ARRAY, /* may be given several times */
	OPTION_OUTPUT = 100, /* GOption lacks these: a file that could be made; "-": stdout */
	OPTION_NUMBER,
	OPTION_SIZE,  /* a number with K, M, G or T behind it */
	OPTION_CHOICE /* the place in `words` */
};
struct option {
	const char *name; /* NULL: behind the last row of a table */
	enum option_kind kind;
	void *to; /* gboolean, char *, char *, char **, char *, gint64, guint64, guint: stays if not
		   * given */
	const char *help, *value; /* `value`: what the help has for it */
	char letter;
	const char *const *words; /* of CHOICE; ends with NULL */
	guint64 least, most;      /* of NUMBER and SIZE; most 0: no limit */
};
#define OPTION(name_, kind_, to_, value_, help_, ...)                                             \
	{                                                                                         \
		.name = name_, .kind = OPTION_##kind_, .to = to_, .value = value_, .help = help_, \
		__VA_ARGS__                                                                       \
	}
#define OPTION_SHORT(name, letter_, kind, to, value, help) \
	OPTION(name, kind, to, value, help, .letter = letter_)
#define OPTION_RANGE(name, kind, to, least_, most_, value, help) \
	OPTION(name, kind, to, value, help, .least = least_, .most = most_)
#define OPTION_WORDS(name, to, words_, value, help) \
	OPTION(name, CHOICE, to, value, help, .words = words_)
/* Beside the verb's own options. */
enum options_with {
	WITH_READER = 1,   /* those of who reads files: --memory, --site-rule */
	WITH_MODEL = 2,    /* those that describe the model */
	WITH_TRACE = 4,    /* --trace: not of a verb that has a file of its own */
	WITH_VALIDATE = 8, /* --validate */
	WITH_PROGRAM = 16, /* --error-exitcode; none after the first argument: those are its own */
	WITH_SUPERNODE = 32,  /* --supernode and what goes with it */
	OPTIONS_NOT_READ = 64 /* the verb reads its arguments itself */
};
struct verb {
	const char *name, *help, *parameters, *summary;
	int least, most; /* arguments */
	guint with;      /* enum options_with */
	const struct option *options;
	/* Returns the exit status. NULL ends `words`, the arguments. */
	int (*run)(char **words, GError **error);
	int trouble; /* the status of an error; 0: 1. One of options has 2, and hints to the help */
};
#define VERB(word, ...) const struct verb verb_##word = { .name = #word, __VA_ARGS__ }
extern const struct verb verb_run, verb_replay, verb_record, verb_report, verb_diff, verb_convert,
	verb_check, verb_bench, verb_sweep, verb_profile, verb_node, verb_explain, verb_home,
	verb_info;

/* ---- npusim.c ---- */

/* Reads the options in argv[1] and those after it, in place, and runs the verb. Returns the exit
 * status, also after what is wrong was said, or the help was shown. */
int run_named(const char *name, int argc, char **argv);

/* Says "npusim VERB: text" on stderr. Returns NPUSIM_EXIT_FAILED. */
int failure(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* From now on an interrupt (SIGINT; termination: SIGTERM and SIGHUP too) is noted, a second one
 * ends the process, and a closed pipe is an error of who writes: what is finished can be kept.
 * interrupts_leave(): as it was before. */
void interrupts_watch(gboolean termination);
void interrupts_leave(void);
/* The signal, or SIGPIPE where stdout cannot be written any more; 0: go on. */
int interrupted(void);
/* The exit status after one. */
int interrupt_status(void);
/* What errno was when stdout could not be written first: a full disk, a closed pipe; 0. */
int output_error(void);

/* Puts the options that are variables', as far as they were given, into the environment: what was
 * given wins over what is there. default_backend: where neither says one; then, without --node, the
 * node is a fresh one, whatever the environment says; NULL: the runtime's default. FALSE and error,
 * with the values that would be valid, if one is not. */
gboolean model_options_apply(const char *default_backend, GError **error);
/* Looks at all settings as the first call of a program in this environment will: FALSE and error,
 * in the options' words where an option gave the value. Opens nothing. */
gboolean run_check_settings(GError **error);
/* A name that nobody else has, for a node: "run-1234-5f0c33a1". */
char *own_node_name(void);
/* Where a variable's value comes from: "option", "environment", "default". */
const char *setting_origin(enum npu_var var);

/* Puts an entry in front of a variable's list, which colons part, or behind it. */
void add_to_list(const char *variable, const char *entry, gboolean first);

/* Libraries that have folders of their own; and the home, by its set_env.sh. */
#define ACL  "libascendcl.so"
#define HAL  "libascend_hal.so"
#define HOME "set_env.sh"
/* The folder of a file that belongs to this command, one of those in npusim.c: the installed one
 * beside it, or the build tree's. NULL and error, naming the folders tried: there is none. */
char *part_folder(const char *name, GError **error);
/* The file. */
char *part_file(const char *name, GError **error);

/* ---- cmd-home.c ---- */

/* Puts npusim in the place of CANN for programs that get this process's environment:
 * libascendcl.so, and on the model libascend_hal.so, in front of LD_LIBRARY_PATH, what is only
 * linked behind it; ASCEND_HOME_PATH and what else the home's set_env.sh exports. Unless `over`, a
 * home that is named already stays the only one, and what is set stays. Returns
 * the folder of libascendcl.so. */
char *home_in_place(gboolean over, GError **error);

/* ---- program.c ---- */

/* Becomes the program; where that fails, says why and returns the exit status. */
int become_program(char **program);
/* Runs the program to its end, once, and passes signals on to it; it dies with this process. TRUE:
 * *out_status is waitpid()'s. FALSE: it could not be run, which was said; *out_status is the exit
 * status. This process's signals stay blocked, its stdin and stdout are /dev/null, and its other
 * files are closed. `each`: on each of NPUSIM_SERVERS, until all have ended and closed their
 * output; the first that fails, or a signal to this process, ends all, and its status is told. */
gboolean program_run(char **program, gboolean each, int *out_status);
/* "127.0.0.4" of server 3, as npu_text(). */
const char *server_address(guint server);
/* Ends this process by the program's signal, without a core; the exit status if it exited. */
int program_end_as(int status);

/* ---- junit.c: what a program did, as JUnit's XML: one test, or the tests that it tells of; or
 * what conformance cases did ---- */

struct junit_program {
	char *const *words; /* the program and its arguments */
	double seconds;
	gboolean ran;
	int status;          /* waitpid()'s, if it ran; else the exit status */
	const char *notes;   /* what NPUSIM_TEST_FILE has: lines of JSON; NULL: nothing */
	const char *text;    /* what npusim has said of it; NULL: nothing */
	const char *reports; /* of that, what may have ended it, as far as nobody has shown it */
};
/* `path`: %p in it is this process. A program that tells of no test is one itself, and so is one
 * that fails in none of them; a test that has begun and not ended has the program's failure. FALSE
 * and error, which names the file. */
gboolean junit_write(const char *path, const struct junit_program *program, GError **error);
/* Of npusim check: a test for each case and device. */
void junit_of_cases(GString *out, const struct check_report *report);

#endif
