/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of the npusim command, and the options that they share.
 */
#ifndef NPUSIM_TRACES_NPUSIM_H
#define NPUSIM_TRACES_NPUSIM_H

#include <glib.h>

#include <json-glib/json-glib.h>

#include "base/base.h"
#include "format/input.h"

/* Exit statuses: 0 done, 1 failed, 2 wrong usage, 4 a file that takes more than --memory; run
 * passes its program's on. */
enum { NPUSIM_EXIT_OK = 0, NPUSIM_EXIT_FAILED = 1, NPUSIM_EXIT_USAGE = 2, NPUSIM_EXIT_MEMORY = 4 };

/* A verb: argv[0] is its name. Returns the exit status. */
#define NPUSIM_VERBS(X)                                                                 \
	X(run, "run a program on the model of an Ascend server")                        \
	X(replay, "replay a memory snapshot or a trace on the model")                   \
	X(record, "run a program and keep what it called as a trace")                   \
	X(report, "show results of replays as one page with charts")                    \
	X(diff, "say what changed between two traces, or two results of replays")       \
	X(convert, "make a trace, a Chrome trace or CSV of a trace or a result")        \
	X(check, "run the conformance cases on a driver, or compare it with the model") \
	X(bench, "run access patterns on the model's memory system")                    \
	X(sweep, "run bench or replay once for each choice of values")                  \
	X(profile, "list the device profiles, and explain their keys")                  \
	X(node, "list the simulated servers, their processes, and who holds how much")  \
	X(explain, "say what a rule of NPUSIM_VALIDATE finds, and what is right")       \
	X(home, "show or write the folder that looks like an installation of CANN")     \
	X(info, "show the backend, the devices, and every setting with its origin")
#define NPUSIM_VERB(name, help) int cmd_##name(int argc, char **argv);
NPUSIM_VERBS(NPUSIM_VERB)
#undef NPUSIM_VERB

/* Of run and record, as a shell has them: the program cannot be run, or is not there. */
enum { NPUSIM_EXIT_NOT_RUNNABLE = 126, NPUSIM_EXIT_NOT_FOUND = 127 };

/* ---- options.c ---- */

/* Says "npusim VERB: text" on stderr; usage_error() also how to get help. */
int failure(const char *verb, const char *format, ...) G_GNUC_PRINTF(2, 3);
int usage_hint(const char *verb);
#define usage_error(verb, ...) (failure(verb, __VA_ARGS__), usage_hint(verb))
/* The same of an error, and its exit status. */
int failure_of(const char *verb, const GError *error);

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

/* Puts the options that describe the model (--backend --soc --devices --hbm --contract --timing
 * --node --trace --validate --error-exitcode), as far as parse_options() saw them, into the
 * environment: each is a variable's, and what was given wins over what is there. default_backend:
 * where neither says one, NULL: the runtime's default. fresh_node: what to use without --node,
 * whatever the environment says; NULL: what it says. FALSE and error, with the values that would be
 * valid, if one is not. */
gboolean model_options_apply(const char *default_backend, const char *fresh_node, GError **error);
/* Looks at all settings as the first call of a program in this environment will: FALSE and error,
 * in the options' words where an option gave the value. Opens nothing. */
gboolean run_check_settings(GError **error);
/* A node name that nobody else has: "run-1234-5f0c33a1". */
char *own_node_name(const char *what);
/* Where a variable's value comes from: "option", "environment", "default". */
const char *setting_origin(enum npu_var var);

enum options_with {
	OPTIONS_OWN,       /* the verb's own options */
	OPTIONS_OF_READER, /* and --memory */
	OPTIONS_OF_MODEL,  /* or the model's */
	OPTIONS_OF_REPLAY, /* or both */
	OPTIONS_OF_CHECK,  /* or the model's and --validate */
	OPTIONS_OF_RUN,    /* those with --error-exitcode, and none after the first argument: those
			      are the program's */
	OPTIONS_OF_RECORD  /* those of RUN but --trace: the verb has its own file */
};
/* The only argument of the command or a verb: what could be there instead, a line each, with a tab
 * and its description. */
#define LIST_OPTIONS "--list-options"
/* Parses argv in place; FALSE after it said what is wrong (status 2 in *status) or showed the help
 * (0). */
gboolean parse_options(const char *parameters, const char *summary, const GOptionEntry *entries,
		       enum options_with with, int *argc, char ***argv, int *status);

/* Frees the texts that the options of a verb were given. */
void options_clear(const GOptionEntry *entries);

/* Members of the object that is open. */
void json_text(JsonBuilder *json, const char *name, const char *value);
void json_number(JsonBuilder *json, const char *name, guint64 value);

/* Leaves out a "--" in front of the program's words. */
void skip_dashes(int *argc, char ***argv);
/* Puts an entry in front of a variable's list, which colons part, or behind it. */
void add_to_list(const char *variable, const char *entry, gboolean first);

/* libascendcl.so, libcuda.so.1, libascend_hal.so, the folder that looks like an installation of
 * CANN, libnpusim-record.so, the modules of the model and of bench, the script of sweep and the
 * module of its ranks. */
enum npusim_part {
	PART_ACL,
	PART_CUDA,
	PART_HAL,
	PART_HOME,
	PART_RECORD,
	PART_MODEL,
	PART_BENCH,
	PART_SWEEP,
	PART_RANKS
};
/* The folder of a part that belongs to this command: the installed one beside it, or the build
 * tree's. NULL and error, naming the folders that were tried, if there is none. */
char *part_folder(enum npusim_part part, GError **error);
/* The file of a part in it; of the home its set_env.sh. */
char *part_file(enum npusim_part part, GError **error);

/* ---- cmd-home.c ---- */

/* Puts npusim in the place of CANN for programs that get this process's environment:
 * libascendcl.so, and on the model libascend_hal.so, in front of LD_LIBRARY_PATH, what is only
 * linked behind it; ASCEND_HOME_PATH and what else the home's set_env.sh exports. Unless `over`, a
 * home that is named already stays the only one, and what is set stays. Returns
 * the folder of PART_ACL. */
char *home_in_place(gboolean over, GError **error);

/* ---- program.c ---- */

/* Becomes the program; where that fails, says why and returns the exit status. */
int become_program(const char *verb, char **program);
/* Whether a debugger, or strace, follows this process, and would lose the program in a child. */
gboolean is_traced(void);
/* Runs the program to its end, and passes signals on to it; it dies with this process. TRUE:
 * *out_status is waitpid()'s. FALSE: it could not be run, which was said; *out_status is the exit
 * status. This process's signals stay blocked, its stdin and stdout are /dev/null, and files that
 * it inherited are closed. */
gboolean program_run(const char *verb, char **program, int *out_status);
/* Ends this process by the program's signal, without a core of its own; the exit status if it
 * exited. */
int program_end_as(int status);

/* ---- junit.c: what a program did, as JUnit's XML: one test, or the tests that it tells of ---- */

struct junit_program {
	char *const *words; /* the program and its arguments */
	double seconds;
	int status;          /* waitpid()'s */
	const char *notes;   /* what NPUSIM_TEST_FILE has: lines of JSON; NULL: nothing */
	const char *text;    /* what npusim has said of it; NULL: nothing */
	const char *reports; /* of that, what may have ended it, as far as nobody has shown it */
};
/* `path`: %p in it is this process. A program that tells of no test is one itself, and so is one
 * that fails in none of them; a test that has begun and not ended has the program's failure. FALSE
 * and error, which names the file. */
gboolean junit_write(const char *path, const struct junit_program *program, GError **error);

/* ---- needed.c ---- */

/* What of npusim's libraries a program gets, as far as its file tells. */
struct needed {
	const char
		*obstacle; /* why it can get none: "is linked statically ..."; NULL: none known */
	char *foreign;     /* "libascendcl.so from PATH (RPATH from file PROGRAM)", or NULL */
};
/* Asks the program's own loader, in this process's environment. `folder`: npusim's libraries;
 * with_hal: libascend_hal.so counts too. g_free() foreign. */
struct needed needed_of(const char *program, const char *folder, gboolean with_hal);

#endif
