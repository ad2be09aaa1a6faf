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

static bool want(struct reader *r, const char *what)
{
	r->wanted = what;
	return false;
}

/* The next character behind blanks. */
static char peek(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
	return *r->at;
}

static bool take(struct reader *r, char c, const char *what)
{
	if (peek(r) != c)
		return want(r, what);
	r->at++;
	return true;
}

static bool read_escape(struct reader *r)
{
	size_t digits = *++r->at == 'u' ? strspn(r->at + 1, "0123456789abcdefABCDEF") : 0;

	if (*r->at == 'u' && digits < 4)
		return want(r, "four hexadecimal digits");
	if (*r->at == '\0' || strchr("u\"\\/bfnrt", *r->at) == NULL)
		return want(r, "an escape");
	r->at += *r->at == 'u' ? 5 : 1;
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
	r->at += strspn(r->at, "0123456789");
	return true;
}

static bool read_number(struct reader *r)
{
	r->at += *r->at == '-';
	if (*r->at == '0')
		r->at++;
	else if (!read_digits(r))
		return false;
	if (*r->at == '.' && (r->at++, !read_digits(r)))
		return false;
	if (*r->at != 'e' && *r->at != 'E')
		return true;
	r->at++;
	r->at += *r->at == '+' || *r->at == '-';
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
	bool more = peek(r) != end;

	while (more) {
		if (!element(r))
			return false;
		more = peek(r) != end;
		if (more && !take(r, ',', what))
			return false;
	}
	r->at++;
	return true;
}

static bool read_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };

	for (unsigned i = 0; i < 3; i++)
		if (strncmp(r->at, words[i], strlen(words[i])) == 0) {
			r->at += strlen(words[i]);
			return true;
		}
	return want(r, "a value");
}

static bool read_value(struct reader *r)
{
	char first = peek(r);
	bool fine;

	if (first == '"')
		return read_string(r);
	if (first == '-' || isdigit((unsigned char)first))
		return read_number(r);
	if (first != '{' && first != '[')
		return read_word(r);
	if (++r->depth > NESTING_MAX)
		return want(r, "no deeper nesting than 64");
	r->at++;
	fine = first == '{' ? read_elements(r, '}', read_member, "',' or '}'")
			    : read_elements(r, ']', read_value, "',' or ']'");
	r->depth--;
	return fine;
}

bool config_is_json(const char *text, char *wrong, size_t wrong_bytes)
{
	struct reader r = { .at = text, .wanted = "the end" };
	unsigned line = 1;
	const char *start = text;

	if (peek(&r) == '\0' || (read_value(&r) && peek(&r) == '\0'))
		return true;
	for (const char *c = text; c < r.at; c++)
		if (*c == '\n') {
			line++;
			start = c + 1;
		}
	snprintf(wrong, wrong_bytes, "line %u, column %zu: %s is expected there", line,
		 (size_t)(r.at - start) + 1, r.wanted);
	return false;
}
