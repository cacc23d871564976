// Waits for a drain's pools to end and shows the progress.
import type { Client } from '@bullpen/client'
import type { FleetView, PoolState } from '@bullpen/contract'
import { ENDED_POOL_STATES } from '@bullpen/contract/internal'
import { withoutUndefined } from '../../arguments/option-values.ts'
import type { Target } from '../../arguments/target.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { targetText } from '../../output/fleet/command-text.ts'
import { count, plain } from '../../output/format.ts'
import type { Output } from '../../output/output.ts'
import { pollUntil } from '../filtered-change.ts'

/** The states of pools that ended with abandoned tasks or because of an error. */
const FAILED_STATES: readonly PoolState[] = ['TERMINATE_TIMEOUT', 'RECOVER_ERR']

interface Drain {
  readonly target: Target
  /** The workers that received the command. A worker that had already stopped sending heartbeats does not make the drain fail. */
  readonly workers: readonly string[]
  /** When to stop waiting, in ms on the monotonic clock. */
  readonly waitUntil: number
}

export async function waitForPools(out: Output, client: Client, drain: Drain): Promise<ExitCode> {
  const { target } = drain
  const fleet = await lastFleet(out, client, drain)
  const { open, busy, failed } = summarize(fleet, target)
  const silent = silentWorkers(fleet, drain)
  const name = plain(targetText(target))
  const ended = open === 0 ? `${name}: drained` : `${name}: not drained yet: ${remaining(open, busy)}`
  const lines = [
    // The state of a silent worker's pools is unknown, so the target as a whole cannot be reported as drained.
    ...(open === 0 && silent.length > 0 ? [] : [ended]),
    ...silent.map((worker) => `${plain(worker)} stopped sending heartbeats`),
    ...failed.map(({ worker, queue, label }) => `${plain(queue)} of ${plain(worker)}: ${plain(label)}`),
  ]
  await out.answer(fleet, () => lines)
  return open === 0 && silent.length + failed.length === 0 ? EXIT.success : EXIT.incomplete
}

/** Returns the fleet once all pools of the target have ended, or when the time is up. */
async function lastFleet(out: Output, client: Client, { target, waitUntil }: Drain): Promise<FleetView> {
  try {
    return await pollUntil(() => client.fleet(withoutUndefined({ queue: target.queue })), {
      isOver: (fleet) => summarize(fleet, target).open === 0,
      until: waitUntil,
      onWait(fleet) {
        const { open, busy } = summarize(fleet, target)
        out.progress(`${plain(targetText(target))}: waiting for ${remaining(open, busy)}`)
      },
    })
  } finally {
    out.progress()
  }
}

/**
 * Summarizes the state of the target's pools. A worker that exited gracefully is no longer part of the fleet. If a worker starts
 * while the whole queue is draining, its pool is in the state NEW until the queue is resumed. Such a pool does not count as open.
 */
function summarize({ workers }: FleetView, { queue, worker }: Target) {
  const pools = workers
    .filter((each) => each.alive && (worker === undefined || each.worker === worker))
    .flatMap((each) => each.pools.map((pool) => ({ ...pool, worker: each.worker })))
    .filter((pool) => queue === undefined || pool.queue === queue)
  const ended: readonly PoolState[] = worker === undefined ? ['NEW', ...ENDED_POOL_STATES] : ENDED_POOL_STATES
  const open = pools.filter(({ state }) => !ended.includes(state))
  return {
    open: open.length,
    busy: open.reduce((sum, pool) => sum + pool.busy, 0),
    failed: pools.filter(({ state }) => FAILED_STATES.includes(state)),
  }
}

function silentWorkers({ workers }: FleetView, drain: Drain): readonly string[] {
  return workers
    .filter(({ alive, worker }) => !alive && drain.workers.includes(worker))
    .map(({ worker }) => worker)
    .filter((worker) => (drain.target.worker ?? worker) === worker)
}

function remaining(pools: number, busy: number): string {
  return `${count(pools, 'pool')}, ${count(busy, 'running task')}`
}
