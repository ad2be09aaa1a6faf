/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that this process has shared and given back while other processes still hold it, or its
 * key is there, and what nobody imported. Who holds it the driver below knows (npusimHolders).
 */
#include "validate/validate.h"

#include "base/base.h"

#include <string.h>
#include <unistd.h>

#define HOLDERS_MAX 16u
#define LOOK_EVERY  1024u

/* A handle that was exported, or an allocation that was given a name. */
struct share {
	struct object object; /* as it was then */
	uint64_t shareable;
	char name[80]; /* "": a handle */
	npu_stack ended;
	bool gone; /* the object is */
};

void validate_kept_share(struct validate *v, const struct object *object, uint64_t shareable,
			 const char *name)
{
	struct share *share;

	if (object == NULL)
		return;
	if (v->shares->len % LOOK_EVERY == LOOK_EVERY - 1)
		validate_kept_look(v); /* where nobody marks, those that are gone go here */
	share = g_new0(struct share, 1);
	share->object = *object;
	share->shareable = shareable;
	g_strlcpy(share->name, name, sizeof(share->name));
	g_ptr_array_add(v->shares, share);
}

/* True: there is nothing more to say of it. */
static bool look(struct validate *v, const struct share *share)
{
	const struct report *report = REPORT(KEPT, 0, .then = "it was given back by",
					     .before = share->ended, .made = share->object.made);
	int pids[HOLDERS_MAX];
	uint32_t count = HOLDERS_MAX;
	char *holders = NULL;
	drvError_t code = v->layer.below.npusimHolders(v->layer.driver.lower, share->shareable,
						       share->name[0] != '\0' ? share->name : NULL,
						       pids, &count);

	if (code == DRV_ERROR_NOT_EXIST)
		report_make(report,
			    "the handle %#llx, %s, was exported and given back, and nobody has "
			    "imported it",
			    (unsigned long long)share->object.key,
			    npu_size_text(share->object.bytes));
	if (code != DRV_ERROR_NONE || count == 0)
		return true;
	for (uint32_t i = 0; i < MIN(count, HOLDERS_MAX); i++) {
		if (pids[i] == getpid()) { /* a mapping, or an import of its own */
			free(holders);
			return false;
		}
		npu_text_add(&holders, "%s%d", i > 0 ? ", " : "", pids[i]);
	}
	report_make(report,
		    "%s at %#llx, %s, that this process shared and gave back, is still "
		    "held by process %s%s",
		    object_words[share->object.kind].name, (unsigned long long)share->object.key,
		    npu_size_text(share->object.bytes), holders,
		    count > HOLDERS_MAX ? " and others" : "");
	free(holders);
	return true;
}

void validate_kept_look(struct validate *v)
{
	for (guint i = v->shares->len; i-- > 0;) {
		const struct share *share = g_ptr_array_index(v->shares, i);

		if (share->gone && look(v, share))
			g_ptr_array_remove_index(v->shares, i);
	}
}

void validate_kept_end(struct validate *v, const struct object *object, npu_stack stack)
{
	for (guint i = 0; i < v->shares->len; i++) {
		struct share *share = g_ptr_array_index(v->shares, i);

		if (share->gone || share->object.key != object->key ||
		    share->object.kind != object->kind)
			continue;
		share->gone = true;
		share->ended = stack;
		if (share->name[0] != '\0' && !v->cuda)
			report_make(REPORT(KEPT, stack, .made = object->made),
				    "%s gives %#llx, %s, back before its key %.16s... is closed, "
				    "by which others may still open it",
				    call_of(stack), (unsigned long long)object->key,
				    npu_size_text(object->bytes), share->name);
	}
}

void validate_kept_name_end(struct validate *v, const char *name)
{
	for (guint i = v->shares->len; i-- > 0;) {
		const struct share *share = g_ptr_array_index(v->shares, i);

		if (strcmp(share->name, name) == 0)
			g_ptr_array_remove_index(v->shares, i);
	}
}
