// The list of samples: which task and measure, which outcome, search, order. Cards come twenty at a time.

const AT_ONCE = 20, EVERY_TASK = '*';
const SORTS = [['lost', 'most lost first'], ['file', 'order of the file'], ['grew', 'answer grew most'], ['shrank', 'answer shrank most']];

const report = JSON.parse(document.getElementById('page-data').textContent);
const blockElements = [...document.querySelectorAll('script.block')];
const parsed = new Map();
const list = { pair: 0, task: '', measure: '', outcome: '', query: '', sort: 'lost', found: [], shown: 0 };
const field = (id) => document.getElementById(id);

/** A task's block; its JSON is read when it is first wanted. */
function blockOf(element) {
  if (!parsed.has(element)) parsed.set(element, JSON.parse(element.textContent));
  return parsed.get(element);
}

function elementsOf(pair, task) {
  return blockElements.filter((e) => Number(e.dataset.pair) === pair && (task === EVERY_TASK || e.dataset.task === task));
}

/** The measure of a block that the list shows; of all tasks it is each block's verdict, -1 where it has none. */
function chosenMeasure(block) {
  if (list.task === EVERY_TASK) return block.measures.length && block.measures[0].flag && block.measures[0].direction > 0 ? 0 : -1;
  return Math.max(0, block.measures.findIndex((m) => m.key === list.measure));
}

/** Whether a measure is the block's verdict of right or wrong. */
function isVerdict(block, key) {
  const first = block?.measures[0];
  return Boolean(first && first.flag && first.direction > 0 && first.key === key);
}

/** How much a sample lost: the chosen measure first, then all others together, each at its direction. */
function loss(item) {
  const part = (m) => {
    const [before, after] = item.entry.v[m];
    if (before === null || after === null || after === undefined) return 0;
    const direction = item.block.measures[m].direction;
    return direction ? (before - after) * direction : Math.abs(before - after);
  };
  const others = item.entry.v.reduce((sum, _, m) => sum + Math.sign(part(m)), 0);
  return [item.measure >= 0 ? part(item.measure) : 0, others];
}

function growth(item) {
  const sides = item.entry.s;
  return sides.length > 1 ? sides[1].a.length - sides[0].a.length : sides[0].a.length;
}

function inOrder(items) {
  if (list.sort === 'file') return items;
  if (list.sort === 'lost') {
    const lost = new Map(items.map((item) => [item, loss(item)]));
    return items.sort((a, b) => lost.get(b)[0] - lost.get(a)[0] || lost.get(b)[1] - lost.get(a)[1]);
  }
  const sign = list.sort === 'grew' ? -1 : 1;
  return items.sort((a, b) => sign * (growth(a) - growth(b)));
}

function haystack(entry) {
  entry.hay ??= [entry.id, entry.p, entry.g, ...entry.s.flatMap((s) => [s.a, s.x])].filter(Boolean).join('\n').toLowerCase();
  return entry.hay;
}

/** Outcome → [label, in all, on the page], summed over the blocks of the list. */
function outcomesOf(blocks) {
  const sums = new Map();
  for (const block of blocks) {
    const measure = block.measures[chosenMeasure(block)];
    for (const [code, label, all, here] of measure ? measure.outcomes : []) {
      const [, a, h] = sums.get(code) || [label, 0, 0];
      sums.set(code, [label, a + all, h + here]);
    }
  }
  return sums;
}

function fillSelect(id, options, value) {
  field(id).replaceChildren(...options.map(([key, label]) => {
    const option = make('option', '', label);
    option.value = key;
    return option;
  }));
  field(id).value = value;
}

/** Shows what `wanted` says of pair, task, measure, outcome; whatever is missing gets its default. */
function showSamples(wanted) {
  if (!field('tools')) return;
  list.pair = Number(wanted.pair) || 0;
  const tasks = elementsOf(list.pair, EVERY_TASK).map((e) => e.dataset.task);
  list.task = wanted.task === EVERY_TASK || tasks.includes(wanted.task) ? wanted.task : tasks[0] || '';
  const blocks = elementsOf(list.pair, list.task).map(blockOf);
  const measures = list.task === EVERY_TASK ? [['', 'right or wrong']] : (blocks[0]?.measures || []).map((m) => [m.key, m.title]);
  list.measure = measures.some(([key]) => key === wanted.measure) ? wanted.measure : (measures[0] || [''])[0];
  const sums = outcomesOf(blocks);
  list.outcome = sums.has(wanted.outcome) ? wanted.outcome : '';
  fillSelect('pick-pair', report.names.map((name, i) => [String(i), name]), String(list.pair));
  fillSelect('pick-task', [...tasks.map((t) => [t, t]), ...(tasks.length > 1 ? [[EVERY_TASK, 'all tasks']] : [])], list.task);
  fillSelect('pick-measure', measures, list.measure);
  fillSelect('pick-sort', report.models[0].length > 1 ? SORTS : [['file', 'order of the file'], ['grew', 'longest answer first'], ['shrank', 'shortest answer first']], list.sort);
  field('samples-title').textContent = list.task === EVERY_TASK ? 'Samples of all tasks' : `Samples of ${list.task}`;
  const buttons = [['', ['All', blocks.reduce((n, b) => n + b.total, 0), blocks.reduce((n, b) => n + b.records.length, 0)]], ...sums];
  const hadFocus = field('outcomes').contains(document.activeElement);
  field('outcomes').replaceChildren(...buttons.map(([code, [label, all]]) => {
    const button = make('button', '', `${label} ${all.toLocaleString('en')}`);
    button.type = 'button';
    button.setAttribute('aria-pressed', String(code === list.outcome));
    button.addEventListener('click', () => go({ outcome: code }));
    return button;
  }));
  const verdict = list.task !== EVERY_TASK && isVerdict(blocks[0], list.measure) ? blocks[0].right : '';
  field('right').textContent = verdict ? `An answer is right where ${verdict}.` : '';
  if (hadFocus) field('outcomes').querySelector('[aria-pressed=true]').focus();
  list.sums = new Map(buttons);
  refresh();
}

/** Filters, sorts and shows the first cards. */
function refresh() {
  const query = list.query.trim().toLowerCase();
  const items = [];
  for (const element of elementsOf(list.pair, list.task)) {
    const block = blockOf(element), measure = chosenMeasure(block);
    for (const entry of block.records) {
      if (list.outcome && (measure < 0 || entry.o[measure] !== list.outcome)) continue;
      if (query && !haystack(entry).includes(query)) continue;
      items.push({ entry, block, measure });
    }
  }
  list.found = inOrder(items);
  list.shown = 0;
  field('cards').replaceChildren();
  showMore();
}

function showMore() {
  const names = report.models[list.pair], query = list.query.trim().toLowerCase();
  const next = list.found.slice(list.shown, list.shown + AT_ONCE);
  field('cards').append(...next.map((item) => {
    const card = sampleCard(item, item.measure, names, field('pick-diff').checked, query);
    if (list.task === EVERY_TASK) {
      card.firstChild.prepend(make('span', 'values', item.block.task));
      if (item.measure >= 0 && item.block.right) card.firstChild.after(labelled('Right:', item.block.right));
    }
    return card;
  }));
  list.shown += next.length;
  const left = list.found.length - list.shown;
  field('more').hidden = left <= 0;
  field('more').textContent = `Show ${Math.min(AT_ONCE, left)} more`;
  const [, all, here] = list.sums.get(list.outcome) || ['', 0, 0];
  const drawn = here < all ? ` This page holds ${here.toLocaleString('en')} of ${all.toLocaleString('en')}, `
    + 'a sample: changed answers first, the rest a seeded random draw.' : '';
  const apart = field('cards').querySelectorAll('[data-apart]').length;
  const unmarked = apart ? ` In ${apart.toLocaleString('en')} of those below the two answers have little in common, so differences are not marked.` : '';
  field('count').textContent = `${list.found.length.toLocaleString('en')} sample${list.found.length === 1 ? '' : 's'}`
    + (query ? ` with “${list.query.trim()}”` : '') + (left > 0 ? `, the first ${list.shown} below.` : '.') + drawn + unmarked;
  markHits(query);
}

/** Search words are highlighted without touching the texts, where the browser can. */
function markHits(query) {
  if (!window.Highlight || !CSS.highlights) return;
  CSS.highlights.delete('search');
  if (!query) return;
  const ranges = [], walker = document.createTreeWalker(field('cards'), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 2000; node = walker.nextNode()) {
    const text = node.data.toLowerCase();
    if (text.length !== node.data.length) continue;
    for (let at = text.indexOf(query); at >= 0 && ranges.length < 2000; at = text.indexOf(query, at + query.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set('search', new Highlight(...ranges));
}
