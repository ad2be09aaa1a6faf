/* SPDX-License-Identifier: Apache-2.0
 *
 * The value of site=: each stack is put in words once.
 */
#include "trace/site.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the sites */
static char **sites;                                     /* texts, by the number of the stack */
static uint32_t site_count;

const char *trace_site(npu_stack stack)
{
	void *const *frames;
	unsigned count = npu_stack_frames(stack, &frames);
	char *text = NULL;

	if (count == 0)
		return NULL;
	pthread_mutex_lock(&lock);
	if (stack >= site_count) {
		uint32_t room = stack + 256;
		char **more = realloc(sites, room * sizeof(*more));

		if (more != NULL) {
			memset(more + site_count, 0, (room - site_count) * sizeof(*more));
			sites = more;
			site_count = room;
		}
	}
	for (unsigned i = 0; stack < site_count && sites[stack] == NULL && i < count; i++) {
		struct npu_frame frame = npu_stack_look(frames[i]);
		const char *where = frame.file != NULL ? frame.file : frame.object;

		npu_text_add(&text, "%s%s (%s", i > 0 ? "\n" : "",
			     frame.function != NULL ? frame.function : "?",
			     where != NULL ? where : "?");
		npu_text_add(&text, frame.file != NULL ? ":%ju)" : "+%#jx)",
			     frame.file != NULL ? (uintmax_t)frame.line : (uintmax_t)frame.offset);
		if (frame.function != NULL && strcmp(frame.function, "main") == 0)
			break;
	}
	if (text != NULL)
		sites[stack] = text;
	text = stack < site_count ? sites[stack] : NULL;
	pthread_mutex_unlock(&lock);
	return text;
}
