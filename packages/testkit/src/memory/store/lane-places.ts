// Keeps the passes of a memory store's lanes, and which of the lanes take turns and which may start no task.
import type { Lane } from './lane.ts'
import type { Limiters } from './limiters.ts'

/** A lane that takes turns. */
export interface Place {
  readonly lane: Lane
  readonly pass: number
}

/** A lane that may start no task. `pass` is that with which it takes turns again. */
export interface Blocked extends Place {
  /** When it takes turns again, or undefined if something else has to happen first. */
  readonly until: number | undefined
}

export class LanePlaces {
  readonly #limiters: Limiters
  /** By the names of the lanes. A lane that has no more waiting tasks keeps its place until its turn. */
  readonly #turns = new Map<string, Place>()
  readonly #blocked = new Map<string, Blocked>()
  /** The pass of the last turn after which a lane was blocked, in case no lane takes turns then. */
  #time: number | undefined

  constructor(limiters: Limiters) {
    this.#limiters = limiters
  }

  /** The lanes that take turns, in the order of their turns. */
  get inTurn(): readonly Place[] {
    return [...this.#turns.values()].sort(byPass)
  }

  /** The lanes that may start no task, by their passes. */
  get blocked(): readonly Blocked[] {
    return [...this.#blocked.values()].sort(byPass)
  }

  has({ name }: Lane): boolean {
    return this.#turns.has(name) || this.#blocked.has(name)
  }

  blockedLane(name: string): Blocked | undefined {
    return this.#blocked.get(name)
  }

  /** The pass that all lanes have reached: that of the next lane, or that of the last turn after which a lane was blocked. */
  get reached(): number | undefined {
    const first = this.inTurn[0]?.pass
    if (first === undefined || this.#time === undefined) return first ?? this.#time
    return Math.max(first, this.#time)
  }

  /** The pass of the last turn after which a lane was blocked, if any was. */
  get time(): number | undefined {
    return this.#time
  }

  /** Notes that all lanes have reached this pass. */
  reach(pass: number): void {
    this.#time = Math.max(pass, this.#time ?? pass)
  }

  /** Lets a lane take turns with this pass. */
  place(lane: Lane, pass: number): void {
    this.#blocked.delete(lane.name)
    this.#turns.set(lane.name, { lane, pass })
  }

  remove({ name }: Lane): void {
    this.#turns.delete(name)
  }

  /** Lets a lane take no turns for now. `time` is the pass of the turn in which it met its limit, if it did so. */
  block(lane: Lane, pass: number, until?: number, time: number | undefined = this.#time): void {
    this.#turns.delete(lane.name)
    this.#blocked.set(lane.name, { lane, pass, until })
    this.#time = time
  }

  /** Lets a lane take turns again. If it was blocked for a long time, it gets no more than its turn. */
  resume({ lane, pass }: Blocked): void {
    this.#blocked.delete(lane.name)
    this.place(lane, Math.max(pass, this.reached ?? pass))
  }

  /** Lets the first lane that waits for a limiter take turns again, with the pass of its ticket. */
  wake(limiter: string): void {
    const first = this.#limiters.first(limiter)
    if (first !== undefined && this.#blocked.has(first.lane.name)) this.place(first.lane, first.pass)
  }

  /** All lanes begin again. */
  forget(): void {
    this.#turns.clear()
    this.#blocked.clear()
    this.#time = undefined
  }
}

/** Orders lanes by their pass, and those with the same pass by their name. */
export function byPass(one: Place, other: Place): number {
  return one.pass - other.pass || byName(one, other)
}

export function byName({ lane }: Place, { lane: other }: Place): number {
  return lane.name < other.name ? -1 : 1
}
