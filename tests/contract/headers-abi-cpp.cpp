// SPDX-License-Identifier: Apache-2.0
//
// The ACL headers in a C++ program: values, layouts, and how such programs use the names. That it
// compiles is the test; it also looks at what only shows at run time.

// Extensions for Python include acl.h like this.
extern "C" {
#include "acl/acl.h"
}
#include "headers-abi.h"

#include <cstdio>
#include <map>
#include <string>
#include <type_traits>

// Codes of the ACL are ints with a name in the global namespace, as `static const int` in CANN.
static_assert(std::is_same<std::remove_cv_t<decltype(ACL_SUCCESS)>, int>::value, "an int");
static_assert(::ACL_ERROR_INVALID_PARAM == 100000, "a name, not a macro");
static_assert(std::is_same<aclError, int>::value, "an int");

// Functions have C linkage, and the types that pointers to them have in programs.
static_assert(std::is_same<decltype(&aclrtMapMem),
			   aclError (*)(void *, size_t, size_t, void *, uint64_t)>::value,
	      "aclrtMapMem");
static_assert(
	std::is_same<decltype(&aclrtMallocPhysical),
		     aclError (*)(void **, size_t, const aclrtPhysicalMemProp *, uint64_t)>::value,
	"aclrtMallocPhysical");
static_assert(std::is_same<decltype(&aclFinalize), aclError (*)()>::value, "aclFinalize");
static_assert(std::is_same<decltype(&aclGetRecentErrMsg), const char *(*)()>::value, "text");

// Structures that are copied between processes and passed by value hold no surprises.
static_assert(std::is_trivially_copyable<aclrtMemFabricHandle>::value, "copied as bytes");
static_assert(std::is_trivially_copyable<aclrtDim3>::value, "passed by value to C");
static_assert(std::is_standard_layout<aclrtPhysicalMemProp>::value, "as in C");

// A weak reference: null on a library that lacks the function.
extern "C" aclError aclrtReserveMemAddressNoUCMemory(void **, size_t, size_t, void *, uint64_t)
	__attribute__((weak));

namespace user
{
// Programs give their own things the names of codes and types in namespaces of their own.
enum class result { ACL_SUCCESS = 0, ACL_ERROR_INTERNAL_ERROR = 1 };

template <typename Code> std::string name_of(Code code)
{
	static const std::map<int, std::string> names = {
		{ ACL_SUCCESS, "ACL_SUCCESS" },
		{ ACL_ERROR_RT_DRV_INTERNAL_ERROR, "ACL_ERROR_RT_DRV_INTERNAL_ERROR" },
	};
	auto found = names.find(code);
	return found == names.end() ? "?" : found->second;
}
} // namespace user

int main()
{
	auto ret = ACL_SUCCESS; // an int: what a call answers can be assigned to it
	const dim3 grid(2);
	int wrong = 0;

	if (user::name_of(ret) != "ACL_SUCCESS") {
		std::fprintf(stderr, "ACL_SUCCESS is not found by its value\n");
		wrong++;
	}
	ret = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
	if (user::name_of(ret) != "ACL_ERROR_RT_DRV_INTERNAL_ERROR") {
		std::fprintf(stderr, "507899 is not found by its value\n");
		wrong++;
	}
	if (grid.x != 2 || grid.y != 1 || grid.z != 1) {
		std::fprintf(stderr, "dim3(2) is %u, %u, %u\n", grid.x, grid.y, grid.z);
		wrong++;
	}
	return wrong != 0 || static_cast<int>(user::result::ACL_SUCCESS) != 0;
}
