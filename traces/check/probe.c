/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is to check: asked in a process of its own, so that a driver that crashes is a
 * sentence.
 */
#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "npusim/npusim.h"

/* ---- a process that writes a text ---- */

static void read_all(int fd, GString *text)
{
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0)
		g_string_append_len(text, part, n);
}

/* Without what was answered before it went wrong: the lines that begin with \001. */
static const char *complaint_in(const char *text)
{
	while (*text == '\001') {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

static void set_ending(int status, const char *text, GError **error)
{
	text = complaint_in(text);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver has not answered a call for %d seconds",
			    CHECK_ANSWER_SECONDS);
	else if (WIFSIGNALED(status))
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "the driver's process died of signal %d (%s)", WTERMSIG(status),
			    strsignal(WTERMSIG(status)));
	else
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s",
			    text[0] != '\0' ? text : "the driver's process ended without a word");
}

gboolean check_in_child(gboolean (*work)(void *arg, FILE *out), void *arg, char **out_text,
			GError **error)
{
	GString *text = g_string_new(NULL);
	int fds[2], status = 0;
	pid_t pid;

	if (pipe(fds) != 0)
		g_error("no pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		FILE *out = fdopen(fds[1], "w");
		gboolean good;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		good = work(arg, out);
		fclose(out);
		_exit(good ? 0 : 1);
	}
	close(fds[1]);
	read_all(fds[0], text);
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (status != 0) {
		set_ending(status, text->str, error);
		g_string_free(text, TRUE);
		return FALSE;
	}
	*out_text = g_string_free(text, FALSE);
	return TRUE;
}

/* ---- asking ---- */

struct asked {
	typeof(aclInit) *init;
	typeof(aclrtGetDeviceCount) *count;
	typeof(aclrtGetSocName) *soc;
	typeof(aclrtSetDevice) *set;
	typeof(aclrtGetMemInfo) *memory;
	typeof(aclGetRecentErrMsg) *message;
	typeof(npusim_backend_text) *backend;
};

static gboolean load(const char *path, struct asked *out, FILE *complaint)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	gboolean complete;

	if (library == NULL) {
		fprintf(complaint, "%s", dlerror());
		return FALSE;
	}
	*(void **)&out->init = dlsym(library, "aclInit");
	*(void **)&out->count = dlsym(library, "aclrtGetDeviceCount");
	*(void **)&out->soc = dlsym(library, "aclrtGetSocName");
	*(void **)&out->set = dlsym(library, "aclrtSetDevice");
	*(void **)&out->memory = dlsym(library, "aclrtGetMemInfo");
	*(void **)&out->message = dlsym(library, "aclGetRecentErrMsg");
	*(void **)&out->backend = dlsym(library, "npusim_backend_text");
	complete = out->init && out->count && out->soc && out->set && out->memory && out->message;
	if (!complete)
		fprintf(complaint, "%s is no libascendcl.so: it lacks functions of the ACL", path);
	/* cppcheck-suppress resourceLeak ; it stays loaded until the process ends */
	return complete;
}

static gboolean complain(const struct asked *acl, FILE *out, const char *what, int code)
{
	const char *message = acl->message();

	if (message != NULL && message[0] != '\0')
		fprintf(out, "%s", message);
	else
		fprintf(out, "%s answers %d, without a message", what, code);
	return FALSE;
}

static gboolean ask_device(const struct asked *acl, unsigned device, FILE *out)
{
	size_t free_bytes = 0, total_bytes = 0;
	int code;

	alarm(CHECK_ANSWER_SECONDS);
	code = acl->set((int32_t)device);

	if (code == ACL_SUCCESS)
		code = acl->memory(ACL_HBM_MEM, &free_bytes, &total_bytes);
	if (code != ACL_SUCCESS) {
		fprintf(out, "device %u: ", device);
		return complain(acl, out, "aclrtSetDevice", code);
	}
	fprintf(out, "\001device %zu %zu\n", free_bytes, total_bytes);
	return TRUE;
}

/* Lines that begin with \001 are this file's; the rest is the backend's. */
static gboolean ask(void *arg, FILE *out)
{
	struct asked acl;
	uint32_t count = 0;
	char *backend;
	int code;

	if (!load(arg, &acl, out))
		return FALSE;
	alarm(CHECK_ANSWER_SECONDS);
	code = acl.init(NULL);
	if (code == ACL_SUCCESS)
		code = acl.count(&count);
	if (code != ACL_SUCCESS)
		return complain(&acl, out, "aclInit", code);
	if (count == 0) {
		fprintf(out, "the driver is there, and has no device");
		return FALSE;
	}
	fprintf(out, "\001soc %s\n", acl.soc() != NULL ? acl.soc() : "unknown");
	for (uint32_t device = 0; device < count && device < CHECK_DEVICES_MAX; device++)
		if (!ask_device(&acl, device, out))
			return FALSE;
	backend = acl.backend != NULL ? acl.backend() : NULL;
	if (backend != NULL)
		fputs(backend, out);
	free(backend);
	return TRUE;
}

static void take_line(const char *line, struct check_server *out, GString *backend)
{
	guint64 free_bytes, total_bytes;

	if (g_str_has_prefix(line, "\001soc ")) {
		g_strlcpy(out->soc, line + 5, sizeof(out->soc));
	} else if (sscanf(line, "\001device %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, &free_bytes,
			  &total_bytes) == 2) {
		out->free_bytes[out->devices] = free_bytes;
		out->total_bytes[out->devices++] = total_bytes;
	} else if (line[0] != '\0') {
		g_string_append_printf(backend, "%s\n", line);
	}
}

gboolean check_probe(const char *library, struct check_server *out, GError **error)
{
	GString *backend;
	char *text;
	char **lines;

	memset(out, 0, sizeof(*out));
	if (!check_in_child(ask, (void *)library, &text, error))
		return FALSE;
	lines = g_strsplit(text, "\n", -1);
	backend = g_string_new(NULL);
	for (char **line = lines; *line != NULL; line++)
		take_line(*line, out, backend);
	g_strfreev(lines);
	g_free(text);
	out->backend = g_string_free(backend, backend->len == 0);
	return TRUE;
}

void check_server_clear(struct check_server *server)
{
	g_clear_pointer(&server->backend, g_free);
}
