/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of the HBM as a file, in the format in which DRAMsim3 writes them for the verifiers
 * of DRAM models: clock, command, channel, rank, bank group, bank, row, column, in the order of
 * time. A channel is a pseudo channel here.
 */
#ifndef NPUSIM_SIM_BENCH_COMMANDS_H
#define NPUSIM_SIM_BENCH_COMMANDS_H

#include "sim/profile.h"

/* Of the simulation that is opened next. Returns NULL, or what is wrong, to be g_free()d. */
char *commands_begin(const char *path);
/* Writes them. `bursts`: that the HBM has counted; with accesses so large that it books them in one
 * step, without commands, the file would not be whole. Returns as above. */
char *commands_end(const struct sim_profile *profile, uint64_t bursts);

#endif
