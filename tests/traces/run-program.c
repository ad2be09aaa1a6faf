/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that is linked with a vendor's libraries, and finds them by its DT_RPATH.
 */
int foreign_ascendcl(void);
int foreign_ascend_hal(void);

int main(void)
{
	return foreign_ascendcl() + foreign_ascend_hal();
}
