/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that a recorder writes, and what happens to it in a child of fork(); the names in it
 * are recorder.c's.
 */
#ifndef NPUSIM_TRACE_RECORDER_FILE_H
#define NPUSIM_TRACE_RECORDER_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "trace/names.h"

struct trace_recorder {
	pthread_mutex_t lock; /* of all below */
	uint64_t start_ns;    /* does not change */
	int fd;               /* -1: to be opened with the next line, or `over` */
	bool over;
	char *path, *about;
	uint32_t serial;       /* no other recorder has it, nor this one's in another process */
	uint32_t threads;      /* numbers given out */
	uint32_t numbers[128]; /* the last one given out, by letter */
	struct trace_names places, handles, shares;
	LIST_ENTRY(trace_recorder) link; /* of all, for fork() */
};

/* The next serial. */
uint32_t trace_recorder_serial(void);
/* Joins, leaves the list of those that a fork() has to see to. */
void trace_recorder_enlist(struct trace_recorder *recorder);
void trace_recorder_delist(struct trace_recorder *recorder);
/* Why no file can be made or written there, as far as that can be told without making it; NULL:
 * nothing is in the way. */
const char *trace_path_problem(const char *path);
/* Opens the file, another where another process of the run has it, and writes its head. False:
 * errno says why. */
bool trace_file_open(struct trace_recorder *recorder);
/* Whole lines. Lock held. */
void trace_file_write(struct trace_recorder *recorder, const char *text, size_t length);

#endif
