// Stores what the catalogue limits in a queue: its concurrency keys, its limiters and its circuit breakers. The scripts that
// start tasks read what is stored, so it has to be stored before the first fetch. A consumer (./consumer.ts) and a team's own Worker
// (./store/bullpen-backend.ts) do this.
import type { BreakersOf, Catalogue } from '@bullpen/contract'
import { capacitiesOf } from '@bullpen/engine/internal'
import { defineBreakers } from './breakers/stored-breaker.ts'
import { type DefinedLimits, defineLimits } from './internals/turns/key-limits.ts'
import type { QueueKeys } from './keys.ts'
import type { ScriptRunner } from './scripts/script.ts'

export interface LimitsOfQueue extends DefinedLimits {
  /** Undefined if the queue has no circuit breakers. */
  readonly breakers: BreakersOf | undefined
}

/** Returns what the catalogue limits in a queue. */
export function limitsOf(catalogue: Catalogue, name: string): LimitsOfQueue {
  const { perConcurrencyKey: keyLimits, breakers } = catalogue.queue(name)
  return { keyLimits, capacities: capacitiesOf(catalogue, name), breakers }
}

export function hasLimits({ keyLimits, capacities, breakers }: LimitsOfQueue): boolean {
  return keyLimits !== undefined || breakers !== undefined || Object.keys(capacities).length > 0
}

/**
 * Stores the limits. They replace those that another process has stored if `replaces` is true, so that the worker that started
 * last decides. Takes one round trip.
 */
export async function storeLimits(
  run: ScriptRunner,
  keys: Pick<QueueKeys, 'base' | 'settings' | 'breakers'>,
  { breakers, ...limits }: LimitsOfQueue,
  { replaces }: { readonly replaces: boolean },
): Promise<void> {
  await Promise.all([
    defineLimits(run, keys, limits, { replaces }),
    ...(replaces || breakers !== undefined ? [defineBreakers(run, keys, breakers ?? {}, { replaces })] : []),
  ])
}
