// Orders the ids of events.

/** Returns a negative number if `a` is before `b`, a positive number if it is after, and 0 if the ids are equal. */
export function compareEventIds(a: string, b: string): number {
  const [aMs, aNumber] = parts(a)
  const [bMs, bNumber] = parts(b)
  return aMs - bMs || aNumber - bNumber
}

/** Whether the text has the form of an event's id. */
export function isEventId(text: string): boolean {
  return /^\d{1,15}-\d{1,15}$/.test(text)
}

function parts(id: string): readonly [number, number] {
  const dash = id.indexOf('-')
  return [Number(id.slice(0, dash)), Number(id.slice(dash + 1))]
}
