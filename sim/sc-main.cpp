// SPDX-License-Identifier: Apache-2.0
//
// libsystemc has a main() that calls sc_main(), and is linked with immediate binding: whatever
// loads it must define sc_main, or it cannot be loaded. This one is never called; it stands alone
// so that a program or library takes it, and exports it, only where libsystemc comes with it.

extern "C" __attribute__((visibility("default"))) int sc_main(int argc, char **argv);

int sc_main(int, char **)
{
	return 0;
}
