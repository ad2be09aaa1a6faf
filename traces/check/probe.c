/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out which devices there are to check. It asks in a separate process, so that a crash of
 * the driver becomes an error message.
 */
#include "check.h"
#include "child.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "npusim/npusim.h"

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

	alarm(CHILD_ANSWER_SECONDS);
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
	alarm(CHILD_ANSWER_SECONDS);
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

gboolean check_probe(const char *library, struct check_server *out, GError **error)
{
	g_autofree char *text = NULL;

	memset(out, 0, sizeof(*out));
	if (!child_text(ask, (void *)library, &text, error))
		return FALSE;
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	GString *backend = g_string_new(NULL);
	for (char **line = lines; *line != NULL; line++) {
		unsigned d = out->devices;
		if (g_str_has_prefix(*line, "\001soc "))
			g_strlcpy(out->soc, *line + 5, sizeof(out->soc));
		else if (sscanf(*line, "\001device %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
				&out->free_bytes[d], &out->total_bytes[d]) == 2)
			out->devices++;
		else if (**line != '\0')
			g_string_append_printf(backend, "%s\n", *line);
	}
	out->backend = g_string_free(backend, backend->len == 0);
	return TRUE;
}

void check_server_clear(struct check_server *server)
{
	g_clear_pointer(&server->backend, g_free);
}
