/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs get from functions that npusim does not model, on the library itself: they link,
 * answer "not supported" in the form of their type, and say which call it was.
 */
#include <dlfcn.h>

#include "acl/acl.h"
#include "harness/test.h"

enum answer { AN_ERROR, A_POINTER, A_NUMBER };

static const struct function {
	const char *name;
	enum answer answer;
} functions[] = {
#define ERROR(name, parameters)         { #name, AN_ERROR },
#define POINTER(type, name, parameters) { #name, A_POINTER },
#define UINT32(name, parameters)        { #name, A_NUMBER },
#include "runtime/acl-unmodelled-list.h"
#undef ERROR
#undef POINTER
#undef UINT32
};

static void *library;

/* None of them looks at an argument. Where the ABI passes a structure by its address (AArch64),
 * there must be one to copy it from. */
#define PARAMETERS void *, void *, void *, void *, void *, void *, void *, void *
#define ARGUMENTS  zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros
static char zeros[4096];

static void check_answer(const struct function *function)
{
	union {
		void *object;
		aclError (*error)(PARAMETERS);
		void *(*pointer)(PARAMETERS);
		uint32_t (*number)(PARAMETERS);
	} call;

	call.object = dlsym(library, function->name);
	ASSERT_NOT_NULL(call.object);
	switch (function->answer) {
	case AN_ERROR:
		EXPECT_EQ(call.error(ARGUMENTS), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
		break;
	case A_POINTER:
		EXPECT_NULL(call.pointer(ARGUMENTS));
		break;
	case A_NUMBER:
		EXPECT_EQ(call.number(ARGUMENTS), UINT32_MAX);
		break;
	}
}

TEST(unmodelled, every_function_answers_and_says_which_it_was)
{
	union {
		void *object;
		const char *(*text)(void);
	} message;

	library = dlopen(LIBASCENDCL, RTLD_NOW | RTLD_LOCAL);
	ASSERT_NOT_NULL(library);
	message.object = dlsym(library, "aclGetRecentErrMsg");
	ASSERT_NOT_NULL(message.object);
	ASSERT_EQ(sizeof(functions) / sizeof(functions[0]), 211u);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		NOTE("%s", functions[i].name);
		check_answer(&functions[i]);
		const char *text = message.text();
		if (EXPECT_NOT_NULL(text)) {
			EXPECT_CONTAINS(text, functions[i].name);
			EXPECT_CONTAINS(text, "runtime/COVERAGE.md");
		}
	}
}
