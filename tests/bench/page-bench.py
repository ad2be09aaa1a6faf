#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# How long the page of a large snapshot takes to be ready, and its frames while it is zoomed and
# panned, in headless Chromium.
# usage: page-bench.py NPUSIM [SNAPSHOT]; without one, 900,001 made-up events

import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'traces'))
from browser import Browser  # noqa: E402

# For 5 s: at the whole extent zooming in and out a little, at 1 % panning along.
FRAMES = '''(async (whole) => {
	const timeline = window.npusim.explorer.timeline, gaps = [], start = performance.now();
	let last = start;
	while (last - start < 5000) {
		const t = (last - start) / 5000;
		const from = whole ? 0.02 * (1 + Math.sin(20 * t)) : 0.98 * t;
		timeline.setX(from, whole ? 1 - from : from + 0.01);
		await new Promise(requestAnimationFrame);
		gaps.push(performance.now() - last);
		last = performance.now();
	}
	gaps.sort((a, b) => a - b);
	return [gaps.length, gaps[gaps.length >> 1], gaps[Math.floor(gaps.length * 0.95)]];
})'''
# Of one frame, on its own processor: whatever else runs on the machine does not count.
CPU = 'TaskDuration'


def cpu(browser):
    return {m['name']: m['value'] for m in browser.call('Performance.getMetrics')['metrics']}[CPU]


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        snapshot, page = folder / 'big.pkl', folder / 'page.html'
        if len(sys.argv) > 2:
            snapshot = sys.argv[2]
        else:
            generate = pathlib.Path(__file__).with_name('snapshot-gen.py')
            subprocess.run([sys.executable, str(generate), str(snapshot)], check=True)
        start = time.monotonic()
        subprocess.run([sys.argv[1], 'report', str(snapshot), '-o', str(page)], check=True,
                       stderr=subprocess.DEVNULL)
        print('written in {:.1f} s, {:.2f} MB'.format(time.monotonic() - start,
                                                      page.stat().st_size / 1e6))
        with Browser(folder) as browser:
            browser.call('Performance.enable', timeDomain='threadTicks')
            browser.open(page)
            print('ready after {:.0f} ms, {:.0f} ms of a processor'.format(
                browser.run('window.npusim.ready'), 1000 * cpu(browser)))
            browser.settle()
            for name, whole in (('whole extent', 'true'), ('1 %', 'false')):
                before = cpu(browser)
                frames, median, late = browser.run(FRAMES + '(' + whole + ')')
                print('{}: {} frames, median {:.1f} ms, 95 % {:.1f} ms; {:.1f} ms of a processor '
                      'each'.format(name, frames, median, late,
                                    1000 * (cpu(browser) - before) / frames))


main()
