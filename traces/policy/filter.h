/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy's filter for the history of one device: it takes the allocator's events, and emits
 * driver calls and the events of the policy's own segments and blocks. The consumer reports
 * whether a call found memory; if not, a policy may release some and ask again.
 */
#ifndef NPUSIM_TRACES_FILTER_H
#define NPUSIM_TRACES_FILTER_H

#include "cache.h"
#include "read/record-reader.h"

/* What goes out has NPU_TRACE_HAS_START while the start is rebuilt. */
struct filter_output {
	/* A driver call, whose names are the policy's: process is the device + 1. *out_va, for a
	 * RESERVE or MALLOC: the address that it got. Its va, where it has one, is the address that
	 * the file has for what it gets. CACHE_FAILED, and error: anything but a lack of memory. */
	enum cache_answer (*call)(gpointer data, const struct npu_trace_record *call,
				  guint64 *out_va, GError **error);
	/* An event that is true from now on. Of another allocator than the file's, `rounded` is
	 * what it takes of memory, and an ALLOC lies at va. */
	void (*event)(gpointer data, const struct record_item *event);
	/* What was there at the start is rebuilt: what follows is of the window. */
	void (*started)(gpointer data);
	/* The device has no memory for `size` bytes, which a site of the trace asked for. */
	void (*lost)(gpointer data, guint64 size, guint32 site);
	gpointer data;
	guint64 total; /* bytes of the device that programs can get */
};
struct filter {
	/* Rebuilds what was there at the start: memory, then blocks, each by address. FALSE and
	 * error. */
	gboolean (*start)(struct filter *filter, const GArray *items, GError **error);
	/* Any event of an allocator; the same. */
	gboolean (*step)(struct filter *filter, const struct record_item *item, GError **error);
	/* Where the memory at the file's address lies now; 0: nowhere. */
	guint64 (*find)(const struct filter *filter, guint64 address);
	/* Forgets everything; gives nothing back. */
	void (*close)(struct filter *filter);
	struct trace_device *trace; /* of its device */
	struct filter_output out;
	guint64 emptied; /* times that a cache was emptied */
};

/* The file's own segments: recorded.c. `trace` is borrowed, `out` is copied. */
struct filter *filter_recorded(struct trace_device *trace, const struct filter_output *out);
/* The blocks served by another allocator: allocator.c. `options` are borrowed, too. */
struct filter *filter_allocator(const struct policy_options *options, struct trace_device *trace,
				const struct filter_output *out);

#endif
