/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a host access to device memory.
 */
#ifndef NPUSIM_BSIM_FAULT_H
#define NPUSIM_BSIM_FAULT_H

/* Takes SIGSEGV if nobody has it. Once a process. */
void fault_install(void);

#endif
