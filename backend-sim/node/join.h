/* SPDX-License-Identifier: Apache-2.0
 *
 * How processes find and join a node, for the files of the node that join or look: the sockets by
 * which members are found, the start-up lock, and membership itself.
 */
#ifndef NPUSIM_NODE_JOIN_H
#define NPUSIM_NODE_JOIN_H

#include <glib.h>

#include "records.h"

/* ---- socket.c */

/* What the names of all sockets of this user begin with. free(). */
char *socket_prefix(void);
/* The socket by which others find the member; -1 and errno. */
int node_announce(const char *name, pid_t pid, int control_fd);
/* One newcomer at a time: waits while others join, in order. False and *error. */
bool node_startup_lock(const char *name, char **error);
void node_startup_unlock(void);

/* ---- discover.c */

struct candidate {
	char name[NODE_NAME_MAX + 1];
	pid_t pid;
	int fd;
};
/* Members of the node (of all of this user's with NULL) by what the kernel lists; none of them need
 * live. Of struct candidate. NULL and errno: it cannot be looked at. */
GArray *node_discover(const char *name);
/* The descriptor `fd` of the process, opened again; -1 and errno: ENOENT or ESRCH, it is not there.
 * Opens nothing but a memfd of that name that is ours. */
int node_open_descriptor(pid_t pid, int fd, const char *file);

/* ---- join.c */

/* The name of its memfd. */
void node_file_name(const char *name, char out[NODE_FILE_NAME]);
/* Joins a node that runs, to look at it. NULL: there is none any more, or it cannot be (*error). */
struct node *node_attach(const char *name, char **error);

#endif
