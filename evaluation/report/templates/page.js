// Views by address, and the keyboard. The page's address says what is shown, so Back and links work.

const views = [...document.querySelectorAll('.view')];
const places = new Map();  // view → how far it was scrolled when it was left
let cameFrom = '#overview';

/** The address of the sample list with some parts replaced. */
function address(parts) {
  const next = { pair: list.pair, task: list.task, measure: list.measure, outcome: list.outcome, ...parts };
  if ('task' in parts && !('measure' in parts)) next.measure = '';
  return '#samples/' + [next.pair, next.task, next.measure, next.outcome].map(encodeURIComponent).join('/');
}

function go(parts) {
  location.hash = address(parts);
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function route() {
  const [name, pair, task, measure, outcome] = location.hash.slice(1).split('/').map(decoded);
  const view = views.find((v) => v.id === name) || views.find((v) => v.id === 'overview');
  const before = views.find((v) => v.classList.contains('open'));
  if (before && before !== view && view.id === 'samples') cameFrom = '#' + before.id;
  if (before && before !== view) places.set(before.id, scrollY);
  views.forEach((v) => v.classList.toggle('open', v === view));
  if (view.id === 'samples') showSamples({ pair, task, measure, outcome });
  showTrail(view);
  if (before && before !== view) {
    view.querySelector('h1').focus({ preventScroll: true });
    const back = view.id === 'overview' && document.querySelector(`#heat a[href="#${before.id}"]`);
    if (back) back.focus({ preventScroll: true });
    scrollTo(0, view.id === 'samples' ? 0 : places.get(view.id) || 0);
  }
}

function showTrail(view) {
  const trail = [];
  const link = (href, text) => {
    const a = make('a', '', text);
    a.href = href;
    return a;
  };
  const parent = document.getElementById(cameFrom.slice(1));
  if (view.id !== 'overview') trail.push(link('#overview', 'Overview'));
  if (view.id === 'samples' && parent?.dataset.trail) trail.push(' › ', link(cameFrom, parent.dataset.trail));
  if (view.dataset.trail) trail.push(' › ' + view.dataset.trail);
  if (view.id === 'samples') trail.push(` › ${list.task === EVERY_TASK ? 'all tasks' : list.task}`);
  field('trail').replaceChildren(...trail);
}

function up() {
  const view = views.find((v) => v.classList.contains('open'));
  if (view.id === 'samples') location.hash = cameFrom;
  else if (view.id !== 'overview') location.hash = '#overview';
}

function moveCard(step) {
  const cards = [...field('cards').children];
  const now = cards.findIndex((card) => card.contains(document.activeElement));
  if (now + step >= cards.length && !field('more').hidden) {
    showMore();
    return moveCard(step);
  }
  const card = cards[Math.min(cards.length - 1, Math.max(0, now + step))];
  card?.focus({ preventScroll: true });
  card?.scrollIntoView({ block: 'start' });
}

/** Arrow keys in the heatmap; one cell alone is in the order of the Tab key. */
function arrowKeys(table) {
  const grid = [...table.rows].map((row) => [...row.querySelectorAll('td.cell a')]).filter((row) => row.length);
  grid.flat().forEach((a, i) => { a.tabIndex = i ? -1 : 0; });
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const focus = (a) => {
    grid.flat().forEach((other) => { other.tabIndex = -1; });
    a.tabIndex = 0;
    a.focus();
  };
  table.addEventListener('keydown', (event) => {
    const y = grid.findIndex((row) => row.includes(event.target)), x = y < 0 ? -1 : grid[y].indexOf(event.target);
    if (y < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    let target = null;
    if (steps[event.key]) target = grid[y + steps[event.key][0]]?.[x + steps[event.key][1]];
    else if (event.key === 'Home') target = grid[0][x];
    else if (event.key === 'End') target = grid[grid.length - 1][x];
    else return;
    event.preventDefault();
    if (target) focus(target);
  });
}

function keys(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || '');
  const inSamples = document.getElementById('samples').classList.contains('open') && field('tools');
  if (event.key === 'Escape') {
    if (typing && document.activeElement.id === 'search' && list.query) setQuery('');
    else if (typing) document.activeElement.blur();
    else up();
    event.preventDefault();
  } else if (!typing && inSamples && (event.key === 'j' || event.key === 'k')) {
    moveCard(event.key === 'j' ? 1 : -1);
  } else if (!typing && inSamples && event.key === '/') {
    field('search').focus();
    event.preventDefault();
  }
}

function setQuery(text) {
  field('search').value = text;
  list.query = text;
  refresh();
}

/** Shows the tasks whose row holds the words. */
function findTasks(event) {
  const words = event.target.value.trim().toLowerCase();
  for (const row of document.querySelectorAll('.tasks tbody tr')) row.hidden = !row.textContent.toLowerCase().includes(words);
}

/** Says of every table that is wider than its place that there is more to the side. */
function hintAtWidth() {
  const places = [...document.querySelectorAll('.scroll')];
  const look = new ResizeObserver((entries) => entries.forEach(({ target: place }) => {
    place.classList.toggle('more', place.clientWidth > 0 && place.firstElementChild.offsetWidth > place.clientWidth + 1);
  }));
  places.forEach((place) => look.observe(place));
}

document.documentElement.classList.add('js');
hintAtWidth();
document.getElementById('find-task')?.addEventListener('input', findTasks);
if (document.getElementById('heat')) arrowKeys(document.getElementById('heat'));
if (field('tools')) {
  if (report.models[0].length < 2) list.sort = 'file';
  let waiting = 0;
  field('tools').addEventListener('submit', (event) => event.preventDefault());
  field('pick-pair').addEventListener('change', (event) => go({ pair: event.target.value }));
  field('pick-task').addEventListener('change', (event) => go({ task: event.target.value }));
  field('pick-measure').addEventListener('change', (event) => go({ measure: event.target.value }));
  field('pick-sort').addEventListener('change', (event) => { list.sort = event.target.value; refresh(); });
  field('pick-diff').addEventListener('change', refresh);
  field('search').addEventListener('input', (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => setQuery(event.target.value), 150);
  });
  field('more').addEventListener('click', showMore);
}
addEventListener('hashchange', route);
addEventListener('keydown', keys);
route();
