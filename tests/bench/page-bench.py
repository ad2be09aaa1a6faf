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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'traces'))
from browser import emptied  # noqa: E402
from command import Skip  # noqa: E402

# For 5 s: at the whole extent zooming in and out a little, at 1 % panning along.
FRAMES = '''(async (whole) => {
	const timeline = window.npusim.explorer.timeline, gaps = [], start = performance.now();
	let last = start;
	while (last - start < 5000) {
		const t = (last - start) / 5000;
		const from = whole ? 0.02 * (1 + Math.sin(20 * t)) : 0.98 * t;
		timeline.setRange('x', from, whole ? 1 - from : from + 0.01);
		await new Promise(requestAnimationFrame);
		gaps.push(performance.now() - last);
		last = performance.now();
	}
	gaps.sort((a, b) => a - b);
	return [gaps.length, gaps[gaps.length >> 1], gaps[Math.floor(gaps.length * 0.95)]];
})'''


def figure(what, value, unit, most):
    print('{} {:.2f} {} at most {:g}'.format(what, value, unit, most), flush=True)


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        snapshot, page = folder / 'big.pkl', folder / 'page.html'
        if len(sys.argv) > 2:
            snapshot = sys.argv[2]
        else:
            generate = pathlib.Path(__file__).with_name('snapshot-gen.py')
            subprocess.run([sys.executable, str(generate), str(snapshot)], check=True)
        subprocess.run([sys.argv[1], 'report', str(snapshot), '-o', str(page)], check=True,
                       stderr=subprocess.DEVNULL)
        figure('page of 900,001 events', page.stat().st_size / 1e6, 'MB', 4)
        with emptied() as browser:
            browser.open(page)
            figure('ready', browser.run('window.npusim.ready') / 1000, 's', 2)
            browser.settle()
            for layout in 'stack', 'address':
                browser.run('window.npusim.explorer.view.layout = {!r}'.format(layout))
                for name, whole in (('whole', 'true'), ('1 %', 'false')):
                    _, median, late = browser.run(FRAMES + '(' + whole + ')')
                    figure('frame, {}, {}, median'.format(layout, name), median, 'ms', 33)
                    figure('frame, {}, {}, 95 %'.format(layout, name), late, 'ms', 66)


try:
    main()
except Skip as reason:
    print('skipped:', reason)
    sys.exit(77)
