// The Prefer header (RFC 7240): what of it we honour.

/** The seconds of `wait=N`, or undefined; the first one counts, unreadable preferences are ignored, as the RFC asks. */
export function preferredWait(header: string | readonly string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header : (header ?? []).join(',')
  // Quoted strings may hold commas; none of the preferences that we know is quoted with one.
  for (const preference of text.replace(/"[^"]*"/g, (quoted) => quoted.replaceAll(/[,;]/g, ' ')).split(',')) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(;|$)/i.exec(preference)?.[1]
    if (seconds !== undefined) return Number(seconds)
  }
  return undefined
}
