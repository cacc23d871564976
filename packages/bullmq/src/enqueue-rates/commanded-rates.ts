// Stores and reads the rates of API keys that commands have set.
import type { EnqueueRate } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { decodeRate, encodeRate } from '../fleet/queue-settings.ts'
import type { FleetKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { applyEnqueueRateScript } from '../store/scripts.ts'

/** The part of a command that limits an API key in all queues together. */
export interface RateCommand {
  readonly apiKeyName: string
  readonly enqueueRate: NonNullable<Extract<CommandSpec, { readonly action: 'limit' }>['enqueueRate']>
}

/** Returns the part of a command that limits an API key in all queues together, or undefined if the command has no such part. */
export function rateCommandIn(spec: CommandSpec): RateCommand | undefined {
  if (spec.action !== 'limit' || spec.queue !== undefined) return undefined
  if (spec.apiKeyName === undefined || spec.enqueueRate === undefined) return undefined
  return { apiKeyName: spec.apiKeyName, enqueueRate: spec.enqueueRate }
}

/**
 * Stores the rate that a command sets. A command never overwrites a newer one, whichever is applied first. The call is atomic and
 * idempotent, and takes one round trip.
 */
export async function storeEnqueueRate(
  redis: Commander,
  { enqueueRates }: FleetKeys,
  { apiKeyName, enqueueRate }: RateCommand,
  sequence: string,
): Promise<void> {
  const args = { apiKeyName, sequence, rate: encodeRate(enqueueRate) }
  await runScript(redis, applyEnqueueRateScript, { enqueueRates }, args)
}

/** Reads the rates that commands have set, by the API key's name. Takes one round trip. */
export async function readEnqueueRates(
  redis: Commander,
  { enqueueRates }: FleetKeys,
): Promise<ReadonlyMap<string, EnqueueRate>> {
  const stored = Object.entries(await redis.hgetall(enqueueRates))
  return new Map(
    stored.flatMap(([name, text]) => {
      const rate = decodeRate(text.slice(text.indexOf(' ') + 1))
      return rate === undefined ? [] : [[name, rate]]
    }),
  )
}
