/* SPDX-License-Identifier: Apache-2.0
 *
 * Condition code of conditional entries: registers of 64 bits, of which the first is 0, and
 * instructions of 32 bits, some with 32 bits of immediate behind them. Known are those that the
 * value waits of CANN's runtime consist of (v8.5.0, src/runtime/feature: inc/stars/
 * stars_base_cond_isa_define.hpp and inc/cond_isa/v100/stars_cond_isa_struct.hpp for the encoding,
 * src/task/stars_cond_isa_helper.cc:1615 and 1699 for the code; v9.1.0, src/runtime/core/src/task/
 * stars_cond_isa_helper.cc:1661, whose stores run only while its profiler does).
 */
#include "queue/queue.h"

#define CODE_WORDS 1024u /* of called code */
#define STEPS_MAX  65536u
#define LOW_BITS   49u /* of a register: what LLWI and LOAD_IMM give */

enum {
	LOAD_IMM = 0x07,
	ADD_IMM = 0x13,
	STREAM = 0x2b,
	REGISTERS = 0x33,
	LOAD_WORD = 0x5b,
	BRANCH = 0x63,
	CALL = 0x6b,
	SYSTEM = 0x73
};

static bool branches(uint32_t how, uint64_t a, uint64_t b)
{
	const bool taken[8] = {
		a == b, a != b, [4] = (int64_t)a < (int64_t)b, [5] = (int64_t)a >= (int64_t)b,
		a < b,  a >= b
	};

	return taken[how];
}

/* `steps`: instructions that are left; `called`: the code is a function already. */
static enum condition_end run_code(struct condition *k, uint64_t r[8], const uint32_t *code,
				   unsigned words, unsigned *steps, bool called)
{
	uint64_t jump = 0; /* in units of 16 instructions */
	uint32_t called_code[CODE_WORDS];

	for (unsigned pc = 0; pc < words; r[0] = 0) {
		uint32_t word = code[pc++], next = pc < words ? code[pc] : 0, how = word >> 12 & 7;
		uint64_t a = r[word >> 15 & 7], b = r[word >> 20 & 7], *to = &r[word >> 7 & 7];
		uint64_t wide = (uint64_t)(word >> 15) << 32 | next;
		enum condition_end end;

		k->word = word;
		if (--*steps == 0)
			return CONDITION_BAD;
		switch ((word & 0x7f) | how << 8) {
		case ADD_IMM:
			*to = a + (uint64_t)((int32_t)word >> 20);
			break;
		case REGISTERS | 6 << 8:
			*to = a | b;
			break;
		case REGISTERS | 7 << 8:
			*to = a & b;
			break;
		case LOAD_WORD: /* the high bits */
			*to = (*to & ((UINT64_C(1) << LOW_BITS) - 1)) | (uint64_t)(word >> 17)
										<< LOW_BITS;
			break;
		case LOAD_WORD | 1 << 8: /* the low ones */
			*to = (*to >> LOW_BITS << LOW_BITS) | wide;
			pc++;
			break;
		case LOAD_IMM | 3 << 8:
			if (!k->read(k->arg, wide, to, sizeof(*to)))
				return CONDITION_BAD;
			pc++;
			break;
		case SYSTEM | 1 << 8: /* of one register, the branches' target */
			jump = a;
			break;
		case STREAM:
		case STREAM | 4 << 8:
			k->sq = (how == 0 ? next : a) & 0x7ff;
			k->head = (how == 0 ? next : (uint32_t)a) >> 16;
			return CONDITION_GOTO;
		case CALL:
			b &= 0xfffff;
			if (called || b > CODE_WORDS ||
			    !k->read(k->arg, a, called_code, (unsigned)b * sizeof(word)))
				return CONDITION_BAD;
			end = run_code(k, r, called_code, (unsigned)b, steps, true);
			if (end != CONDITION_DONE)
				return end;
			break;
		default:
			if ((word & 0x7f) != BRANCH || how == 2 || how == 3)
				return CONDITION_BAD;
			if (branches(how, a, b))
				pc = (unsigned)(jump << 4 | (word >> 7 & 15));
		}
	}
	return CONDITION_DONE;
}

enum condition_end condition_run(struct condition *condition, const uint32_t *code, unsigned words)
{
	uint64_t r[8] = { 0 };
	unsigned steps = STEPS_MAX;

	return run_code(condition, r, code, words, &steps, false);
}
