/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets errors.
 */
#include "failure.h"

GQuark trace_error_quark(void)
{
	return g_quark_from_static_string("npusim-trace");
}

gboolean refuse(GError **error, GQuark domain, gint code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_propagate_error(error, g_error_new_valist(domain, code, format, args));
	va_end(args);
	return FALSE;
}
