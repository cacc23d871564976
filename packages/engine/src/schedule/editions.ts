// Decides which definition of a schedule is stored while processes with different catalogues run, as during a rolling deploy.
//
// An edition is one definition of a schedule, whatever else a catalogue has. It is as new as the first process that has declared it, and
// is forgotten FORGET_EDITION_MS after the last one. The newest edition counts, and a process stores only its own, once: what a request
// changes, pauses or deletes afterwards stays so until another edition counts. Processes with an older catalogue therefore never
// overwrite a newer one, and a rollback takes effect when no process of the newer one has run for that time. A schedule that no
// process declares any more stays until a sync deletes it.

/** After how long without a process an edition is forgotten, in ms. Processes declare theirs every {@link DECLARE_EVERY_MS}. */
export const FORGET_EDITION_MS = 300_000
export const DECLARE_EVERY_MS = 60_000
/** How long editions are kept if no process declares any, in ms. */
export const KEEP_EDITIONS_MS = 30 * 86_400_000

export interface Edition {
  readonly name: string
  readonly digest: string
}

/** What is known about the editions of all schedules: the fields of a hash, as scripts store them. */
export type Editions = ReadonlyMap<string, string>

/** Returns the fields after a process has declared these editions. */
export function declared(known: Editions, editions: readonly Edition[], now: number): Editions {
  const lastOf = (value: string): number => Number(value.split(' ')[1])
  const kept = [...known].filter(([field, value]) => !field.includes(' ') || lastOf(value) >= now - FORGET_EDITION_MS)
  const fields = new Map(kept)
  for (const { name, digest } of editions) {
    const [first = now] = fields.get(`${name} ${digest}`)?.split(' ') ?? []
    fields.set(`${name} ${digest}`, `${first} ${now}`)
  }
  return fields
}

/** Returns whether a process that declares this edition has to store it. */
export function isToStore(known: Editions, { name, digest }: Edition): boolean {
  return known.get(name) !== digest && newestEdition(known, name) === digest
}

/** Returns the digest that counts. Editions that were first declared in the same millisecond are ordered by their digests. */
export function newestEdition(known: Editions, name: string): string | undefined {
  const own = [...known].flatMap(([field, value]) => {
    const [of, digest] = field.split(' ')
    return of === name && digest !== undefined ? [{ digest, first: Number(value.split(' ')[0]) }] : []
  })
  return own.toSorted((a, b) => b.first - a.first || (a.digest < b.digest ? 1 : -1))[0]?.digest
}
