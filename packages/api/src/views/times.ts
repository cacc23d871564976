// Times as the API writes them: RFC 3339 in UTC.

/** `ms`: since 1970. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

/** The time under its name, or nothing. */
export function optionalTime<N extends string>(name: N, ms: number | undefined): { readonly [K in N]?: string } {
  return ms === undefined ? {} : ({ [name]: timeText(ms) } as { readonly [K in N]: string })
}
