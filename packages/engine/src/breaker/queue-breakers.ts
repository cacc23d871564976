// Applies the circuit breakers of one queue in the memory of one process.
import type { BreakerSettings } from '@bullpen/contract'
import type { ServiceCall } from '../ports/attempt-result.ts'
import type { BreakerStatus, SetBreaker } from '../ports/broker/breakers.ts'
import type { Random } from '../ports/clock.ts'
import { admit, advance, type Breaker, callsIn, newBreaker, record, setMode, startsAt } from './breaker.ts'

export interface StoredBreaker {
  readonly breaker: Breaker
  readonly settings: BreakerSettings
  readonly setBy?: BreakerStatus['setBy']
}

/** The generation of each service's breaker when an attempt started. */
export type Admission = ReadonlyMap<string, number>

export class QueueBreakers {
  /** The breakers that have counted a call or were set. All others are closed. */
  readonly #kept = new Map<string, StoredBreaker>()
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  /** Returns the service whose breaker keeps a task from starting now. */
  blocking(services: readonly string[], now: number): string | undefined {
    return services.find((service) => this.startsAt(service, now) !== now)
  }

  /**
   * Returns when a task that depends on the service may start, in ms since 1970, or 'none' if a person must set the
   * breaker first.
   */
  startsAt(service: string, now: number): number | 'none' {
    const kept = this.#kept.get(service)
    return kept === undefined ? now : startsAt(kept.breaker, now, kept.settings)
  }

  /** Notes the start of a task that no breaker keeps from starting. */
  admit(services: readonly string[], now: number): Admission {
    return new Map(
      services.map((service) => {
        const kept = this.#kept.get(service)
        const breaker = kept && admit(kept.breaker, now, kept.settings)
        if (kept !== undefined && breaker !== undefined) this.#kept.set(service, { ...kept, breaker })
        return [service, (breaker ?? newBreaker(now)).generation]
      }),
    )
  }

  /** Counts the calls of an attempt. Calls of services on which the stored task does not depend are not counted. */
  record(calls: readonly ServiceCall[], admission: Admission, now: number): void {
    for (const { service, failed, slow, settings } of calls) {
      const generation = admission.get(service)
      if (generation === undefined) continue
      const kept = this.#kept.get(service)
      const before = kept?.breaker ?? newBreaker(now)
      const breaker = record(before, { generation, failed, slow }, now, settings, this.#random)
      this.#kept.set(service, { ...kept, breaker, settings })
    }
  }

  set({ service, mode, by, settings }: Omit<SetBreaker, 'queue'>, now: number): void {
    const kept = this.#kept.get(service)
    const before = kept?.breaker ?? newBreaker(now)
    if (before.mode === mode) return
    this.#kept.set(service, { breaker: setMode(before, mode, now), settings, setBy: { by, at: now } })
  }

  status(service: string, settings: BreakerSettings, now: number): BreakerStatus {
    return breakerStatus(service, { breaker: newBreaker(now), ...this.#kept.get(service), settings }, now)
  }
}

/** Returns the status of a breaker after what has happened because time has passed. */
export function breakerStatus(
  service: string,
  { breaker, settings, setBy }: StoredBreaker,
  now: number,
): BreakerStatus {
  const current = advance(breaker, now, settings)
  const at = startsAt(current, now, settings)
  return {
    service,
    state: current.state,
    mode: current.mode,
    since: current.generation === 0 ? undefined : current.since,
    startsAt: at === 'none' || at === now ? undefined : at,
    ...callsIn(current.state === 'closed' ? current.buckets : [], now, settings),
    setBy,
  }
}
