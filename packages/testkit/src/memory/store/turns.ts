// Lets the lanes of a memory store's waiting tasks take turns, in the same order as the Redis broker
// (packages/bullmq/src/store/lua/includes/lanes/turns.lua).
import type { Need } from '@bullpen/engine'
import type { KeyBlock } from './key-starts.ts'
import { type Lane, laneOfKey, serviceOf } from './lane.ts'
import { type Blocked, byName, byPass, LanePlaces, type Place } from './lane-places.ts'
import { isBefore, type Limiters } from './limiters.ts'

/** By how much a lane that had no waiting task joins behind the lane that is next, in turns. */
const JOINS_BEHIND = 0.125

const KEY = 'key:'

/** The limiter for which the lanes of a key with needs wait while the key is at its limit. */
const keyLimiter = (key: string): string => `${KEY}${key}`

/** What a lane has to wait for, and the pass that all lanes have reached, if that is known. */
interface Refusal {
  readonly needs: readonly Need[]
  readonly time: number | undefined
}

export interface TurnsOptions {
  readonly now: () => number
  /** Returns whether a lane has a waiting task. Without a lane, whether any lane has one. */
  readonly waits: (lane?: Lane) => boolean
  readonly limiters: Limiters
  /** Returns whether concurrency keys have limits. */
  readonly limitsKeys: () => boolean
  /** Returns what keeps a key from starting a task, if anything does. */
  readonly blockOf: (key: string) => KeyBlock | undefined
  /** Returns how many tasks of a key are active. */
  readonly activeOf: (key: string) => number
  /** Returns whether as many of a key's tasks are active as its limit says. */
  readonly isFull: (key: string) => boolean
}

export class Turns {
  readonly #options: TurnsOptions
  readonly #limiters: Limiters
  readonly #places: LanePlaces
  /** The pass of each key that has several lanes, which share its turns. */
  readonly #keyPasses = new Map<string, number>()
  /** The pass of the tasks without a lane. */
  #own: number | undefined
  /** Whether keys had limits when the limits changed last. */
  #wereKeysLimited = false

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#limiters = options.limiters
    this.#places = new LanePlaces(options.limiters)
  }

  /** Notes that a lane has got its first waiting task. */
  join(lane: Lane): void {
    if (this.#places.has(lane)) return
    const { reached } = this.#places
    this.#places.place(lane, reached === undefined ? (this.#own ?? 0) : reached + JOINS_BEHIND)
  }

  /**
   * Returns the lane whose turn it is, or undefined if it is the turn of the tasks without a lane, or if no lane may start a task.
   * `hasOthers` is whether tasks without a lane wait.
   */
  next(hasOthers: boolean): Lane | undefined {
    this.#resumeDue()
    for (;;) {
      const [first] = this.#places.inTurn
      if ((first === undefined || !hasOthers) && !this.#options.waits()) {
        this.#forget()
        return undefined
      }
      if (first === undefined || (hasOthers && this.#ownPass(first.pass) <= first.pass)) return undefined
      if (this.#mayStart(first)) return first.lane
    }
  }

  /** Counts a start. `lane` is undefined for a task without a lane. */
  started(lane: Lane | undefined, weight: number): void {
    const lanes = this.#places.inTurn
    const [first, second] = lanes
    if (lane === undefined) {
      if (first !== undefined) this.#own = this.#ownPass(first.pass) + 1
      return
    }
    if (first?.lane.name === lane.name) this.#startedInTurn(first, second?.pass, weight)
    else {
      // A worker that runs only some tasks does not wait for their turns.
      const place = lanes.find((each) => each.lane.name === lane.name)
      if (place !== undefined) this.#places.place(lane, place.pass + 1 / weight)
    }
  }

  /** Gives back what a task of a lane has held that is no longer active. */
  left({ key, needs }: Lane): void {
    if (key !== '' && this.#options.limitsKeys()) {
      const blocked = this.#places.blockedLane(laneOfKey(key))
      if (blocked !== undefined && blocked.until === undefined) this.#places.resume(blocked)
      this.#places.wake(keyLimiter(key))
    }
    for (const { limiter } of needs) {
      if (serviceOf(limiter) === undefined && this.#limiters.capacityOf(limiter) !== undefined)
        this.#places.wake(limiter)
    }
  }

  /**
   * Notes that a lane has lost its last waiting task before its turn. Returns whether it gives its tickets back in the next
   * turn because of that.
   */
  emptied(lane: Lane): boolean {
    const blocked = this.#places.blockedLane(lane.name)
    if (blocked === undefined || lane.needs.length === 0) return false
    this.#places.place(lane, blocked.pass)
    return true
  }

  /**
   * Lets the lanes take turns again that may start a task after limits have changed. Those that wait for a time are looked at
   * again. `lifted` are the limiters that limit nothing any more, although tasks hold something of them.
   */
  recheck(lifted: readonly string[]): void {
    for (const key of this.#uncounted()) {
      const blocked = this.#places.blockedLane(laneOfKey(key))
      if (blocked !== undefined) this.#examine(blocked)
      this.#places.wake(keyLimiter(key))
    }
    for (const limiter of lifted) this.#places.wake(limiter)
    for (const blocked of this.#places.blocked) this.#examine(blocked)
    for (const limiter of this.#limiters.waitedFor) this.#places.wake(limiter)
  }

  /**
   * Returns the keys of blocked lanes whose active tasks are no longer counted, because keys have no limits any more. As in
   * Redis, those with the fewest active tasks come first.
   */
  #uncounted(): readonly string[] {
    const wereLimited = this.#wereKeysLimited
    this.#wereKeysLimited = this.#options.limitsKeys()
    if (!wereLimited || this.#wereKeysLimited) return []
    const keys = new Set(this.#places.blocked.map(({ lane }) => lane.key))
    const counted = [...keys].map((key) => ({ key, active: key === '' ? 0 : this.#options.activeOf(key) }))
    return counted
      .filter(({ active }) => active > 0)
      .sort((one, other) => one.active - other.active || (one.key < other.key ? -1 : 1))
      .map(({ key }) => key)
  }

  /** Looks at a blocked lane again. */
  #examine(blocked: Blocked): void {
    const { lane, pass } = blocked
    const firstForKey = this.#limiters.first(keyLimiter(lane.key))
    // Only the first of the lanes that wait for a key is woken.
    if (this.#limiters.hasTicket(lane, keyLimiter(lane.key)) && firstForKey?.lane.name !== lane.name) return
    const until = this.#options.limitsKeys() ? blocked.until : undefined
    const waitsForKey = lane.needs.length === 0 || this.#limiters.hasTicket(lane, keyLimiter(lane.key))
    const isRefused = waitsForKey ? this.#options.isFull(lane.key) : this.ticketOf(lane) !== undefined
    if (isRefused || until !== undefined) this.#places.block(lane, pass, until === undefined ? undefined : 0)
    else this.#places.resume(blocked)
  }

  /** Returns the first limiter for which a lane waits, or undefined if it takes turns, or waits for its key or a time. */
  ticketOf(lane: Lane): string | undefined {
    if (this.#places.blockedLane(lane.name) === undefined || this.#limiters.hasTicket(lane, keyLimiter(lane.key)))
      return undefined
    return lane.needs.find(({ limiter }) => this.#limiters.hasTicket(lane, limiter))?.limiter
  }

  /** Lets the lanes take turns again whose time has come, or for whose services the circuit breakers let tasks start. */
  #resumeDue(): void {
    const now = this.#options.now()
    const due = this.#places.blocked.filter(({ until = Number.POSITIVE_INFINITY }) => until <= now)
    for (const blocked of due.toSorted((one, other) => (one.until ?? 0) - (other.until ?? 0) || byName(one, other))) {
      this.#places.resume(blocked)
    }
    for (const limiter of this.#limiters.waitedFor) {
      if (serviceOf(limiter) === undefined || this.#limiters.capacityOf(limiter) !== undefined) continue
      for (const { lane } of this.#limiters.ticketsFor(limiter).toSorted(byPass)) {
        this.#limiters.leave(lane, limiter)
        const blocked = this.#places.blockedLane(lane.name)
        if (blocked !== undefined) this.#places.resume(blocked)
      }
    }
    // A lane that waits for permits gives its tickets back in its turn once a circuit breaker no longer lets it start anything.
    for (const limiter of this.#limiters.waitedFor) {
      const first = limiter.startsWith(KEY) ? undefined : this.#limiters.first(limiter)
      if (first?.lane.needs.some((need) => this.#isBlockedService(need))) this.#places.wake(limiter)
    }
  }

  #isBlockedService({ limiter }: Need): boolean {
    return serviceOf(limiter) !== undefined && this.#limiters.capacityOf(limiter) !== undefined
  }

  /** Returns whether the lane whose turn it is may start a task. Otherwise, it leaves the turns. */
  #mayStart({ lane, pass }: Place): boolean {
    const block = lane.key === '' ? undefined : this.#options.blockOf(lane.key)
    const isLimited = this.#isLimited(lane)
    if (!this.#options.waits(lane) && (isLimited || block === undefined)) {
      this.#places.remove(lane)
      if (isLimited) this.#leaveTickets(lane)
      if (lane.needs.length > 0) this.#forgetKeyPasses(pass)
      return false
    }
    if (block !== undefined) {
      const keyNeed = isLimited && block.kind === 'concurrency' ? keyLimiter(lane.key) : undefined
      if (isLimited) this.#leaveTickets(lane, keyNeed)
      this.#blockByKey(lane, block, { pass, time: pass, waitsSince: undefined })
      return false
    }
    const refusal = isLimited ? this.#refusalOf(lane, pass) : undefined
    if (refusal !== undefined) this.#waitFor(lane, refusal.needs, pass, refusal.time)
    return refusal === undefined
  }

  #startedInTurn({ lane, pass: ownPass }: Place, second: number | undefined, weight: number): void {
    const { key, needs } = lane
    const isLimited = this.#isLimited(lane)
    const reached = Math.max(second ?? 0, this.#places.time ?? 0)
    // The lane has kept its place among those that wait, but gets no more than its turn among all lanes.
    const pass = isLimited && this.#leaveTickets(lane) ? Math.max(ownPass, reached) : ownPass
    const keyPass = this.#keyPasses.get(key)
    const next = Math.max(pass, keyPass ?? pass) + 1 / weight
    if (keyPass !== undefined || needs.length > 0) this.#keyPasses.set(key, next)
    const block = key === '' ? undefined : this.#options.blockOf(key)
    if (block !== undefined) {
      this.#blockByKey(lane, block, { pass: next, time: pass, waitsSince: pass })
      return
    }
    this.#places.place(lane, next)
    const refusal = isLimited && this.#options.waits(lane) ? this.#refusalOf(lane, next) : undefined
    if (refusal !== undefined) this.#waitFor(lane, refusal.needs, next, pass)
  }

  /** Returns whether the needs of a lane may matter. If the queue limits nothing, they do not. */
  #isLimited({ needs }: Lane): boolean {
    if (needs.length === 0) return false
    if (this.#options.limitsKeys() || this.#limiters.exist || this.#limiters.areWaitedFor) return true
    return needs.some(({ limiter }) => this.#limiters.capacityOf(limiter) !== undefined)
  }

  /**
   * Returns what a lane has to wait for with this pass, or undefined if its next task may start. A lane that has to wait gives
   * back its ticket for the key. One that needs more than a capacity also gives back those for the other limiters.
   */
  #refusalOf(lane: Lane, pass: number): Refusal | undefined {
    const refused: Need[] = []
    let time = pass
    for (const need of lane.needs) {
      const capacity = this.#limiters.capacityOf(need.limiter)
      if (capacity === undefined) continue
      if (need.amount > capacity) {
        this.#leaveTickets(lane, need.limiter)
        return { needs: [need], time: undefined }
      }
      const first = this.#limiters.first(need.limiter)
      const isBehind = first !== undefined && first.lane.name !== lane.name && isBefore(first, { lane, pass })
      if (!isBehind && !this.#limiters.isTooLittle(need)) continue
      refused.push(need)
      time = Math.min(time, first?.pass ?? time)
    }
    if (refused.length === 0) return undefined
    if (this.#limiters.leave(lane, keyLimiter(lane.key))) this.#places.wake(keyLimiter(lane.key))
    return { needs: refused, time }
  }

  /**
   * Blocks a lane because of its key. `time` is the pass that all lanes have reached, and `waitsSince` the same for a lane that
   * waits together with other lanes of the key.
   */
  #blockByKey(
    lane: Lane,
    { kind, until }: KeyBlock,
    {
      pass,
      time,
      waitsSince,
    }: { readonly pass: number; readonly time: number; readonly waitsSince: number | undefined },
  ): void {
    if (kind === 'concurrency' && lane.needs.length > 0) {
      this.#waitFor(lane, [{ limiter: keyLimiter(lane.key), amount: 1 }], pass, waitsSince)
      return
    }
    this.#places.block(lane, pass, until, time)
  }

  /** Blocks a lane until it is woken because of one of the needs. */
  #waitFor(lane: Lane, needs: readonly Need[], pass: number, time: number | undefined): void {
    for (const need of needs) this.#limiters.wait(lane, need, pass)
    this.#places.block(lane, pass)
    if (time !== undefined) this.#places.reach(time)
  }

  /** Takes the tickets of a lane back, except for one limiter, and wakes the next lanes. Returns whether it had one. */
  #leaveTickets(lane: Lane, except?: string): boolean {
    let hasLeft = false
    for (const limiter of [...lane.needs.map(({ limiter: each }) => each), keyLimiter(lane.key)]) {
      if (limiter === except || !this.#limiters.leave(lane, limiter)) continue
      hasLeft = true
      this.#places.wake(limiter)
    }
    return hasLeft
  }

  #forgetKeyPasses(pass: number): void {
    for (const [key, reached] of this.#keyPasses) if (reached <= pass) this.#keyPasses.delete(key)
  }

  /** All lanes begin again. */
  #forget(): void {
    this.#places.forget()
    this.#keyPasses.clear()
    this.#limiters.forget()
    this.#own = undefined
  }

  /** Returns the pass of the tasks without a lane, which are at most one turn behind the lane that is next. */
  #ownPass(first: number): number {
    return Math.max(this.#own ?? first, first - 1)
  }
}
