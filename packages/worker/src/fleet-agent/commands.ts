// Executes fleet commands on this worker in three steps. `planCommand`, which is pure, decides what a command means for this
// worker. `executeCommand` acts on the plan. The command log does both once for each command, and writes the audit line.
//
// A drain, a pause or a limit of a whole queue is planned as `nothing`, because the command has already changed the queue's
// settings, which queue-drains.ts and BullMQ follow.
import { BullpenError, type DrainMode, type Log, milliseconds, type StopMode } from '@bullpen/contract'
import type { CommandedLevel, CommandSpec } from '@bullpen/contract/internal'
import type { Command, CommandResponse, Pool } from '@bullpen/engine/internal'
import type { LogLevelControl } from '@bullpen/telemetry/internal'
import type { DrainRequest, PoolSupervisor } from '../pools/pool-supervisor.ts'

export type CommandPlan =
  /**
   * There is nothing to do, because the command changed queue settings, which every worker follows, or because the command came
   * too late.
   */
  | { readonly do: 'nothing'; readonly detail: string }
  | { readonly do: 'refuse'; readonly why: string }
  | { readonly do: 'pause' | 'resume'; readonly queues: readonly string[] }
  | ({ readonly do: 'drain_pool'; readonly queue: string } & HowToDrain)
  | ({ readonly do: 'drain_worker' } & HowToDrain)
  | { readonly do: 'stop_slot'; readonly queue: string; readonly slot: number; readonly how: StopMode }
  | { readonly do: 'resize'; readonly queue: string; readonly concurrency: number }
  | { readonly do: 'log_level'; readonly level: CommandedLevel; readonly forMs: number | undefined }

interface HowToDrain {
  readonly mode: DrainMode
  readonly timeoutMs: number | undefined
}

/** The facts that the decision depends on. */
export interface CommandTarget {
  readonly worker: string
  readonly queues: readonly string[]
  readonly draining: boolean
}

export function planCommand(spec: CommandSpec, { worker, queues, draining }: CommandTarget): CommandPlan {
  if (spec.action === 'limit') return { do: 'nothing', detail: 'the limit is enforced by the queue' }
  if (spec.action === 'breaker') return { do: 'nothing', detail: 'the breaker is applied by the queue' }
  const isForAll = spec.worker === undefined
  if (!isForAll && spec.worker !== worker) return { do: 'refuse', why: `this is worker ${worker}` }
  if (spec.queue !== undefined && !queues.includes(spec.queue)) {
    const why = `this worker has no pool for queue '${spec.queue}'; it has pools for ${queues.join(', ')}`
    return { do: 'refuse', why }
  }
  // Except for the log, commands for the whole fleet are meant for the workers that remain.
  if (draining && isForAll && spec.action !== 'log_level') return { do: 'nothing', detail: 'the worker is draining' }
  const targets = spec.queue === undefined ? queues : [spec.queue]
  switch (spec.action) {
    case 'pause':
      return isForAll ? { do: 'nothing', detail: 'the queue is paused' } : { do: 'pause', queues: targets }
    case 'resume':
      return { do: 'resume', queues: targets }
    case 'drain': {
      if (isForAll) return { do: 'nothing', detail: 'the queue is draining' }
      const { queue, mode, timeout } = spec
      const how = { mode, timeoutMs: timeout === undefined ? undefined : milliseconds(timeout) }
      return queue === undefined ? { do: 'drain_worker', ...how } : { do: 'drain_pool', queue, ...how }
    }
    case 'stop':
      return { do: 'stop_slot', queue: spec.queue, slot: spec.slot, how: spec.how }
    case 'resize':
      return { do: 'resize', queue: spec.queue, concurrency: spec.concurrency }
    case 'log_level':
      return { do: 'log_level', level: spec.level, forMs: spec.for === undefined ? undefined : milliseconds(spec.for) }
  }
}

/** The worker that commands act on. */
export interface SteeredWorker {
  readonly pools: PoolSupervisor
  readonly logLevel: Pick<LogLevelControl, 'set' | 'follow'>
  /** Starts to drain the whole worker. */
  drain(request: DrainRequest): void
}

/**
 * Executes a planned command and returns a human-readable description of what was done. `command` is the command's id. `isHeld`
 * returns whether a queue's settings prevent its pool from working.
 *
 * @throws BullpenError with the reason if the command can't be executed.
 */
export function executeCommand(
  plan: CommandPlan,
  command: string,
  { pools, logLevel, drain }: SteeredWorker,
  isHeld: (queue: string) => boolean,
): string {
  switch (plan.do) {
    case 'nothing':
      return plan.detail
    case 'refuse':
      throw new BullpenError('wrong_state', plan.why)
    case 'pause':
      return forEach(plan.queues, 'paused', (queue) => {
        // A drained pool does not take tasks anyway, and resuming it would end both the pause and the drain.
        if (pools.causeOf(queue) !== undefined) return `${queue} (drained)`
        poolOf(pools, queue).pause()
        return queue
      })
    case 'resume':
      return forEach(plan.queues, 'resumed', (queue) => {
        if (pools.causeOf(queue) !== undefined && isHeld(queue)) {
          throw new BullpenError('wrong_state', `queue '${queue}' is draining on all workers: resume the whole queue`)
        }
        return pools.resume(queue) === 'later' ? `${queue} (when its running tasks have ended)` : queue
      })
    case 'drain_pool':
      pools.drain(plan.queue, plan, { by: 'command', command })
      return `draining: ${plan.queue}`
    case 'drain_worker':
      drain({ mode: plan.mode, timeoutMs: plan.timeoutMs })
      return 'the worker is draining'
    case 'stop_slot':
      return stopSlot(poolOf(pools, plan.queue), plan.slot, plan.how)
    case 'resize':
      pools.resize(plan.queue, plan.concurrency)
      return `concurrency is ${plan.concurrency}`
    case 'log_level':
      logLevel.set(plan.level, plan.forMs)
      return plan.level === 'configured' ? 'the configured log level applies' : `the log level is ${plan.level}`
  }
}

function poolOf(pools: PoolSupervisor, queue: string): Pool {
  const pool = pools.pool(queue)
  if (pool === undefined) throw new BullpenError('queue_not_found', `this worker has no pool for queue '${queue}'`)
  return pool
}

/**
 * Calls `act` for each queue, and throws only if every call is refused. `act` returns the text that describes the queue in the
 * response.
 */
function forEach(queues: readonly string[], done: string, act: (queue: string) => string): string {
  const refusals: BullpenError[] = []
  const changed = queues.flatMap((queue) => {
    try {
      return [act(queue)]
    } catch (error) {
      if (!(error instanceof BullpenError)) throw error
      refusals.push(error)
      return []
    }
  })
  const [refusal] = refusals
  if (refusal !== undefined && changed.length === 0) throw refusal
  return [`${done}: ${changed.join(', ')}`, ...refusals.map(({ message }) => message)].join('; ')
}

/** Stops a slot. Idempotent: a slot that is already stopping counts as stopped. */
function stopSlot(pool: Pool, slot: number, how: 'wait' | 'hard'): string {
  const state = pool.slots().find((one) => one.slot === slot)?.state
  const isStopping = state === 'TERMINATED' || (state === 'TERMINATING_STOP_SIGNAL' && how === 'wait')
  if (isStopping) return `slot ${slot} is already stopping`
  pool.stopSlot(slot, how)
  return `slot ${slot} is stopping`
}

/** How many commands are remembered, so that a command that is received again is recognised. */
const REMEMBERED = 1_000

export interface CommandLogOptions {
  readonly worker: string
  /**
   * Executes a command and returns a human-readable description of what was done.
   *
   * @throws BullpenError if the command is refused.
   */
  execute(command: Command): string
  readonly log: Log
  /** The time by the store's clock, in ms since 1970. */
  readonly now: () => number
}

export interface CommandLog {
  has(command: string): boolean
  /** Executes the command unless it has already been executed, and returns the response. Idempotent. */
  respond(command: Command): CommandResponse
}

export function createCommandLog({ worker, execute, log, now }: CommandLogOptions): CommandLog {
  const responses = new Map<string, CommandResponse>()

  const run = (command: Command): Pick<CommandResponse, 'outcome' | 'detail'> => {
    try {
      return { outcome: 'done', detail: execute(command) }
    } catch (error) {
      if (!(error instanceof BullpenError))
        log.error({ err: error, command: command.id }, 'command failed unexpectedly')
      return { outcome: 'refused', detail: error instanceof Error ? error.message : String(error) }
    }
  }

  return {
    has: (command) => responses.has(command),
    respond(command) {
      const { id, by, spec } = command
      const known = responses.get(id)
      if (known !== undefined) return known
      const { outcome, detail } = run(command)
      log.info({ command: id, by, spec, outcome, detail }, outcome === 'done' ? 'command executed' : 'command refused')
      const response = { worker, outcome, detail, at: now() }
      responses.set(id, response)
      const [oldest = ''] = responses.keys()
      if (responses.size > REMEMBERED) responses.delete(oldest)
      return response
    },
  }
}
