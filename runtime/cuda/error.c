/* SPDX-License-Identifier: Apache-2.0
 *
 * The names and short texts of CUDA's codes. No state.
 */
#include "cuda-internal.h"

static const struct error {
	int code;
	const char *name, *text;
} errors[] = {
#define ROW(code, name, text) { code, #name, text },
	CUDA_ERRORS(ROW){ 0, NULL, NULL },
};

/* The last row, of no code, where there is none such. */
static const struct error *find(CUresult code)
{
	const struct error *row = errors;

	while (row->name != NULL && row->code != (int)code)
		row++;
	return row;
}

const char *cuda_error_name(CUresult code)
{
	return find(code)->name;
}

static CUresult give(const char **out, const char *value)
{
	*out = value;
	return value != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
	CUDA_ANSWERS(CUDA_IS_NULL(name) ?: give(name, find(error)->name));
CUresult cuGetErrorString(CUresult error, const char **text)
	CUDA_ANSWERS(CUDA_IS_NULL(text) ?: give(text, find(error)->text));
