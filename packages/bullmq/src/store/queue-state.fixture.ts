// What the keys of a namespace hold, in a form in which it can be compared with what another namespace holds after the same calls.
import type { Redis } from 'ioredis'

/** Times differ, and ids that BullMQ has made up. */
const VARYING = /\b1[5-9]\d{11}(\.\d+)?\b|\b[5-9]\d{15}\b|\d+-\d+/g

/** Fields with the options of a job or what it stores of its parent, whose order does not matter. */
const OBJECTS: readonly string[] = ['opts', 'parent', 'pd']

interface Options {
  /** Whether a key is left out. */
  readonly ignores: (key: string) => boolean
  /** The fields of a hash that are left out. By default, none. */
  readonly ignoredFields?: readonly string[]
  /** How an event is shown, or undefined to leave it out. By default, all of its fields are. */
  readonly event?: (event: string, fields: readonly string[]) => string | undefined
  /** The number that is shown for a time, a score or an id that varies. By default, it is 0. */
  readonly varying?: (text: string) => number
}

export async function stateOf(
  { namespace, redis }: { readonly namespace: string; readonly redis: Redis },
  options: Options,
): Promise<Record<string, unknown>> {
  const { varying = () => 0 } = options
  const found: Record<string, unknown> = {}
  const shown = (text: string): string =>
    text.replaceAll(namespace, 'ns').replaceAll(VARYING, (each) => `${varying(each)}`)
  const ignored = [...(options.ignoredFields ?? []), 'lock']
  for (const key of (await redis.keys(`*${namespace}*`)).filter((each) => !options.ignores(each))) {
    const value = await storedIn(redis, key, { ...options, ignoredFields: ignored })
    const name = shown(key).replace(/:unrenewed$/, ':stalled')
    found[name] = JSON.parse(shown(JSON.stringify([value, (await redis.pttl(key)) > 0])))
    // Bullpen's lock is shown like BullMQ's.
    const lock = (await redis.type(key)) === 'hash' && (await redis.hget(key, 'lock'))
    if (lock) found[`${name}:lock`] = [lock.slice(lock.indexOf(' ') + 1), true]
  }
  return found
}

async function storedIn(redis: Redis, key: string, { ignoredFields = [], event = wholeEvent }: Options) {
  switch (await redis.type(key)) {
    case 'hash': {
      const kept = Object.entries(await redis.hgetall(key)).filter(([name]) => !ignoredFields.includes(name))
      return Object.fromEntries(kept.map(([name, text]) => [name, OBJECTS.includes(name) ? JSON.parse(text) : text]))
    }
    case 'zset': {
      const members = await redis.zrange(key, 0, '-1', 'WITHSCORES')
      // The scores are times, so the order is that of the ids if several jobs were added, or removed, within 1 ms.
      return /:(waiting-children|recently-removed)$/.test(key) ? members.toSorted() : members
    }
    case 'list':
      return redis.lrange(key, 0, -1)
    case 'set':
      return (await redis.smembers(key)).toSorted()
    case 'stream':
      return (await redis.xrange(key, '-', '+')).flatMap(([, [, name = '', ...fields]]) => event(name, fields) ?? [])
    default:
      return redis.get(key)
  }
}

function wholeEvent(event: string, fields: readonly string[]): string {
  return [event, ...fields].join(' ')
}
