// Keeps the limiters of a memory store: their capacities, and the tickets of the lanes that wait for them. The lanes that wait
// for a limiter start in the order of their tickets (packages/bullmq/src/store/lua/includes/limits/limiters.lua).
import type { Need } from '@bullpen/engine'
import { type Lane, serviceOf } from './lane.ts'

/** The place of a lane in the line of those that wait for a limiter. */
export interface Ticket extends Need {
  readonly lane: Lane
  /** The pass of the turn in which the lane met the limit. */
  readonly pass: number
}

export interface LimitersOptions {
  /** Returns how much of a limiter the active tasks hold. */
  readonly inUse: (limiter: string) => number
  /** Returns whether the circuit breaker of a service keeps tasks from starting now. */
  readonly isBlocked: (service: string) => boolean
}

export class Limiters {
  readonly #options: LimitersOptions
  #defined: Readonly<Record<string, number>> = {}
  readonly #set = new Map<string, number>()
  readonly #tickets = new Map<string, readonly Ticket[]>()

  constructor(options: LimitersOptions) {
    this.#options = options
  }

  /** Replaces the capacities of the catalogue. Returns the limiters of which tasks hold something, and that limit nothing any more. */
  define(capacities: Readonly<Record<string, number>>): readonly string[] {
    const before = Object.keys(this.#defined)
    this.#defined = capacities
    return this.#lifted(before)
  }

  /** Sets a capacity, which replaces that of the catalogue until it is set to 'none'. Returns the same as `define`. */
  set(limiter: string, capacity: number | 'none'): readonly string[] {
    const before = this.capacityOf(limiter) === undefined ? [] : [limiter]
    if (capacity === 'none') this.#set.delete(limiter)
    else this.#set.set(limiter, capacity)
    return this.#lifted(before)
  }

  /** Returns whether there are capacities. */
  get exist(): boolean {
    return this.#set.size > 0 || Object.keys(this.#defined).length > 0
  }

  /** Returns whether any lane waits for a limiter, or for its key together with other lanes of the key. */
  get areWaitedFor(): boolean {
    return this.#tickets.size > 0
  }

  /** Returns undefined if the limiter limits nothing. A circuit breaker that lets no task start is a limiter without permits. */
  capacityOf(limiter: string): number | undefined {
    const service = serviceOf(limiter)
    if (service !== undefined) return this.#options.isBlocked(service) ? 0 : undefined
    return this.#set.get(limiter) ?? (Object.hasOwn(this.#defined, limiter) ? this.#defined[limiter] : undefined)
  }

  /** Returns whether a limiter has too little left for a need. */
  isTooLittle({ limiter, amount }: Need): boolean {
    const capacity = this.capacityOf(limiter)
    return capacity !== undefined && this.#options.inUse(limiter) + amount > capacity
  }

  /** The limiters for which lanes wait. */
  get waitedFor(): readonly string[] {
    return [...this.#tickets.keys()]
  }

  /** Returns the first ticket for a limiter. Lanes that need more than the capacity are passed over. */
  first(limiter: string): Ticket | undefined {
    const capacity = this.capacityOf(limiter) ?? Number.POSITIVE_INFINITY
    const inLine = this.ticketsFor(limiter).filter(({ amount }) => amount <= capacity)
    return inLine.reduce<Ticket | undefined>(
      (first, each) => (first && !isBefore(each, first) ? first : each),
      undefined,
    )
  }

  ticketsFor(limiter: string): readonly Ticket[] {
    return this.#tickets.get(limiter) ?? []
  }

  hasTicket(lane: Lane, limiter: string): boolean {
    return this.ticketsFor(limiter).some((ticket) => ticket.lane.name === lane.name)
  }

  /** Gives a lane a ticket. It keeps one that it already has. */
  wait(lane: Lane, { limiter, amount }: Need, pass: number): void {
    if (this.hasTicket(lane, limiter)) return
    this.#tickets.set(limiter, [...this.ticketsFor(limiter), { lane, limiter, amount, pass }])
  }

  /** Takes a lane's ticket back. Returns whether it had one. */
  leave(lane: Lane, limiter: string): boolean {
    const before = this.ticketsFor(limiter)
    const left = before.filter((ticket) => ticket.lane.name !== lane.name)
    if (left.length === 0) this.#tickets.delete(limiter)
    else this.#tickets.set(limiter, left)
    return left.length < before.length
  }

  /** Takes all tickets back. */
  forget(): void {
    this.#tickets.clear()
  }

  #lifted(limiters: readonly string[]): readonly string[] {
    return limiters.filter((each) => this.capacityOf(each) === undefined && this.#options.inUse(each) > 0)
  }
}

/** Returns whether a place in a line of lanes comes before another one. */
export function isBefore(one: Pick<Ticket, 'lane' | 'pass'>, other: Pick<Ticket, 'lane' | 'pass'>): boolean {
  return one.pass < other.pass || (one.pass === other.pass && one.lane.name < other.lane.name)
}
