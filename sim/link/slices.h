// SPDX-License-Identifier: Apache-2.0
//
// How finely the bandwidth of a link is booked.
#ifndef NPUSIM_SIM_LINK_SLICES_H
#define NPUSIM_SIM_LINK_SLICES_H

namespace npusim
{

// Slices of 0.26 us, 1.1 ms of them: a piece of 2 MiB takes 12 to 80 us, an engine has two on the
// way, and 72 cores 64 KiB each.
constexpr unsigned link_slice_lg2 = 18, link_slices_lg2 = 12;

} // namespace npusim

#endif
