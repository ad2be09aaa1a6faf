/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the axes of all charts, over d3, and the small charts: lines in SVG, bars in tables. Colours
 * are those of the style sheet, so nothing is drawn anew when they change.
 */
const SVG = 'http://www.w3.org/2000/svg';

/* Up to seven or so, by whole steps of the binary unit that fits. */
function byteTicks(low, high) {
	const unit = 2 ** (10 * Math.max(0, Math.floor(Math.log2(Math.max(high - low, 1)) / 10)));
	const step = unit * ([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200].find((s) => (high - low) / (s * unit) <= 7) || 500), ticks = [];
	for (let v = Math.ceil(low / step) * step; v <= high; v += step)
		ticks.push(v);
	return ticks;
}
function drawAxis(svg, name, x, y, axis) {
	let g = svg.select('g.' + name);
	if (g.empty())
		g = svg.append('g').attr('class', 'axis ' + name);
	g.attr('transform', 'translate(' + x + ',' + y + ')').call(axis);
}

function svgElement(tag, attributes, ...children) {
	const e = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes))
		e.setAttribute(name, value);
	e.append(...children);
	return e;
}
/* Steps over events. A set: { label, colour, points: [{ x, y }], dash, fill }; `show` tells a value. */
function lines(label, sets, show, most, last) {
	const note = element('p', { class: 'quiet small', 'aria-hidden': 'true' }, '\u00a0'), left = 72, bottom = 22, height = 240;
	const svg = svgElement('svg', { class: 'chart', role: 'img', 'aria-label': label, height });
	const names = element('p', { class: 'small' }, ...sets.flatMap((s) => [swatch('var(--' + s.colour + ')'), s.label + '  ']));
	const holder = element('div', { class: 'canvas' }, names, svg, note);
	onResize(holder, () => {
		const width = holder.clientWidth, x = d3.scaleLinear([0, Math.max(1, last)], [left, width - 8]), y = d3.scaleLinear([0, most * 1.04 || 1], [height - bottom, 6]);
		svg.replaceChildren();
		svg.setAttribute('width', width);
		for (const { points, colour: paint, fill, dash } of sets) {
			const d = points.map((p, i) => (i === 0 ? 'M' + x(p.x) + ',' : 'H' + x(p.x).toFixed(1) + 'V') + y(p.y).toFixed(1)).join('');
			if (fill)
				svg.append(svgElement('path', { d: d + 'V' + y(0) + 'H' + x(points[0].x) + 'Z', fill: 'var(--' + paint + ')', opacity: 0.2 }));
			svg.append(svgElement('path', { d, fill: 'none', stroke: 'var(--' + paint + ')', 'stroke-width': 1.6, 'stroke-dasharray': dash ? '4 3' : 'none' }));
		}
		const axis = d3.axisLeft(y).tickFormat(show);
		drawAxis(d3.select(svg), 'y', left, 0, show === bytes ? axis.tickValues(byteTicks(0, most * 1.04)) : axis.ticks(5));
		drawAxis(d3.select(svg), 'x', 0, height - bottom, d3.axisBottom(x).ticks(Math.max(2, width / 110)));
		svg.onmousemove = (event) => {
			const at = x.invert(event.offsetX), told = (s) => s.points[Math.max(0, above(s.points.map((p) => p.x), at) - 1)].y;
			note.textContent = 'Event ' + count(Math.max(0, Math.round(at))) + ' · ' + sets.map((s) => s.label + ': ' + show(told(s))).join(' · ');
		};
	});
	return holder;
}
/* A figure in a table, over a bar of `share` of the cell. */
const bar = (share, text) => element('span', { class: 'bar', style: '--share:' + (100 * share).toFixed(1) + '%' }, text);
