// SPDX-License-Identifier: Apache-2.0
//
// The floor of start-bench: a program that has GLib and libsystemc, and does nothing with them.
#include <glib.h>
#include <systemc>

extern "C" __attribute__((visibility("default"))) int sc_main(int, char **);

int sc_main(int, char **)
{
	return 0;
}

int main()
{
	return g_get_prgname() && !sc_core::sc_release();
}
