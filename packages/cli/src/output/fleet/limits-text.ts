// Formats the limits of a queue, its circuit breakers and its concurrency keys as tables.
import { formatDuration, type LimitsView } from '@bullpen/contract'
import { formatBytes } from '@bullpen/contract/internal'
import { type Cell, type Layout, tableLines } from '../columns.ts'
import { count, literal, plain, relativeTime } from '../format.ts'
import { BREAKER_HEADING, breakerCells } from './breaker-cells.ts'

type Limits = LimitsView['limits']
type Keys = LimitsView['keys']

/** Times are relative to Redis's clock, not to this machine's. */
export function limitsLines(view: LimitsView, given: Layout): readonly string[] {
  const layout = { ...given, now: Date.parse(view.now), indent: 0 }
  const rows = limitRows(view.limits)
  return [
    headline(view),
    ...(rows.length === 0 ? [] : ['', ...tableLines([['limit', 'value', 'set by'], ...rows], layout)]),
    ...omitted(view.limits),
    ...breakerLines(view.breakers, layout),
    ...keyLines(view.keys, layout),
  ]
}

function headline({ queue, paused, takesTurns, keys }: LimitsView): string {
  const { waitingKeys, waitingTasks } = keys
  const waiting =
    waitingKeys === 0
      ? 'no concurrency key has waiting tasks'
      : `${count(waitingTasks, 'task')} of ${count(waitingKeys, 'concurrency key')} ${waitingTasks === 1 ? 'waits' : 'wait'}`
  const turns = takesTurns ? [waiting] : ['no fairness', ...(waitingKeys === 0 ? [] : [waiting])]
  return `${plain(queue)}: ${[...(paused ? ['paused'] : []), ...turns].join(', ')}`
}

/** Returns a row for each limit that is in force: its name, its value, and what has set it. */
function limitRows(limits: Limits): readonly Cell[][] {
  const { perApiKey, perConcurrencyKey, weights } = limits
  return [
    ...maxRow('concurrency', limits.concurrency),
    ...rateRow('rate', limits.rate),
    ...maxRow('max tasks', limits.maxTasks),
    ...maxRow('max bytes', limits.maxBytes, formatBytes),
    ...maxRow('max age', limits.maxAgeMs, formatDuration),
    ...rateRow('enqueue rate per API key', perApiKey?.enqueueRate),
    ...maxRow('unfinished tasks per API key', perApiKey?.maxUnfinishedTasks),
    ...(perApiKey?.apiKeys ?? []).flatMap(({ name, enqueueRate, maxUnfinishedTasks }) => [
      ...rateRow(`enqueue rate of API key ${plain(name)}`, enqueueRate),
      ...maxRow(`unfinished tasks of API key ${plain(name)}`, maxUnfinishedTasks),
    ]),
    ...maxRow('concurrency per key', perConcurrencyKey?.concurrency),
    ...rateRow('rate per key', perConcurrencyKey?.rate),
    ...(perConcurrencyKey?.singleKeys ?? []).flatMap(({ key, concurrency, rate }) => [
      ...maxRow(`concurrency of ${literal(key)}`, concurrency),
      ...rateRow(`rate of ${literal(key)}`, rate),
    ]),
    ...(limits.limiters ?? []).map(({ kind, name, capacity, inUse, source }) => [
      `${kind === 'permits' ? 'permits' : 'concurrency of'} ${plain(name)}`,
      `${capacity}, ${inUse} in use`,
      plain(source),
    ]),
    ...(weights?.singleKeys ?? []).map(({ key, weight }) => [`weight of ${literal(key)}`, `${weight}`, 'definition']),
  ]
}

function maxRow(name: string, limit: Limits['maxTasks'], format: (max: number) => string = String): Cell[][] {
  return limit === undefined ? [] : [[name, format(limit.max), plain(limit.source)]]
}

type Rate = Limits['rate'] & { readonly burst?: number }

function rateRow(name: string, limit: Rate | undefined): Cell[][] {
  return limit === undefined ? [] : [[name, rateText(limit), plain(limit.source)]]
}

function rateText({ max, perMs, burst = 1 }: NonNullable<Rate>): string {
  return `${max}/${formatDuration(perMs)}${burst === 1 ? '' : ` with bursts of ${burst}`}`
}

/** Says how many limits and weights of single keys are not listed. */
function omitted({ perConcurrencyKey, weights }: Limits): readonly string[] {
  const listed = (perConcurrencyKey?.singleKeys ?? []).flatMap(({ concurrency, rate }) => [concurrency, rate])
  const limits = (perConcurrencyKey?.ofSingleKeys ?? 0) - listed.filter((limit) => limit !== undefined).length
  const others = (weights?.ofSingleKeys ?? 0) - (weights?.singleKeys.length ?? 0)
  return [
    ...(limits <= 0 ? [] : [`and ${count(limits, 'more limit')} of single keys`]),
    ...(others <= 0 ? [] : [`and ${count(others, 'more weight')}`]),
  ]
}

function breakerLines(
  breakers: LimitsView['breakers'] = [],
  layout: Layout & { readonly indent: number },
): readonly string[] {
  if (breakers.length === 0) return []
  const rows = breakers.map((breaker) => [plain(breaker.service), ...breakerCells(breaker, layout.now)])
  return ['', ...tableLines([['service', ...BREAKER_HEADING], ...rows], layout)]
}

function keyLines({ items }: Keys, layout: Layout & { readonly indent: number }): readonly string[] {
  if (items.length === 0) return []
  const heading = ['key', 'waiting', 'active', 'rate', 'weight', 'blocked by', 'next start']
  const rows = items.map(({ key, waiting, active, concurrency, rate, weight, blockedBy, nextStartAt }): Cell[] => [
    literal(key),
    String(waiting),
    concurrency === undefined ? String(active) : `${active}/${concurrency.max}`,
    rate === undefined ? '-' : rateText(rate),
    weight === undefined ? '-' : String(weight),
    blockedBy.length === 0 ? '-' : ['yellow', plain(blockedBy.join(', '))],
    nextStartAt === undefined ? '' : relativeTime(nextStartAt, layout.now),
  ])
  return ['', ...tableLines([heading, ...rows], layout)]
}
