// The lanes of a memory store's waiting tasks, as in the Redis broker (packages/bullmq/src/store/lua/includes/lanes/lanes.lua): those with
// the same concurrency key that need the same shares of limiters.
import type { Need, NewTask } from '@bullpen/engine'

export interface Lane {
  /** Lanes with the same pass are ordered by their names, as in Redis. */
  readonly name: string
  /** '' if the tasks have no concurrency key. */
  readonly key: string
  /** In alphabetical order. */
  readonly needs: readonly Need[]
}

/** Separates the needs from the concurrency key in the name of a lane. */
const NEEDS_MARK = '\x1e'

const SERVICE = 'service:'

/** Returns the service whose circuit breaker a limiter stands for, or undefined if it is another limiter. */
export function serviceOf(limiter: string): string | undefined {
  return limiter.startsWith(SERVICE) ? limiter.slice(SERVICE.length) : undefined
}

/** Returns the lane of a task, or undefined if it has no key in a fair queue, and needs nothing. */
export function laneOf({
  turn,
  needs = [],
  services = [],
}: Pick<NewTask, 'turn' | 'needs' | 'services'>): Lane | undefined {
  if (turn === undefined && needs.length === 0 && services.length === 0) return undefined
  const ofServices = services.map((service) => ({ limiter: `${SERVICE}${service}`, amount: 1 }))
  return lane(turn?.key ?? '', [...needs, ...ofServices])
}

/** Returns the name of the lane of a key's tasks that need nothing. */
export const laneOfKey = (key: string): string => lane(key, []).name

function lane(key: string, needs: readonly Need[]): Lane {
  const sorted = needs
    .map((need) => ({ need, text: `${need.limiter}=${need.amount}` }))
    .toSorted((one, other) => (one.text < other.text ? -1 : 1))
  const hasMark = needs.length > 0 || key.includes(NEEDS_MARK)
  const name = hasMark ? `${key}${NEEDS_MARK}${sorted.map(({ text }) => text).join(',')}` : key
  return { name, key, needs: sorted.map(({ need }) => need) }
}
