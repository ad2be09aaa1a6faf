/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of an MPI job, as a sweep uses them: numbers from one to another, nothing that waits.
 * sweep.py loads it under mpirun or srun, so that npusim starts without an MPI.
 */
#include <mpi.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

static int look_ms = 1;

/* Its rank, how many there are, how many of its node have the same color before it, and in all. */
EXPORT bool sweep_ranks_begin(int color, int out_known[4])
{
	MPI_Comm node, alike;

	return MPI_Init(NULL, NULL) == MPI_SUCCESS &&
	       MPI_Comm_rank(MPI_COMM_WORLD, &out_known[0]) == MPI_SUCCESS &&
	       MPI_Comm_size(MPI_COMM_WORLD, &out_known[1]) == MPI_SUCCESS &&
	       MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) ==
		       MPI_SUCCESS &&
	       MPI_Comm_split(node, color, 0, &alike) == MPI_SUCCESS &&
	       MPI_Comm_rank(alike, &out_known[2]) == MPI_SUCCESS &&
	       MPI_Comm_size(alike, &out_known[3]) == MPI_SUCCESS;
}

/* Does not wait: a number is less than any limit of what is sent at once. */
EXPORT void sweep_ranks_send(int to, long what)
{
	MPI_Send(&what, 1, MPI_LONG, to, 0, MPI_COMM_WORLD);
	look_ms = 1;
}

/* Looks once, and again for so long while the file has nothing to read, ever more seldom while
 * nothing comes: an MPI that waits by itself takes a processor, and each look takes one from a row.
 * From whom, and what; false: nothing has come. */
EXPORT bool sweep_ranks_receive(int file, int ms, long out_message[2])
{
	struct pollfd row = { file, POLLIN, 0 };
	MPI_Status status;
	int there;

	while (MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status), !there) {
		if (ms <= 0 || poll(&row, 1, look_ms) != 0)
			return false;
		ms -= look_ms;
		if (look_ms < 16)
			look_ms *= 2;
	}
	look_ms = 1;
	out_message[0] = status.MPI_SOURCE;
	MPI_Recv(&out_message[1], 1, MPI_LONG, status.MPI_SOURCE, 0, MPI_COMM_WORLD, &status);
	return true;
}
