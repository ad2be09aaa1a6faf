/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows results and histories on one axis, and the difference of two by call stack.
 */

/* { name, live, physical: points, last, moments: names, holders(name): Map of { name, frames, bytes, blocks } } */
function sourceOfHistory({ history }) {
	const columns = sampleColumns(history, 'event', 0, history.events + 1, 800), failed = history.failures;
	const moments = { peak: history.peak, end: history.events, ...(failed.length > 0 ? { oom: failed[0] } : {}) };
	const of = (values) => [...columns].map((e) => ({ x: e, y: values[e] }));
	return { name: history.name, live: of(history.total), physical: of(history.physical), last: history.events, moments: Object.keys(moments),
		 holders: (name) => holdersByStack(history, moments[name]) };
}
function sourceOfResult(result, index, device) {
	const list = (Array.isArray(device.moments) ? device.moments : []).filter((m) => Array.isArray(m.holders));
	return { name: nameOf({ index, number: device.device }) || title[index], live: device.series.live_bytes && tellsLive(device) ? points(device, 'live_bytes') : [],
		 physical: device.series.physical_bytes ? points(device, 'physical_bytes') : [], last: most(device.series.event), moments: list.map((m) => m.moment),
		 holders: (name) => new Map(list.find((m) => m.moment === name).holders.map((h) => {
			const key = (h.frames || []).join('\n') || h.site;
			return [key, { key, name: h.site, frames: h.frames || [], bytes: h.bytes, blocks: h.blocks }];
		})) };
}
const MOMENTS = [['peak', 'the peak of each'], ['end', 'the end of each'], ['oom', 'their failure']];
function comparison(found) {
	const body = element('div', {}), at = element('span', {}), all = [...found.map(sourceOfHistory), ...results.flatMap((r, i) =>
		(r.devices || []).filter((d) => hasSeries(d) && !timelines.has(d)).map((d) => sourceOfResult(r, i, d)))];
	if (all.length < 2)
		return [];
	const chosen = [0, 1], options = all.map((s, i) => [String(i), s.name]);
	const changes = new SiteTable('difference by call stack', [['Difference', (r) => r.bytes, signed], ['First', (r) => r.before, bytes],
		['Second', (r) => r.after, bytes], ['Blocks', (r) => r.blocks, count]]);
	let when_ = 'peak';
	const show = () => {
		const [a, b] = chosen.map((i) => all[i]), both = MOMENTS.filter(([name]) => a.moments.includes(name) && b.moments.includes(name));
		if (!both.some(([name]) => name === when_))
			when_ = both.length > 0 ? both[0][0] : 'peak';
		if (at.dataset.moments !== String(both))
			at.replaceChildren(both.length > 0 ? choice('at', both, when_, (v) => { when_ = v; show(); }) : '');
		at.dataset.moments = String(both);
		const sets = (all.length <= 6 ? all : [a, b]).flatMap((s, i) => [{ label: s.name + ', live', points: s.live, colour: paintOf(i) },
			{ label: s.name + ', physical', points: s.physical, colour: paintOf(i), dash: true }]).filter((s) => s.points.length > 0);
		const top = most(sets.flatMap((s) => s.points.map((p) => p.y))), stacks = [a, b].every((s) => s.moments.length > 0);
		const rows = both.length > 0 ? difference(a.holders(when_), b.holders(when_)) : [];
		body.replaceChildren(sets.length > 0 ? lines('Memory on one axis', sets, bytes, top, most(all.map((s) => s.last))) : '',
			both.length > 0 ? element('p', { role: 'status' }, 'Live, second less first: ' + signed(rows.reduce((n, r) => n + r.bytes, 0)) + '.')
				: element('p', { class: 'quiet' }, stacks ? 'One of them has no such moment.' : 'One of them has no call stacks.'), both.length > 0 ? changes.node : '');
		changes.show(rows);
	};
	const pick = (i, label) => choice(label, options, String(chosen[i]), (v) => { chosen[i] = Number(v); show(); });
	show();
	return [element('div', { class: 'card' }, element('div', { class: 'controls' }, pick(0, 'First'), pick(1, 'Second'), at), body)];
}
