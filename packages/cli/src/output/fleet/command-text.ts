// Formats fleet commands as text: the request and its outcome.
import type { CommandOutcome, CommandView } from '@bullpen/contract'
import { formatBytes } from '@bullpen/contract/internal'
import type { Style } from '../colors.ts'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count, plain } from '../format.ts'

const STYLES: Readonly<Record<CommandOutcome | 'gone', Style>> = {
  done: 'green',
  partly: 'yellow',
  pending: 'yellow',
  refused: 'red',
  gone: 'yellow',
}

type Spec = CommandView['spec']

/** Returns the command in the imperative, such as `drain cpu, soft_timeout 30s`. */
export function requestText(spec: Spec): string {
  const { action, mode, timeout, how, concurrency, level, service, to } = spec
  const details: Readonly<Record<Spec['action'], string>> = {
    pause: '',
    resume: '',
    drain: [mode, timeout].filter(Boolean).join(' '),
    stop: how === 'hard' ? 'hard' : '',
    resize: typeof concurrency === 'number' ? count(concurrency, 'slot') : '',
    limit: limits(spec)
      .map(({ kind, value }) => `${kind} ${value}`)
      .join(', '),
    breaker: `${service} ${to}`,
    log_level: [level, spec.for && `for ${spec.for}`].filter(Boolean).join(' '),
  }
  return plain([`${action.replace('_', '-')} ${targetText(spec)}`, details[action]].filter(Boolean).join(', '))
}

/**
 * Describes the outcome of a command that every worker has carried out, such as `rate limit removed from cpu` or
 * `limit on the length of cpu reset to the limit of the queue's definition, if any`.
 */
function doneText(spec: Spec): string {
  const target = targetText(spec)
  const texts: Readonly<Record<Spec['action'], () => string>> = {
    pause: () => `paused ${target}`,
    resume: () => `resumed ${target}`,
    drain: () => `drain of ${target} started, ${[spec.mode, spec.timeout].filter(Boolean).join(' ')}`,
    stop: () => (spec.how === 'hard' ? `stopped ${target}` : `stopping ${target} after its task`),
    resize: () => `resized ${target} to ${typeof spec.concurrency === 'number' ? count(spec.concurrency, 'slot') : ''}`,
    limit: () => limits(spec).map(limitText).join('; '),
    breaker: () =>
      spec.to === 'auto'
        ? `breaker ${spec.service} of ${target} set to auto`
        : `breaker ${spec.service} of ${target} set to stay ${spec.to}`,
    log_level: () =>
      `log level of ${target} set to ${[spec.level, spec.for && `for ${spec.for}`].filter(Boolean).join(' ')}`,
  }
  return plain(texts[spec.action]())

  function limitText({ kind, value, fallback }: Limit): string {
    if (value !== 'none') return `${kind} of ${target} limited to ${value}`
    return fallback === undefined
      ? `${kind} limit removed from ${target}`
      : `limit on the ${kind} of ${target} reset to the limit of ${fallback}, if any`
  }
}

interface Limit {
  readonly kind: string
  readonly value: string
  /** Where the limit is set that applies again when the command's limit is removed. Undefined if only commands set such limits. */
  readonly fallback: string | undefined
}

function limits(spec: Spec): readonly Limit[] {
  const { concurrency, rate, concurrencyPerKey, ratePerKey, permits = {} } = spec
  const { maxTasks, maxBytes, maxAge, enqueueRate, maxUnfinishedTasks } = spec
  // The limits of a concurrency key and of a task are also set in definitions.
  const ofTask = spec.task === undefined ? undefined : 'its definition'
  const definition = spec.concurrencyKey === undefined ? ofTask : DEFINITION
  const rows: readonly (readonly [kind: string, value: string | number | undefined, fallback: string | undefined])[] = [
    ['concurrency', concurrency, definition],
    ['rate', rate && rateText(rate), definition],
    ['concurrency per key', concurrencyPerKey, DEFINITION],
    ['rate per key', ratePerKey && rateText(ratePerKey), DEFINITION],
    ...Object.entries(permits).map(([name, number]) => [`number of ${name} permits`, number, DEFINITION] as const),
    ['length', typeof maxTasks === 'number' ? count(maxTasks, 'task') : maxTasks, DEFINITION],
    ['size', typeof maxBytes === 'number' ? formatBytes(maxBytes) : maxBytes, DEFINITION],
    ['age', maxAge, DEFINITION],
    ['enqueue rate', enqueueRate && rateText(enqueueRate), `${DEFINITION} or of the API's settings`],
    ['number of unfinished tasks', maxUnfinishedTasks, DEFINITION],
  ]
  return rows.flatMap(([kind, value, fallback]) => (value === undefined ? [] : [{ kind, value: `${value}`, fallback }]))
}

const DEFINITION = "the queue's definition"

function rateText(rate: NonNullable<Spec['rate']>): string {
  if (rate === 'none') return rate
  return `${rate.max}/${rate.per}${rate.burst === undefined ? '' : ` with bursts of ${rate.burst}`}`
}

/**
 * Returns `cpu`, `cpu of WORKER`, `WORKER`, `all workers`, `WORKER/cpu/3`, `API key shop`, `API key shop in cpu`, `concurrency
 * key acme in cpu` or `task a.b in cpu`.
 */
export function targetText(
  spec: Pick<Spec, 'queue' | 'worker' | 'slot' | 'apiKeyName' | 'concurrencyKey' | 'task'>,
): string {
  const { queue, worker, slot, apiKeyName, concurrencyKey, task } = spec
  if (concurrencyKey !== undefined) return `concurrency key ${concurrencyKey} in ${queue}`
  if (task !== undefined) return `task ${task} in ${queue}`
  if (apiKeyName !== undefined) return `API key ${apiKeyName}${queue === undefined ? '' : ` in ${queue}`}`
  if (slot !== undefined) return `${worker}/${queue}/${slot}`
  if (queue !== undefined && worker !== undefined) return `${queue} of ${worker}`
  return queue ?? worker ?? 'all workers'
}

/** Returns a line for the command with its outcome, and a line for each worker's response. */
export function commandLines({ id, spec, outcome, responses }: CommandView, layout: Layout): readonly string[] {
  const head: Cell[] =
    outcome === 'done'
      ? [doneText(spec), '', `command ${plain(id)}`]
      : [requestText(spec), [STYLES[outcome], outcome], `command ${plain(id)}`]
  const rows = responses.map((response): Cell[] => [
    plain(response.worker),
    [STYLES[response.outcome], response.outcome],
    plain(response.detail ?? ''),
  ])
  return [...tableLines([head], { ...layout, indent: 0 }), ...tableLines(rows, { ...layout, indent: 2 })]
}

/** Returns a line for each command with its time, outcome, request, sender and id. */
export function auditLines(commands: readonly CommandView[], layout: Layout): readonly string[] {
  const rows = commands.map(({ at, outcome, spec, by, id }): Cell[] => [
    at.replace(/\.\d+Z$/, 'Z'),
    [STYLES[outcome], outcome],
    requestText(spec),
    plain(by),
    plain(id),
  ])
  return tableLines(rows, { ...layout, indent: 0 })
}
