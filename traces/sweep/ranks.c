/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of an MPI job, as a sweep uses them: numbers from one to another, nothing that waits.
 * sweep.py loads it under mpirun or srun, so that npusim starts without an MPI.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT bool sweep_ranks_begin(int *out_rank, int *out_size)
{
	return MPI_Init(NULL, NULL) == MPI_SUCCESS &&
	       MPI_Comm_rank(MPI_COMM_WORLD, out_rank) == MPI_SUCCESS &&
	       MPI_Comm_size(MPI_COMM_WORLD, out_size) == MPI_SUCCESS;
}

/* Does not wait: a number is less than any limit of what is sent at once. */
EXPORT void sweep_ranks_send(int to, long what)
{
	MPI_Send(&what, 1, MPI_LONG, to, 0, MPI_COMM_WORLD);
}

/* False: nothing has come. */
EXPORT bool sweep_ranks_receive(int *out_from, long *out_what)
{
	MPI_Status status;
	int there = 0;

	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, &status);
	if (!there)
		return false;
	*out_from = status.MPI_SOURCE;
	MPI_Recv(out_what, 1, MPI_LONG, *out_from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return true;
}
