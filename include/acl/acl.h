/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file acl.h
 *
 * What programs include: `#include "acl/acl.h"`. It brings the runtime API, acl_rt.h. CANN's own
 * acl.h also brings the operator and model APIs; those are not modelled (runtime/COVERAGE.md).
 */
#ifndef NPUSIM_ACL_H
#define NPUSIM_ACL_H

#include "acl_rt.h"

#endif
