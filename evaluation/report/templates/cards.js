// One sample as a card. Every text of a model ends in a text node; nothing here writes HTML.

const LONG_TEXT = 700, LONG_LINES = 11;

/** Beyond so many changed words marks would be everywhere and say nothing. */
const mostChanges = (count) => Math.max(60, Math.min(500, Math.round(0.35 * count)));

/** An element: make('p', 'class', 'text' or child, …). */
function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A text of a model in a box of its own direction; marks: one flag a word, or null. */
function textBox(text, marks, markKind, query) {
  const box = make('div', 'text');
  box.dir = 'auto';
  if (!text) {
    box.append(make('em', 'none', 'empty'));
    return box;
  }
  const parts = words(text);
  let run = '', kind = '';
  const flush = () => {
    if (run) box.append(kind ? make('span', kind, run) : document.createTextNode(run));
    run = '';
  };
  parts.forEach((part, i) => {
    const next = /^⟨U\+[0-9A-F]+⟩$/.test(part) ? 'code' : marks && marks[i] ? markKind : '';
    if (next !== kind) { flush(); kind = next; }
    run += part;
  });
  flush();
  const long = text.length > LONG_TEXT || text.split('\n').length > LONG_LINES;
  if (!long || (query && text.toLowerCase().includes(query))) return box;
  box.classList.add('clamped');
  const button = make('button', 'unfold', 'Show all');
  button.type = 'button';
  button.setAttribute('aria-expanded', 'false');
  button.addEventListener('click', () => {
    const closed = box.classList.toggle('clamped');
    button.textContent = closed ? 'Show all' : 'Show less';
    button.setAttribute('aria-expanded', String(!closed));
  });
  return make('div', '', box, button);
}

function labelled(label, value) {
  const line = make('p', 'read', make('b', '', label + ' '), make('bdi', '', value));
  return line;
}

/** What was read from an answer: a program or other text of several lines keeps its lines. */
function readBox(side, program, query) {
  const label = program ? 'Program that was run:' : 'Read as:', value = side.x;
  if (value && value.trim() === side.a.trim()) return labelled(label, 'the whole answer, as above');
  if (!value || !value.includes('\n')) return labelled(label, value || '(nothing)');
  return make('div', 'program', make('p', 'read', make('b', '', label)), textBox(value, null, '', query));
}

/** open: the reply is why a sample changed, so it is seen at once. */
function judgeBox(judgements, open) {
  const failed = judgements.filter((j) => j.status && j.status !== 'ok').length;
  const box = make('details', '', make('summary', '', "Judge's reply" + (judgements.length > 1 ? ` (${judgements.length})` : '')
    + (failed ? ` · ${failed} without verdict` : '')));
  box.open = open;
  for (const j of judgements) {
    box.append(make('h3', '', [j.mode.replaceAll('_', ' '), j.value, j.status === 'ok' ? '' : j.status].filter(Boolean).join(' · ')));
    if (j.reply) box.append(textBox(j.reply, null, '', ''));
  }
  return box;
}

function sideBox(name, side, marks, kind, query, program, changed) {
  const box = make('div', 'side', make('h3', '', name), textBox(side.a, marks, kind, query));
  if (side.r) box.append(labelled('Reason:', side.r));
  if (side.d) box.append(labelled('Detail:', side.d));
  if (side.x !== undefined) box.append(readBox(side, program, query));
  if (side.t === 'truncated') box.append(labelled('State:', 'cut off while thinking, so no answer'));
  if (side.j) box.append(judgeBox(side.j, changed));
  return box;
}

function plain(value) {
  return value === null ? 'not scored' : String(value).replace('-', '−');
}

/** "Accuracy 1 → 0": every measure of the sample that changed, the chosen one first. */
function valuesText(entry, block, chosen) {
  const order = [chosen, ...block.measures.keys()].filter((m, i, all) => m >= 0 && all.indexOf(m) === i);
  const told = [];
  for (const m of order) {
    const values = entry.v[m];
    if (values.every((value) => value === null)) continue;
    if (m !== chosen && values.length > 1 && values[0] === values[1]) continue;
    told.push(`${block.measures[m].title}: ${values.map(plain).join(' → ')}`);
    if (told.length === 4) break;
  }
  return told.join(' · ');
}

function whereText(entry, block, names) {
  const files = entry.u && block.other_files[entry.u] ? block.other_files[entry.u] : block.files;
  return 'Whole texts: ' + entry.s.map((side, i) => `${names[i]}: ${files[i]}, row ${side.n}`).join(' · ');
}

/** The card of a sample. item: {entry, block}; chosen: number of the measure; names: one a side. */
function sampleCard(item, chosen, names, withDiff, query) {
  const { entry, block } = item;
  const code = entry.o[chosen], label = (block.measures[chosen]?.outcomes.find((o) => o[0] === code) || [])[1];
  const card = make('article', 'card', make('h2', '', make('bdi', '', entry.id),
    label ? make('span', `badge ${code}`, label) : null, make('span', 'values', valuesText(entry, block, chosen))));
  card.tabIndex = 0;
  card.setAttribute('aria-label', `Sample ${entry.id}${label ? ', ' + label : ''}`);
  if (entry.p) card.append(make('h3', '', 'Prompt'), textBox(entry.p, null, '', query));
  if (entry.g) card.append(make('h3', '', 'Gold'), textBox(entry.g, null, '', query));
  let marks = null, remark = '';
  if (entry.s.length > 1 && withDiff) {
    if (entry.s[0].a === entry.s[1].a) remark = 'Both answers are the same text.';
    else {
      const [before, after] = entry.s.map((side) => words(side.a));
      marks = different(before, after, mostChanges(before.length + after.length));
    }
    if (!marks && !remark) card.dataset.apart = '';  // little in common: marks would be everywhere
  }
  const sides = make('div', entry.s.length > 1 ? 'sides' : 'sides one');
  entry.s.forEach((side, i) => sides.append(sideBox(
    (entry.s.length > 1 ? (i ? 'Adapted: ' : 'Base: ') : 'Answer of ') + names[i], side, marks && marks[i], i ? 'new' : 'gone', query,
    block.program, code === 'f' || code === 'g')));
  if (remark) card.append(make('p', 'read', remark));
  card.append(sides);
  card.append(make('p', 'where', whereText(entry, block, names)));
  return card;
}
