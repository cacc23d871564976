// Times as the API writes them: RFC 3339 in UTC.

/** `ms`: since 1970. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

/** An object with the time under its name, or an empty one. */
export function optionalTime<N extends string>(name: N, ms: number | undefined): { readonly [K in N]?: string } {
  return ms === undefined ? {} : ({ [name]: timeText(ms) } as { readonly [K in N]: string })
}
