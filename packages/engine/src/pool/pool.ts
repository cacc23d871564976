// Implements a pool, which is one worker's slots on one queue, from the first fetch to the end of the drain.
//
// Invariants:
// - The pool's state determines which methods may be called, and POOL_TRANSITIONS determines how the state may change. A pool can
//   be started only once.
// - The consumer fetches as many tasks as there are slots that take tasks. The consumer does not fetch any tasks if the pool is
//   not running, is paused or has too many stuck handlers. `#updateCapacity` applies every change to these conditions, except
//   that a drain stops the consumer itself.
// - A quarantined task runs apart from others (quarantined-run.ts). If it runs alone, no pool of the worker starts any other task.
// - If a task was fetched but no slot may take it, the task is released as if it had not been fetched.
// - There is at most one drain, and later calls only make it harder (drain.ts). The consumer is closed when the drain ends.
// - From any state, an error that does not belong to an attempt moves the pool to RECOVER_ERR at once. This state is final.
import { BullpenError, POOL_STATE_LABELS, type PoolState, type TaskId } from '@bullpen/contract'
import { POOL_TRANSITIONS } from '../machines/pool-machine.ts'
import { assertTransition } from '../machines/state-machine.ts'
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { Consumer, FetchedTask, LocalCancel } from '../ports/consumer.ts'
import type { PoolStatus, SlotStatus } from '../ports/pool-status.ts'
import { createQuarantine, type Quarantine } from '../quarantine/quarantine.ts'
import { settlesWithin } from '../time/with-timeout.ts'
import { PoolEnded } from '../verdict/outcome.ts'
import { COMMIT_MS, Drain, type DrainLimits, type DrainReport, DrainTally } from './drain.ts'
import { createFetchLoop, type FetchLoop } from './fetch-loop.ts'
import { createOnlineSet, type OnlineWork, type WaitUntilFinished } from './online-set.ts'
import type { OnlineReport, Pool, PoolOptions } from './pool-types.ts'
import { isQuarantined, type QuarantinedRunHost, runQuarantined } from './quarantined-run.ts'
import { Slots } from './slots.ts'

const MAX_SLOTS = 10_000

const RUNNING: readonly PoolState[] = ['BG_RUNNING', 'ONLINE_RUNNING']

/** The states in which each action is allowed. A drain is allowed in every state. */
const ALLOWED = {
  'be started': ['NEW'],
  'be paused': RUNNING,
  'be resumed': RUNNING,
  'be resized': ['NEW', ...RUNNING],
} as const satisfies Readonly<Record<string, readonly PoolState[]>>

/** Creates a pool. The pool does not connect to the store until it is started. */
export function createPool(options: PoolOptions): Pool {
  return new SlotPool(options)
}

class SlotPool implements Pool {
  readonly queue: string
  readonly #options: PoolOptions
  readonly #slots: Slots
  readonly #consumer: Consumer
  readonly #fetching: FetchLoop
  readonly #poolSignal = new AbortController()
  readonly #drainBegun = new AbortController()
  readonly #quarantine: Quarantine
  readonly #leaveQuarantine: () => void
  readonly #onParentAbort = (): void => {
    void this.#beginDrain({ drainMs: 0, graceMs: this.#options.graceMs }, 'parent_closed')
  }
  #state: PoolState = 'NEW'
  #isPaused = false
  /** Whether the consumer has been asked to open, in which case the drain must stop and close it. */
  #isStarted = false
  #online: OnlineWork | undefined
  #ending: { readonly drain: Drain; readonly tally: DrainTally; readonly report: Promise<DrainReport> } | undefined

  constructor(options: PoolOptions) {
    const { queue, concurrency, host, parent } = options
    this.queue = queue
    this.#options = options
    this.#slots = new Slots(
      concurrency,
      { ...host, queue, poolSignal: this.#poolSignal.signal, isBroken: () => this.#state === 'RECOVER_ERR' },
      () => this.#updateCapacity(),
      (result, refusal) => this.#ending?.tally.settled(result, refusal, host.clock.monotonic()),
      (id) => this.#ending?.tally.released(id),
    )
    this.#quarantine = options.quarantine ?? createQuarantine(host)
    this.#leaveQuarantine = this.#quarantine.join({
      onReserved: () => this.#updateCapacity(),
      quiet: () => this.#slots.quiet(),
      isQuiet: () => this.#slots.isQuiet(),
      takesSeveral: () => this.#slots.size > 1,
    })
    this.#consumer = options.consumer((task, commit, release) => this.#run(task, commit, release), this.#slots)
    this.#fetching = createFetchLoop(this.#consumer, {
      clock: host.clock,
      isRunning: () => this.#isRunning(),
      onFetching: () => {
        const failed = this.#slots.fetchingBegan()
        this.#updateCapacity()
        return failed
      },
      onFailed: () => this.#slots.fetchingFailed(),
      onRestarted: (slots, afterMs) => host.sink({ event: 'slots.restarted', queue, slots, afterMs }),
    })
    parent?.addEventListener('abort', this.#onParentAbort, { once: true })
    if (parent?.aborted) this.#onParentAbort()
  }

  size(): number {
    return this.#slots.size
  }

  busy(): number {
    return this.#slots.busy
  }

  stuckHandlers(): number {
    return this.#slots.stuckHandlers
  }

  state(): PoolState {
    return this.#state
  }

  slots(): readonly SlotStatus[] {
    return this.#slots.status()
  }

  notReady(isStoreUsable = false): string | undefined {
    if (!this.#isRunning()) {
      // A pool starts only once the store can be used.
      const lack = this.#state === 'NEW' ? this.#consumer.notReady() : undefined
      const why = [POOL_STATE_LABELS[this.#state], lack].filter((text) => text !== undefined)
      return `the pool for queue '${this.queue}' is not running: ${why.join('; ')}`
    }
    if (this.#isSaturated()) {
      return `the pool for queue '${this.queue}' is not accepting tasks: it has more stuck handlers (${this.#slots.stuckHandlers}) than allowed (${this.#options.maxStuckHandlers})`
    }
    if (this.#slots.size === 0)
      return `the pool for queue '${this.queue}' is not accepting tasks: its slots have been stopped`
    return isStoreUsable ? undefined : this.#consumer.notReady()
  }

  drainsUntil(): number | undefined {
    const endsBy = this.#ending?.drain.endsBy ?? Number.POSITIVE_INFINITY
    if (this.#state !== 'SHUTTING_DOWN' || endsBy === Number.POSITIVE_INFINITY) return undefined
    return this.#options.host.clock.at(endsBy)
  }

  status(): PoolStatus {
    return {
      queue: this.queue,
      state: this.#state,
      paused: this.#isPaused,
      concurrency: this.#slots.size,
      busy: this.#slots.busy,
      stuckHandlers: this.#slots.stuckHandlers,
      notReady: this.#isPaused && this.#isRunning() ? 'paused' : (this.notReady() ?? this.#reserved()),
      slots: this.#slots.status(),
    }
  }

  async start(): Promise<void> {
    await this.#begin('BG_RUNNING')
  }

  async online(tasks: readonly TaskId[], waitUntilFinished: WaitUntilFinished): Promise<OnlineReport> {
    const set = createOnlineSet(tasks, waitUntilFinished, this.#options.host.clock)
    await this.#runOnline(set)
    return { state: this.#state, unfinished: set.unfinished() }
  }

  async onlineGroup(group: OnlineWork): Promise<PoolState> {
    await this.#runOnline(group)
    return this.#state
  }

  stopSlot(slot: number, how: 'wait' | 'hard'): void {
    if (this.#slots.stop(slot, how)) return
    throw this.#wrongState(`slot ${slot} does not exist or is already stopping`)
  }

  pause(): void {
    this.#assertAllowed('be paused')
    this.#isPaused = true
    this.#updateCapacity()
  }

  resume(): void {
    this.#assertAllowed('be resumed')
    this.#isPaused = false
    this.#updateCapacity()
  }

  resize(concurrency: number): void {
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_SLOTS) {
      throw new BullpenError(
        'invalid_configuration',
        `invalid concurrency for queue '${this.queue}': expected a whole number from 1 to ${MAX_SLOTS}, got ${concurrency}`,
      )
    }
    this.#assertAllowed('be resized')
    this.#slots.resize(concurrency)
  }

  cancel(id: TaskId): LocalCancel {
    return this.#slots.cancel(id)
  }

  drain(limits: DrainLimits): Promise<DrainReport> {
    if (!limits.broken) return this.#beginDrain(limits, 'drain')
    if (this.#state !== 'RECOVER_ERR') this.#moveTo('RECOVER_ERR')
    return this.#beginDrain({ ...limits, drainMs: 0, light: false }, 'drain')
  }

  async #runOnline(work: OnlineWork): Promise<void> {
    await this.#begin('ONLINE_RUNNING', work)
    await work.ended(this.#drainBegun.signal)
    if (this.#state === 'ONLINE_RUNNING') {
      if (work.isDone()) this.#moveTo('ONLINE_DONE')
      void this.#beginDrain({ drainMs: COMMIT_MS.most, graceMs: this.#options.graceMs }, 'drain')
    }
    await this.#ending?.report
  }

  #isRunning(): boolean {
    return RUNNING.includes(this.#state)
  }

  #reserved(): string | undefined {
    return this.#quarantine.isReserved() ? 'the worker runs only quarantined tasks' : undefined
  }

  #isSaturated(): boolean {
    return this.#slots.stuckHandlers > this.#options.maxStuckHandlers
  }

  /**
   * Returns whether a fetched task may start. In a light drain, tasks that were being fetched when the drain began are still
   * started.
   */
  #mayStart(): boolean {
    if (this.#isPaused || this.#isSaturated()) return false
    return this.#isRunning() || (this.#state === 'SHUTTING_DOWN' && this.#ending?.drain.isLight === true)
  }

  #updateCapacity(): void {
    if (!this.#isStarted) return
    const fetches = this.#isRunning() && !this.#isPaused && !this.#isSaturated() && this.#quarantine.mayFetch()
    this.#consumer.resize(fetches ? this.#slots.size : 0)
  }

  #moveTo(to: PoolState): void {
    assertTransition(`the pool for queue '${this.queue}'`, POOL_TRANSITIONS, this.#state, to)
    const from = this.#state
    this.#state = to
    this.#options.host.sink({ event: 'pool.state', queue: this.queue, from, to })
  }

  #assertAllowed(what: keyof typeof ALLOWED): void {
    const allowed: readonly PoolState[] = ALLOWED[what]
    if (!allowed.includes(this.#state)) throw this.#wrongState(`it cannot ${what}`)
  }

  #wrongState(why: string): BullpenError {
    return new BullpenError('wrong_state', `the pool for queue '${this.queue}' is ${this.#state}; ${why}`)
  }

  async #begin(running: 'BG_RUNNING' | 'ONLINE_RUNNING', work?: OnlineWork): Promise<void> {
    this.#assertAllowed('be started')
    if (this.#isStarted) throw this.#wrongState('it is already being started')
    this.#isStarted = true
    this.#online = work
    await this.#consumer.open()
    // A drain may have begun while the pool was waiting for the store.
    if (this.#state !== 'NEW') return
    this.#moveTo(running)
    this.#fetching.begin()
  }

  async #run<T>(
    task: FetchedTask,
    commit: (result: AttemptResult) => T | Promise<T>,
    release: (delayMs?: number) => T | Promise<T>,
  ): Promise<T> {
    // The task may have been fetched while a drain began, while a slot was stopped, or while the worker was being reserved.
    if (!this.#mayStart()) return release()
    if (isQuarantined(task)) return runQuarantined(task, commit, release, this.#quarantinedRunHost())
    if (this.#quarantine.isReserved()) {
      this.#quarantine.close()
      return release()
    }
    return this.#slots.run(task, commit) ?? release()
  }

  #quarantinedRunHost(): QuarantinedRunHost {
    return {
      slots: this.#slots,
      quarantine: this.#quarantine,
      registry: this.#options.host.registry,
      mayStart: () => this.#mayStart(),
      drainBegun: this.#drainBegun.signal,
    }
  }

  #beginDrain(limits: DrainLimits, reason: 'drain' | 'parent_closed'): Promise<DrainReport> {
    if (this.#ending !== undefined) {
      this.#ending.drain.tighten(limits)
      return this.#ending.report
    }
    const { clock } = this.#options.host
    const softEnds = { drain: 'TERMINATING_STOP_SIGNAL', parent_closed: 'TERMINATING_PARENT_CTX_CLOSED' } as const
    const drain = new Drain(
      {
        clock,
        slots: this.#slots,
        reason,
        softEnd: this.#state === 'ONLINE_DONE' ? 'TERMINATING_TASK_CH_CLOSED' : softEnds[reason],
        onDeadline: () => this.#poolSignal.abort(new PoolEnded(reason)),
      },
      limits,
    )
    const tally = new DrainTally(clock.monotonic())
    const { promise: report, resolve, reject } = Promise.withResolvers<DrainReport>()
    this.#ending = { drain, tally, report }
    this.#shutDown(drain, tally).then(resolve, reject)
    return report
  }

  async #shutDown(drain: Drain, tally: DrainTally): Promise<DrainReport> {
    const { clock } = this.#options.host
    // If the store has not been reached yet, no task has been fetched, and there is nothing to wait for.
    if (this.#state === 'NEW') drain.tighten({ drainMs: 0, graceMs: this.#options.graceMs })
    if (POOL_TRANSITIONS[this.#state].some((next) => next === 'SHUTTING_DOWN')) this.#moveTo('SHUTTING_DOWN')
    this.#drainBegun.abort()
    drain.stopSlots()
    this.#fetching.end()
    if (this.#isStarted) await drain.run(this.#consumer)
    const uncommitted = this.#isStarted ? this.#consumer.unconfirmed() : []
    const report = tally.report(this.queue, this.#slots.tasks(), uncommitted, clock.monotonic())
    if (this.#isStarted) this.#consumer.close()
    this.#leaveQuarantine()
    // The tasks that have just ended may have been the last ones of the given set or group.
    if (this.#online !== undefined && this.#state === 'SHUTTING_DOWN') {
      await settlesWithin(clock, this.#online.recheck(), COMMIT_MS.most)
    }
    this.#options.parent?.removeEventListener('abort', this.#onParentAbort)
    drain.close()
    if (this.#state === 'SHUTTING_DOWN') this.#moveTo(this.#endState(report))
    return report
  }

  #endState({ abandoned, unconfirmed }: DrainReport): PoolState {
    if (abandoned.length > 0 || unconfirmed.length > 0) return 'TERMINATE_TIMEOUT'
    return this.#online !== undefined && !this.#online.isDone() ? 'INCOMPLETE_DONE' : 'SHUTDOWN'
  }
}
