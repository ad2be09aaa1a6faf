/* SPDX-License-Identifier: Apache-2.0
 *
 * What every ACL header needs. A program may mix these headers with some of CANN's, in any order:
 * those of one name have one guard, and one content.
 */
#ifndef INC_EXTERNAL_ACL_ACL_BASE_H_
#define INC_EXTERNAL_ACL_ACL_BASE_H_

#include "acl_base_rt.h"
#include "error_codes/rt_error_codes.h"

#endif
