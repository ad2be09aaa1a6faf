/* SPDX-License-Identifier: Apache-2.0
 *
 * A validating JSON parser that stores nothing: it finds where a text stops being JSON. It
 * implements RFC 8259 and knows no configuration.
 */
#include "acl-internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NESTING_MAX 64

struct reader {
	const char *at;
	const char *wanted; /* what was not there */
	unsigned depth;
};

static bool read_value(struct reader *r);

static void skip_blanks(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
}

static bool want(struct reader *r, const char *what)
{
	r->wanted = what;
	return false;
}

static bool take(struct reader *r, char c, const char *what)
{
	skip_blanks(r);
	if (*r->at != c)
		return want(r, what);
	r->at++;
	return true;
}

static bool read_escape(struct reader *r)
{
	r->at++;
	if (*r->at == 'u') {
		for (int i = 1; i <= 4; i++)
			if (!isxdigit((unsigned char)r->at[i]))
				return want(r, "four hexadecimal digits");
		r->at += 5;
		return true;
	}
	if (*r->at == '\0' || strchr("\"\\/bfnrt", *r->at) == NULL)
		return want(r, "an escape");
	r->at++;
	return true;
}

static bool read_string(struct reader *r)
{
	if (!take(r, '"', "a string"))
		return false;
	while (*r->at != '"') {
		if ((unsigned char)*r->at < 0x20)
			return want(r, "the end of a string");
		if (*r->at != '\\')
			r->at++;
		else if (!read_escape(r))
			return false;
	}
	r->at++;
	return true;
}

static bool read_digits(struct reader *r)
{
	if (!isdigit((unsigned char)*r->at))
		return want(r, "a digit");
	while (isdigit((unsigned char)*r->at))
		r->at++;
	return true;
}

static bool read_number(struct reader *r)
{
	if (*r->at == '-')
		r->at++;
	if (*r->at == '0')
		r->at++;
	else if (!read_digits(r))
		return false;
	if (*r->at == '.') {
		r->at++;
		if (!read_digits(r))
			return false;
	}
	if (*r->at != 'e' && *r->at != 'E')
		return true;
	r->at++;
	if (*r->at == '+' || *r->at == '-')
		r->at++;
	return read_digits(r);
}

static bool read_member(struct reader *r)
{
	return read_string(r) && take(r, ':', "':'") && read_value(r);
}

/* The elements up to `end`; the opening bracket is taken. */
static bool read_elements(struct reader *r, char end, bool (*element)(struct reader *),
			  const char *what)
{
	skip_blanks(r);
	if (*r->at == end) {
		r->at++;
		return true;
	}
	while (element(r)) {
		skip_blanks(r);
		if (*r->at == end) {
			r->at++;
			return true;
		}
		if (!take(r, ',', what))
			return false;
	}
	return false;
}

static bool read_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };

	for (unsigned i = 0; i < 3; i++) {
		size_t length = strlen(words[i]);

		if (strncmp(r->at, words[i], length) == 0) {
			r->at += length;
			return true;
		}
	}
	return want(r, "a value");
}

static bool read_value(struct reader *r)
{
	bool fine;

	skip_blanks(r);
	if (*r->at == '"')
		return read_string(r);
	if (*r->at == '-' || isdigit((unsigned char)*r->at))
		return read_number(r);
	if (*r->at != '{' && *r->at != '[')
		return read_word(r);
	if (++r->depth > NESTING_MAX)
		return want(r, "no deeper nesting than 64");
	fine = *r->at++ == '{' ? read_elements(r, '}', read_member, "',' or '}'")
			       : read_elements(r, ']', read_value, "',' or ']'");
	r->depth--;
	return fine;
}

bool config_is_json(const char *text, char *wrong, size_t wrong_bytes)
{
	struct reader r = { .at = text };
	unsigned line = 1;
	const char *start = text;

	skip_blanks(&r);
	if (*r.at == '\0')
		return true;
	if (read_value(&r)) {
		skip_blanks(&r);
		if (*r.at == '\0')
			return true;
		r.wanted = "the end";
	}
	for (const char *c = text; c < r.at; c++) {
		if (*c == '\n') {
			line++;
			start = c + 1;
		}
	}
	snprintf(wrong, wrong_bytes, "line %u, column %zu: %s is expected there", line,
		 (size_t)(r.at - start) + 1, r.wanted);
	return false;
}
