/* SPDX-License-Identifier: Apache-2.0
 *
 * The page that npusim report writes, before and after the place of its data: embed.py assembles
 * it from the files of this folder when npusim is built.
 */
#ifndef NPUSIM_TRACES_REPORT_PAGE_H
#define NPUSIM_TRACES_REPORT_PAGE_H

extern const unsigned char report_page_before[], report_page_after[];
extern const unsigned long report_page_before_bytes, report_page_after_bytes;

#endif
