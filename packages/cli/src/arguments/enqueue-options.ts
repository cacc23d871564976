// Parses the options of a task that is enqueued.
import type { UniqueOptions } from '@bullpen/contract'
import { MAX_ATTEMPTS, ON_CONFLICT } from '@bullpen/contract/internal'
import type { CommandLine } from './command-line.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  parseLimit,
  parseMeta,
  parsePriority,
  parseTime,
  parseUntil,
  parseWhenFull,
} from './option-values.ts'
import { UsageError } from './usage-error.ts'

type Values = CommandLine['values']

/** Returns the options that were given. @throws UsageError. */
export function parseEnqueueOptions(values: Values) {
  const maxAttempts = values['max-attempts']
  return withoutUndefined({
    meta: parseMeta(values.meta),
    tags: values.tag,
    delay: parseDuration('--delay', values.delay),
    runAt: parseTime('--run-at', values['run-at']),
    priority: parsePriority(values.priority),
    concurrencyKey: values['concurrency-key'],
    unique: uniqueIn(values),
    whenFull: parseWhenFull(values['when-full']),
    retry:
      maxAttempts === undefined ? undefined : { maxAttempts: parseCount('--max-attempts', maxAttempts, MAX_ATTEMPTS) },
    timeout: parseLimit('--timeout', values.timeout),
    heartbeatTimeout: parseLimit('--heartbeat-timeout', values['heartbeat-timeout']),
    queueTimeout: parseLimit('--queue-timeout', values['queue-timeout']),
    totalTimeout: parseLimit('--total-timeout', values['total-timeout']),
  })
}

/** Refuses the options of a unique key if there is no key, because they would have no effect. */
function uniqueIn(values: Values): UniqueOptions | undefined {
  const { 'unique-key': key, 'unique-until': until, 'on-conflict': onConflict } = values
  if (key === undefined) {
    const extra = until !== undefined ? '--unique-until' : onConflict !== undefined ? '--on-conflict' : undefined
    if (extra !== undefined) throw new UsageError(`${extra} requires --unique-key`)
    return undefined
  }
  return {
    key,
    ...(until !== undefined && { until: parseUntil('--unique-until', until) }),
    ...(onConflict !== undefined && { onConflict: parseChoice('--on-conflict', onConflict, ON_CONFLICT) }),
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>
}
