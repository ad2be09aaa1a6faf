/* SPDX-License-Identifier: Apache-2.0
 *
 * Digit by digit.
 */
#include "number.h"

gboolean number_parse(const char *text, gsize length, guint64 *out)
{
	gboolean hex = length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	guint64 v = 0, base = hex ? 16 : 10;

	for (gsize i = hex ? 2 : 0; i < length; i++) {
		int digit = hex ? g_ascii_xdigit_value(text[i]) : g_ascii_digit_value(text[i]);
		if (digit < 0 || !g_uint64_checked_mul(&v, v, base) ||
		    !g_uint64_checked_add(&v, v, (guint64)digit))
			return FALSE;
	}
	if (length == 0)
		return FALSE;
	*out = v;
	return TRUE;
}
