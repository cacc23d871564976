// The nearest known name to a misspelt one, by edit distance.

/** A caller's text has no limit, and the distance costs the product of both lengths. */
const LONGEST = 100

/** Undefined when nothing is near: more than half of the word would have to change. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.slice(0, LONGEST).toLowerCase()
  const best = known
    .map((candidate) => ({ candidate, distance: distance(lower, candidate.slice(0, LONGEST).toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return best !== undefined && best.distance <= Math.max(lower.length, Math.min(best.candidate.length, LONGEST)) / 2
    ? best.candidate
    : undefined
}

/** Levenshtein's distance, one row at a time. */
function distance(from: string, to: string): number {
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
