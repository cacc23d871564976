// Parses the options of a task that is enqueued.
import type { CallBackoff, CallRetry, Duration, FollowUp, UniqueOptions } from '@bullpen/contract'
import { BACKOFF_TYPES, DURABILITIES, MAX_ATTEMPTS, MAX_FACTOR, ON_CONFLICT } from '@bullpen/contract/internal'
import type { CommandLine } from './command-line.ts'
import { parseJsonInput } from './json-input.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  parseLimit,
  parseMeta,
  parseNumber,
  parsePriority,
  parseTime,
  parseUntil,
  parseWhenFull,
  withoutUndefined,
} from './option-values.ts'
import { UsageError } from './usage-error.ts'

type Values = CommandLine['values']

/** Returns the options that were given. @throws UsageError. */
export function parseEnqueueOptions(values: Values) {
  return withoutUndefined({
    meta: parseMeta(values.meta),
    tags: values.tag,
    ...parseFollowUps(values),
    delay: parseDuration('--delay', values.delay),
    runAt: parseTime('--run-at', values['run-at']),
    priority: parsePriority(values.priority),
    concurrencyKey: values['concurrency-key'],
    unique: uniqueIn(values),
    whenFull: parseWhenFull(values['when-full']),
    durability: parseChoice('--durability', values.durability, DURABILITIES),
    retry: retryIn(values),
    timeout: parseLimit('--timeout', values.timeout),
    heartbeatTimeout: parseLimit('--heartbeat-timeout', values['heartbeat-timeout']),
    queueTimeout: parseLimit('--queue-timeout', values['queue-timeout']),
    totalTimeout: parseLimit('--total-timeout', values['total-timeout']),
  })
}

/** Returns the follow-ups that were given. @throws UsageError. */
export function parseFollowUps(values: Values) {
  return withoutUndefined({
    onSuccess: values['on-success']?.map((text) => parseFollowUp('--on-success', text)),
    onFailure: values['on-failure']?.map((text) => parseFollowUp('--on-failure', text)),
    onEnd: values['on-end']?.map((text) => parseFollowUp('--on-end', text)),
  })
}

/** Parses a follow-up such as `receipt.send={"order":7}`. The input defaults to `{}`. */
function parseFollowUp(option: string, text: string): FollowUp {
  const [task = '', ...rest] = text.split('=')
  if (task === '')
    throw new UsageError(`${option} is ${JSON.stringify(text)}; expected TASK={JSON}, such as mail.send={"n":5}`)
  return { task, input: rest.length === 0 ? {} : parseJsonInput(option, rest.join('=')) }
}

function retryIn(values: Values): CallRetry | undefined {
  const retry = withoutUndefined({
    maxAttempts: parseCount('--max-attempts', values['max-attempts'], MAX_ATTEMPTS),
    backoff: backoffIn(values),
  })
  return isEmpty(retry) ? undefined : retry
}

/** The API knows which settings the definition's backoff has, and within which bounds they must be. */
function backoffIn(values: Values): CallBackoff | undefined {
  const backoff = withoutUndefined({
    type: parseChoice('--backoff', values.backoff, BACKOFF_TYPES),
    initialDelay: parseDuration('--initial-delay', values['initial-delay']),
    maxDelay: parseDuration('--max-delay', values['max-delay']),
    factor: parseNumber('--factor', values.factor, { min: 1, max: MAX_FACTOR }),
    delays: values.delays?.split(',').map((each) => parseDuration('--delays', each) as Duration),
    jitter: parseJitter('--backoff-jitter', values['backoff-jitter']),
  })
  return isEmpty(backoff) ? undefined : backoff
}

/** Refuses the options of a unique key if there is no key, because they would have no effect. */
function uniqueIn(values: Values): UniqueOptions | undefined {
  const { 'unique-key': key, 'unique-until': until, 'on-conflict': onConflict } = values
  if (key === undefined) {
    const extra = until !== undefined ? '--unique-until' : onConflict !== undefined ? '--on-conflict' : undefined
    if (extra !== undefined) throw new UsageError(`${extra} requires --unique-key`)
    return undefined
  }
  return withoutUndefined({
    key,
    until: parseUntil('--unique-until', until),
    onConflict: parseChoice('--on-conflict', onConflict, ON_CONFLICT),
  })
}

function parseJitter(option: string, text: string | undefined): number | 'full' | undefined {
  return text === 'full' ? text : parseNumber(option, text, { min: 0, max: 1 })
}

function isEmpty(options: object): boolean {
  return Object.keys(options).length === 0
}
