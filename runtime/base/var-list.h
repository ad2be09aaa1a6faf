/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables: NPU_VAR(name without NPUSIM_, values, default, reader, syntax, help),
 * for whoever includes it. Columns but the syntax are those of struct npu_var_info; a syntax is one
 * of env.c: CHOSEN from `values`, MATCHING an expression, CHECKED by a function, a NUMBER, or ANY
 * text.
 */
NPU_VAR(BACKEND, "hw, sim, auto", "auto", "runtime", CHOSEN,
	"which driver serves the calls; auto takes the server's own if it has a device")
NPU_VAR(HAL, "a path", "", "backend-hw", ANY,
	"the libascend_hal.so that backend hw opens; the loader's path if not given")
NPU_VAR(CONTRACT, "docs, driver", "docs", "backend-sim", CHOSEN,
	"whose answers where documentation and driver differ")
NPU_VAR(SOC, "a SoC as aclrtGetSocName names it, or a profile's file", "Ascend910B1", "backend-sim",
	ANY, "which device is modelled")
NPU_VAR(DEVICES, "1 to 16", "8", "backend-sim", NUMBER(1, 16, "a number of devices, 1 to 16"),
	"how many devices the simulated server has")
NPU_VAR(HBM, "a size, such as 64G", "", "backend-sim", SIZE,
	"HBM of each device; the SoC's own if not given")
NPU_VAR(HOST_MEMORY, "a size, such as 64G", "", "backend-sim", SIZE,
	"the host's memory that handles may take; the SoC's own if not given")
NPU_VAR(RUNTIME_MEMORY, "a size, such as 30M", "", "backend-sim", SIZE,
	"what CANN's runtime would hold of each device in each process; the SoC's own if not "
	"given, which is none")
NPU_VAR(TIMING, "on, off", "on", "backend-sim", CHOSEN,
	"whether calls and copies take simulated time")
NPU_VAR(CONTENTS, "on, off", "on", "backend-sim", CHOSEN,
	"whether copies and fills move bytes; off: they take their time alone")
NPU_VAR(POISON, "a byte, such as 0xff", "0", "backend-sim",
	MATCHING("^(0[xX]0*[0-9a-fA-F]{1,2}|0[0-7]{1,3}|[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5])$",
		 "a byte, 0 to 0xff"),
	"what new memory of a device holds, instead of zeros")
NPU_VAR(NODE, "a name", "default", "backend-sim", NAME,
	"the simulated server that this process belongs to")
NPU_VAR(SUPERNODE, "a name, none", "", "backend-sim", NAME,
	"the simulated supernode whose server this process belongs to, in place of NPUSIM_NODE; "
	"none: a 910C outside of supernodes")
NPU_VAR(SERVER, "0 to 47", "0", "backend-sim", NUMBER(0, 47, "a server's number, 0 to 47"),
	"which server of NPUSIM_SUPERNODE")
NPU_VAR(SERVERS, "1 to 48", "48", "backend-sim", NUMBER(1, 48, "a number of servers, 1 to 48"),
	"how many servers NPUSIM_SUPERNODE may have")
NPU_VAR(SERVER_FROM, "VARIABLE, RANK/SIZE", "", "backend-sim", ANY,
	"the variable that has the number of a process's server, in place of NPUSIM_SERVER; or "
	"two, its rank and how many ranks there are, which the servers have in equal parts")
NPU_VAR(JOIN_FILE, "a path", "", "all", ANY,
	"where each process that loads npusim's library adds a byte; npusim run sets it")
NPU_VAR(LOG, "error, warn, info, debug", "warn", "all", CHOSEN,
	"the least important lines that are still written")
NPU_VAR(LOG_FILE, "a path, stderr", "stderr", "all", ANY, "where log lines are added")
NPU_VAR(TRACE, "a path", "", "runtime", ANY,
	"file to record the driver's calls to; %p stands for the process id")
NPU_VAR(RUN, "a name", "", "runtime", NAME,
	"names what is recorded together: its processes leave one another's NPUSIM_TRACE files "
	"alone; the first of them sets it")
NPU_VAR(LEAKS, "summary, full, off, fail[:CODE]", "summary", "runtime",
	MATCHING("^(summary|full|off|fail(:([1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]))?)$",
		 "summary, full, off, fail, or fail:CODE with an exit status, 1 to 255"),
	"what the report at exit says of memory that is still held; fail: all, and the process "
	"ends with status CODE (1)")
NPU_VAR(FAILURES, "on, off", "on", "all", CHOSEN,
	"whether the log has the program's calls that fail")
NPU_VAR(FAULT, "CALL:WHEN:HOW,...", "", "runtime", ANY,
	"makes driver calls fail; CALL: halMemCreate, mem_create, ..., or *; WHEN: 3 (the third), "
	"3+ (from it on), every:3; HOW: oom, busy, invalid, notsupport, or a driver's code")
NPU_VAR(WINDOW, "an address or ADDRESS+SIZE, auto", "auto", "backend-sim",
	CHECKED(is_window, "an address, such as 0x100000000000, with a size behind it or not "
			   "(0x200000000+32G), or auto"),
	"base of the device address window, and its size at most; for sanitizers and valgrind")
NPU_VAR(PATIENCE, "seconds, off", "10", "runtime",
	CHECKED(is_patience, "seconds above 0, such as 10 or 0.5, or off"),
	"how long a stream may make no progress before a warning says what blocks the calls "
	"that wait for it")
NPU_VAR(STACKS, "off, short, full", "", "runtime", CHOSEN,
	"call stacks that are kept of what the program makes: none, 8 or 64 frames; short where "
	"NPUSIM_VALIDATE is on, where NPUSIM_LEAKS is full or fail, and in recordings; else off")
NPU_VAR(VALIDATE, "off, on, strict", "off", "runtime", CHOSEN,
	"looks for errors that the device does not tell of; strict: a call that would harm is "
	"refused, released addresses come back late, and a touch of page-locked memory that a "
	"queued copy uses traps")
NPU_VAR(VALIDATE_FILE, "a path", "", "runtime", ANY,
	"file to add the reports of NPUSIM_VALIDATE to, for programs; %p stands for the process id")
NPU_VAR(VALIDATE_FORMAT, "json, sarif, github", "json", "runtime", CHOSEN,
	"what NPUSIM_VALIDATE_FILE has: a line of JSON a report, one document of SARIF (also "
	"by its name, FILE.sarif), or annotations of GitHub; on stderr without a file")
NPU_VAR(VALIDATE_RULES, "+RULE, -RULE, ...", "", "runtime", ANY,
	"rules of NPUSIM_VALIDATE to add or to leave out")
NPU_VAR(VALIDATE_SUPPRESS, "FILE,... print", "", "runtime", ANY,
	"files of reports that are known and left out; the word print: each report ends with "
	"its entry for such a file")
NPU_VAR(VALIDATE_LIMIT, "0 to 1000000", "100", "runtime",
	NUMBER(0, 1000000, "a number of reports, 0 to 1000000"),
	"reports that are written; further ones are counted")
NPU_VAR(VALIDATE_EXIT, "0 to 255", "0", "runtime", NUMBER(0, 255, "an exit status, 0 to 255"),
	"exit status of a process with reports; 0: its own")
NPU_VAR(REPORT_FILE, "a path", "", "all", ANY,
	"where reports of what ends the program are added, besides stderr; npusim run sets it")
NPU_VAR(REPORT_STDERR, "device:inode", "", "all",
	MATCHING("^[0-9]+:[0-9]+$", "device:inode, two decimal numbers"),
	"the stderr whose reader gets NPUSIM_REPORT_FILE too: what is written there is not "
	"written twice")
NPU_VAR(TEST_FILE, "a path", "", "test harnesses", ANY,
	"where test harnesses note which test runs; npusim run --junit sets it")
NPU_VAR(SITE_RULE, "a regular expression", "", "npusim replay, report, diff, convert", ANY,
	"frames to stand for their call stacks before all others: --site-rule")

#undef NPU_VAR
