/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers of a supernode that a run starts: a program on each, as one program to who looks
 * from outside; and the rank table by which HCCL's ranks find one another.
 */
#include "npusim.h"

#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "backend-sim/node/node.h"
#include "format/out-file.h"

/* How long the programs may take to end by themselves once one has to. */
#define GRACE_SECONDS 5

static struct {
	const char *program;
	guint count, running, pipes; /* pipes: not at their end */
	GPid pid[SIM_SERVERS];       /* 0: it has ended */
	gboolean ending;
	int status; /* waitpid()'s, of the first program that failed; 0: none has */
	sigset_t inherited;
} servers;

/* Kills what has this process as its parent, the programs' orphans among it. FALSE: nothing. */
static gboolean kill_children(gpointer unused)
{
	g_autofree char *text = NULL;
	gboolean killed = FALSE;

	(void)unused;
	if (!g_file_get_contents("/proc/thread-self/children", &text, NULL, NULL))
		return FALSE;
	g_auto(GStrv) pids = g_strsplit(text, " ", -1);
	for (char **pid = pids; *pid; pid++)
		killed |= **pid && kill(atoi(*pid), SIGKILL) == 0;
	return killed;
}

/* Signal 0: they got one. */
static void end_all(int number)
{
	for (guint k = 0; k < servers.count; k++)
		if (servers.pid[k])
			kill(servers.pid[k], number);
	if (!servers.ending)
		g_timeout_add_seconds(GRACE_SECONDS, kill_children, NULL);
	servers.ending = TRUE;
}

/* What the terminal's keys send, the programs got. */
static gboolean on_signal(int fd, GIOCondition condition, gpointer unused)
{
	struct signalfd_siginfo info;

	(void)condition, (void)unused;
	if (read(fd, &info, sizeof(info)) == sizeof(info))
		end_all(info.ssi_code == SI_KERNEL ? 0 : (int)info.ssi_signo);
	return G_SOURCE_CONTINUE;
}

static void on_end(GPid pid, int status, gpointer server)
{
	guint k = GPOINTER_TO_UINT(server);
	gboolean exited = WIFEXITED(status);

	(void)pid;
	servers.pid[k] = 0;
	servers.running--;
	if (status == 0 || servers.status)
		return;
	servers.status = status;
	if (servers.ending || servers.running == 0)
		return;
	failure("%s on server %u ended with %s %d: the other servers' are ended", servers.program,
		k, exited ? "status" : "signal", exited ? WEXITSTATUS(status) : WTERMSIG(status));
	end_all(SIGTERM);
}

/* `of`: twice the server; 1 more of stderr. */
static gboolean on_output(GIOChannel *from, GIOCondition condition, gpointer of)
{
	guint pipe = GPOINTER_TO_UINT(of);
	FILE *to = pipe % 2 ? stderr : stdout;
	g_autofree char *line = NULL;
	gsize length;
	GIOStatus status = g_io_channel_read_line(from, &line, NULL, &length, NULL);

	(void)condition;
	if (status == G_IO_STATUS_AGAIN)
		return G_SOURCE_CONTINUE;
	if (status != G_IO_STATUS_NORMAL) {
		servers.pipes--;
		return G_SOURCE_REMOVE;
	}
	fprintf(to, "[server %u] %.*s\n", pipe / 2, (int)length, line);
	if (fflush(to) != 0) /* as the program would have met it */
		end_all(SIGPIPE);
	return G_SOURCE_CONTINUE;
}

/* The end for a program to write to; -1 and errno. */
static int pipe_from(guint of)
{
	g_autoptr(GIOChannel) from = NULL;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	from = g_io_channel_unix_new(ends[0]);
	g_io_channel_set_close_on_unref(from, TRUE);
	g_io_channel_set_encoding(from, NULL, NULL);
	g_io_channel_set_line_term(from, "\n", 1);
	g_io_channel_set_flags(from, G_IO_FLAG_NONBLOCK, NULL);
	g_io_add_watch(from, G_IO_IN | G_IO_HUP, on_output, GUINT_TO_POINTER(of));
	servers.pipes++;
	return ends[1];
}

static void in_the_child(gpointer unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* as a program that the command runs alone */
	sigprocmask(SIG_SETMASK, &servers.inherited, NULL);
}

static gboolean start(guint k, char **program, GError **error)
{
	g_auto(GStrv) env =
		g_environ_setenv(g_get_environ(), "NPUSIM_SERVER", npu_text("%u", k), TRUE);
	int out = pipe_from(2 * k), err = pipe_from(2 * k + 1);
	struct stat st;
	gboolean fine;

	env = g_environ_setenv(env, "HCCL_IF_IP", server_address(k), FALSE);
	/* reports that come through the pipe are not captured */
	if (fstat(err, &st) == 0 && g_getenv("NPUSIM_REPORT_STDERR"))
		env = g_environ_setenv(
			env, "NPUSIM_REPORT_STDERR",
			npu_text("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino), TRUE);
	fine = g_spawn_async_with_fds(NULL, program, env,
				      G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
					      G_SPAWN_LEAVE_DESCRIPTORS_OPEN,
				      in_the_child, NULL, &servers.pid[k], -1, out, err, error);
	close(out);
	close(err);
	if (!fine)
		return FALSE;
	servers.running++;
	g_child_watch_add(servers.pid[k], on_end, GUINT_TO_POINTER(k));
	return TRUE;
}

gboolean servers_run(char **program, int *out_status)
{
	static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	g_autoptr(GError) error = NULL;
	struct sigaction action;
	sigset_t mask;

	servers.program = program[0];
	servers.count = (guint)atoi(npu_var_get(NPU_VAR_SERVERS, NULL));
	sigemptyset(&mask);
	for (gsize i = 0; i < G_N_ELEMENTS(passed); i++)
		if (sigaction(passed[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&mask, passed[i]); /* others reach a signalfd, too */
	sigprocmask(SIG_BLOCK, &mask, &servers.inherited);
	signal(SIGCHLD, SIG_DFL); /* who ignores it has no children to wait for */
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	g_unix_fd_add(signalfd(-1, &mask, SFD_CLOEXEC), G_IO_IN, on_signal, NULL);
	for (guint k = 0; k < servers.count && error == NULL; k++)
		if (!start(k, program, &error))
			end_all(SIGTERM);
	while (servers.running > 0)
		g_main_context_iteration(NULL, TRUE);
	while (servers.ending && kill_children(NULL) && waitpid(-1, NULL, 0) > 0)
		continue;
	while (servers.pipes > 0)
		g_main_context_iteration(NULL, TRUE);
	*out_status = servers.status;
	if (error == NULL)
		return TRUE;
	failure("%s", error->message);
	*out_status = g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)
			      ? NPUSIM_EXIT_NOT_FOUND
			      : NPUSIM_EXIT_NOT_RUNNABLE;
	return FALSE;
}

const char *server_address(guint server)
{
	return npu_text("127.0.0.%u", server + 1);
}

gboolean rank_table_write(const char *path, guint count, guint devices, GError **error)
{
	g_autoptr(GString) out = g_string_new(NULL), pod = g_string_new(NULL);
	g_autofree char *full = g_canonicalize_filename(path, NULL);

	g_setenv("RANK_TABLE_FILE", full, FALSE);
	g_string_printf(
		out,
		"{\"version\": \"1.2\", \"status\": \"completed\", \"server_count\": \"%u\",\n"
		" \"server_list\": [",
		count);
	for (guint k = 0; k < count; k++) {
		const char *id = npu_text("%s{\"server_id\": \"%s\"", k ? ",\n  " : "\n  ",
					  server_address(k));

		g_string_append_printf(pod, "%s}", id);
		g_string_append_printf(out, "%s, \"host_ip\": \"%s\", \"device\": [", id,
				       server_address(k));
		for (guint i = 0; i < devices; i++)
			g_string_append_printf(out,
					       "%s\n    {\"device_id\": \"%u\", "
					       "\"super_device_id\": \"%u\", \"device_ip\": "
					       "\"192.%u.2.%u\", \"rank_id\": \"%u\"}",
					       i ? "," : "", i, node_sdid(k, i), k, 199 - i,
					       k * devices + i);
		g_string_append(out, "]}");
	}
	g_string_append_printf(out,
			       "],\n \"super_pod_list\": [{\"super_pod_id\": \"0\", "
			       "\"server_list\": [%s]}]}\n",
			       pod->str);
	return out_file_write(path, out->str, out->len, error);
}
