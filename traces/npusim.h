/* SPDX-License-Identifier: Apache-2.0
 *
 * The npusim command: its verbs, and the options that they share.
 */
#ifndef NPUSIM_TRACES_NPUSIM_H
#define NPUSIM_TRACES_NPUSIM_H

#include <glib.h>

/* Exit statuses: 0 done, 1 failed, 2 wrong usage; run passes its program's on. */
enum { NPUSIM_EXIT_OK = 0, NPUSIM_EXIT_FAILED = 1, NPUSIM_EXIT_USAGE = 2 };

/* A verb: argv[0] is its name. Returns the exit status. */
int cmd_run(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_node(int argc, char **argv);

/* ---- options.c -------------------------------------------------------------------------------------------------------- */

/* Says "npusim VERB: text" on stderr and how to get help. */
int usage_error(const char *verb, const char *format, ...) G_GNUC_PRINTF(2, 3);
int failure(const char *verb, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The options that describe the model (--backend --soc --devices --hbm --contract --timing --node --trace), as a group to
 * be added to a verb's own. Each is the environment variable of the same name. */
GOptionGroup *model_options(void);
/* Puts them into the environment: what was given wins over what is there. node: the name to use where neither says one.
 * FALSE and error, with the values that would be valid, if one is not. */
gboolean model_options_apply(const char *default_backend, const char *default_node, GError **error);
/* A node name of this process: "run-1234". */
char *own_node_name(const char *what);

/* Parses argv in place; FALSE after it said what is wrong (status 2 in *status) or showed the help (0). */
gboolean parse_options(const char *parameters, const char *summary, const GOptionEntry *entries, gboolean with_model,
		       int *argc, char ***argv, int *status);

/* The folder of libascendcl.so that belongs to this command: the installed one beside it, or the build tree's. NULL and
 * error, naming the folders that were tried, if there is none. */
char *acl_library_folder(GError **error);

#endif
