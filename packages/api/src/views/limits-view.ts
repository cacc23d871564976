// Converts the limits of a queue and the state of its concurrency keys to the form that the API returns. JSON leaves undefined fields out.
import type { ApiKeyLimits, Fairness, LimitSource, LimitsView, QueueDefinition } from '@bullpen/contract'
import { MAX_SINGLE_KEYS, timeText, weightOf } from '@bullpen/contract/internal'
import type { KeyState, LimitInForce, LimitSettings } from '@bullpen/engine/internal'

type Limits = LimitsView['limits']
type KeyView = LimitsView['keys']['items'][number]

/** Returns the limits that are in force. A limit that a command has set replaces that of the definition. */
export function limitsInForce(stored: LimitSettings, { limits: defined, fairness }: QueueDefinition): Limits {
  const { settings, perApiKey } = stored
  return {
    // Only commands set these two.
    concurrency: maxOf(inForce(settings.concurrency)),
    rate: rateOf(inForce(settings.rate)),
    maxTasks: maxOf(inForce(settings.maxTasks, defined?.maxTasks)),
    maxBytes: maxOf(inForce(settings.maxBytes, defined?.maxBytes)),
    maxAgeMs: maxOf(inForce(settings.maxAgeMs, defined?.maxAgeMs)),
    perApiKey: apiKeysView(perApiKey, defined?.perApiKey),
    perConcurrencyKey: concurrencyKeysView(stored),
    limiters: stored.limiters?.map((limiter) => ({ ...limiter })),
    weights: fairness && weightsView(fairness),
  }
}

/** `fairness` is that of the queue's definition, which has the weights. */
export function keyView({ key, concurrency, rate, nextStartAt, ...state }: KeyState, fairness?: Fairness): KeyView {
  return {
    key,
    weight: fairness && weightOf(fairness, key),
    waiting: state.waiting,
    active: state.active,
    concurrency: withOwn(maxOf(concurrency), concurrency),
    rate: withOwn(rateOf(rate), rate),
    blockedBy: [...state.blockedBy],
    nextStartAt: nextStartAt === undefined ? undefined : timeText(nextStartAt),
  }
}

function apiKeysView(commanded: LimitSettings['perApiKey'], defined: ApiKeyLimits | undefined): Limits['perApiKey'] {
  if (defined === undefined && commanded.size === 0) return undefined
  const viewOf = ({ enqueueRate, maxUnfinishedTasks }: ApiKeyLimits, source: LimitSource) => ({
    enqueueRate: enqueueRate && { ...enqueueRate, source },
    maxUnfinishedTasks: maxUnfinishedTasks === undefined ? undefined : { max: maxUnfinishedTasks, source },
  })
  return {
    ...viewOf(defined ?? {}, 'definition'),
    apiKeys: [...commanded].map(([name, limits]) => ({ name, ...viewOf(limits, 'command') })),
  }
}

function concurrencyKeysView(stored: LimitSettings): Limits['perConcurrencyKey'] {
  const { settings, perConcurrencyKey, singleKeys } = stored
  if (settings.perConcurrencyKey === undefined) return undefined
  const viewOf = ({ concurrency, rate }: LimitSettings['perConcurrencyKey']) => ({
    concurrency: maxOf(concurrency),
    rate: rateOf(rate),
  })
  return {
    ...viewOf(perConcurrencyKey),
    ofSingleKeys: settings.perConcurrencyKey.ofSingleKeys,
    singleKeys: singleKeys.map(({ key, ...limits }) => ({ key, ...viewOf(limits) })),
  }
}

function weightsView({ weights }: Fairness): Limits['weights'] {
  const all = Object.entries(weights)
  const largest = all.toSorted(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).slice(0, MAX_SINGLE_KEYS)
  return { ofSingleKeys: all.length, singleKeys: largest.map(([key, weight]) => ({ key, weight })) }
}

function inForce<T>(commanded: T | undefined, defined?: T): LimitInForce<T> | undefined {
  if (commanded !== undefined) return { value: commanded, source: 'command' }
  return defined === undefined ? undefined : { value: defined, source: 'definition' }
}

type Limit<T> = LimitInForce<T> | undefined

function maxOf(limit: Limit<number>) {
  return limit && { max: limit.value, source: limit.source }
}

function rateOf<Rate extends object>(limit: Limit<Rate>) {
  return limit && { ...limit.value, source: limit.source }
}

function withOwn<View extends object>(view: View | undefined, limit: { readonly isOwn: boolean } | undefined) {
  return view && limit && { ...view, isOwn: limit.isOwn }
}
