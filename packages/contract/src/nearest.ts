// The nearest known name to a misspelt one, by edit distance.

/** Undefined when nothing is near: more than half of the word would have to change. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase()
  const best = known
    .map((candidate) => ({ candidate, distance: distance(lower, candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return best !== undefined && best.distance <= Math.max(word.length, best.candidate.length) / 2
    ? best.candidate
    : undefined
}

/** Levenshtein's distance, one row at a time. Words are cut at 100 characters: a caller's text has no limit. */
function distance(a: string, b: string): number {
  const [from, to] = [a.slice(0, 100), b.slice(0, 100)]
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next[j] = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change)
    }
    row = next
  }
  return row[to.length] ?? 0
}
