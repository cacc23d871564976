// Suggests the nearest known name for a misspelt one, by edit distance.

/**
 * Names are truncated to this length, because computing the distance takes time proportional to the product of both lengths, and
 * a caller's string may have any length.
 */
const MAX_LENGTH = 100

/** Returns the known name that is nearest to `word`, or undefined if more than half of the word would have to change. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.slice(0, MAX_LENGTH).toLowerCase()
  const best = known
    .map((candidate) => ({ candidate, distance: distance(lower, candidate.slice(0, MAX_LENGTH).toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return best !== undefined && best.distance <= Math.max(lower.length, Math.min(best.candidate.length, MAX_LENGTH)) / 2
    ? best.candidate
    : undefined
}

/** Returns a string such as `; did you mean timeout?`, or an empty string if none of the names is close enough. */
export function suggestion(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}

/** Returns the Levenshtein distance, computed row by row. */
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
