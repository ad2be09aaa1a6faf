/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that has the name of a vendor's, and nothing of it but one function.
 */
__attribute__((visibility("default"))) int NAME(void);

int NAME(void)
{
	return 21;
}
