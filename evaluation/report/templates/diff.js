'use strict';
// Which words two answers share: Myers' greedy algorithm on words, bounded, so that no pair of texts is slow.

/** The parts of a text that are compared: words, runs of white space, single marks. Joined they are the text. */
function words(text) {
  return text.match(/⟨U\+[0-9A-F]+⟩|\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
}

/**
 * [flags of a, flags of b]: true where the word has no partner in the other list.
 * null where more than `limit` words would have to change: then the two texts have little in common.
 */
function different(a, b, limit) {
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const n = endA - start, m = endB - start, most = Math.min(n + m, limit);
  const best = new Int32Array(2 * most + 3), steps = [];
  for (let d = 0; d <= most; d++) {
    for (let k = -d; k <= d; k += 2) {
      const at = k + most + 1;
      let x = k === -d || (k !== d && best[at - 1] < best[at + 1]) ? best[at + 1] : best[at - 1] + 1;
      while (x < n && x - k < m && a[start + x] === b[start + x - k]) x++;
      best[at] = x;
      if (x >= n && x - k >= m) return marked(a, b, start, steps, d, k, n, most);
    }
    steps.push(best.slice(most + 1 - d, most + 2 + d));
  }
  return null;
}

/** The way back through the steps: what was left out of a, what was put into b. */
function marked(a, b, start, steps, d, k, n, most) {
  const gone = new Array(a.length).fill(false), added = new Array(b.length).fill(false);
  let x = n;
  for (; d > 0; d--) {
    const before = steps[d - 1], value = (j) => (Math.abs(j) <= d - 1 ? before[j + d - 1] : -1);
    const down = k === -d || (k !== d && value(k - 1) < value(k + 1));
    const from = down ? k + 1 : k - 1;
    x = value(from);
    if (down) added[start + x - from] = true;
    else gone[start + x] = true;
    k = from;
  }
  return [gone, added];
}
