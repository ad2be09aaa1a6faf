/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the parts of npusim check for its command. Nothing here is called in a process that has
 * a device open: they never call an ACL library themselves, but start processes that do.
 */
#ifndef NPUSIM_TRACES_CHECK_H
#define NPUSIM_TRACES_CHECK_H

#include "case.h"
#include "sim/fit.h"

/* ---- cases.c ---- */

#define CHECK_DEVICES_MAX 64

struct check_server {
	char soc[64];
	unsigned devices;
	guint64 free_bytes[CHECK_DEVICES_MAX], total_bytes[CHECK_DEVICES_MAX];
	const char *trouble[CHECK_DEVICES_MAX]; /* why a device cannot be used; or NULL */
	char *backend; /* "key=value" lines; "" for a library that is not npusim's */
};
/* Asks `library`, and of each device, in a process of its own, with the environment as it is. FALSE
 * and error in one sentence otherwise: what the library says, or that it crashed. */
gboolean check_probe(const char *library, struct check_server *out, GError **error);

/* Asks at the case's end what can be seen of it from outside: whose the addresses are that its
 * first process has made, their ranges, who may reach them, the properties of the handles that it
 * has still, and how much memory is held, if it has one device. Nothing is expected of the answers:
 * they are for check_compare(). */
void check_case_watch(struct test_case *test);
/* Fails `result` where it answers other than `other`, or for another reason of the driver's, the
 * same case on another backend, and says how, with what documents and the driver's source say. */
void check_compare(struct case_result *result, const struct case_result *other, const char *name,
		   const char *other_name);

/* ---- report.c ---- */

struct check_report {
	gint64 start_us; /* since 1970 */
	const char *backend;
	struct check_server server;
	GPtrArray *results;                /* of struct case_result */
	unsigned counts[CASE_SKIPPED + 1]; /* of them, by status */
};
void check_report_table(GString *out, const struct check_report *report);
void check_report_tap(GString *out, const struct check_report *report);
/* Every step of every case, one a line, with its answer and its time; tab separated. */
void check_report_calls(GString *out, const struct check_report *report);

/* ---- measure.c ---- */

/* Measures calls, copies and waits on a device (a user id), up to `most` bytes at a time, in
 * processes of its own; peer: another device, or the same. NULL and error, or the figures. */
GArray *check_measure(const char *library, unsigned device, unsigned peer, guint64 most,
		      GError **error);
/* A line each, with what `modelled`, figures too, has for the same. */
void check_figures_text(GString *out, const GArray *figures, const GArray *modelled);

#endif
