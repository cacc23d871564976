// Reads the Prefer header (RFC 7240). Only its `wait` preference is honoured.

/**
 * Returns the seconds of the first `wait=N`, or undefined if there is none. Unreadable preferences are ignored, as the RFC
 * requires.
 */
export function preferredWait(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined) return undefined
  const text = typeof header === 'string' ? header : header.join(',')
  // Quoted strings may contain separators, so these are replaced with spaces before the header is split.
  for (const preference of text.replace(/"[^"]*"/g, (quoted) => quoted.replaceAll(/[,;]/g, ' ')).split(',')) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(;|$)/i.exec(preference)?.[1]
    if (seconds !== undefined) return Number(seconds)
  }
  return undefined
}
