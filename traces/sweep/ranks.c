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

EXPORT bool sweep_ranks_begin(int out_rank_and_size[2])
{
	return MPI_Init(NULL, NULL) == MPI_SUCCESS &&
	       MPI_Comm_rank(MPI_COMM_WORLD, &out_rank_and_size[0]) == MPI_SUCCESS &&
	       MPI_Comm_size(MPI_COMM_WORLD, &out_rank_and_size[1]) == MPI_SUCCESS;
}

/* Does not wait: a number is less than any limit of what is sent at once. */
EXPORT void sweep_ranks_send(int to, long what)
{
	MPI_Send(&what, 1, MPI_LONG, to, 0, MPI_COMM_WORLD);
}

/* Looks once, and so many times more, 2 ms apart, while the file has nothing to read: an MPI that
 * waits by itself takes a processor. From whom, and what; false: nothing has come. */
EXPORT bool sweep_ranks_receive(int file, int more, long out_message[2])
{
	MPI_Status status;
	int there = 0;

	do
		MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status);
	while (!there && more-- > 0 && poll(&(struct pollfd){ file, POLLIN, 0 }, 1, 2) == 0);
	if (!there)
		return false;
	out_message[0] = status.MPI_SOURCE;
	MPI_Recv(&out_message[1], 1, MPI_LONG, status.MPI_SOURCE, 0, MPI_COMM_WORLD, &status);
	return true;
}
