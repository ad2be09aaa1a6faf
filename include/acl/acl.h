/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs include: `#include "acl/acl.h"`. It brings the runtime API, acl_rt.h. CANN's own
 * acl.h also brings the operator and model APIs; those are not modelled (runtime/COVERAGE.md).
 */
#ifndef INC_EXTERNAL_ACL_ACL_H_
#define INC_EXTERNAL_ACL_ACL_H_

#include "acl_rt.h"

#endif
