// Formats times as the API returns them, which is RFC 3339 in UTC.

/** Formats a time, given in ms since 1970. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

/** Returns an object with the time under the given name, or an empty object if there is no time. */
export function optionalTime<N extends string>(name: N, ms: number | undefined): { readonly [K in N]?: string } {
  return ms === undefined ? {} : ({ [name]: timeText(ms) } as { readonly [K in N]: string })
}
