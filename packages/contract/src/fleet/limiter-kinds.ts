// Names the kinds of limiters that a queue shows.

/** The permits of a resource, and the cap of a task definition. */
export const LIMITER_KINDS = ['permits', 'definition'] as const

export type LimiterKind = (typeof LIMITER_KINDS)[number]
