// Waits for the pools that a drain is for to end, and tells how far it is.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import type { FleetView, PoolState } from '@bullpen/contract'
import { ENDED_POOL_STATES } from '@bullpen/contract/internal'
import type { Target } from '../arguments/target.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { targetText } from '../output/command-text.ts'
import { plain } from '../output/format.ts'
import type { Output } from '../output/output.ts'

const LOOK_EVERY_MS = 500

/** Those that ended, but not well: what they ran was abandoned, or something was broken. */
const BADLY: readonly PoolState[] = ['TERMINATE_TIMEOUT', 'RECOVER_ERR']

/** `told`: the workers that the command went to. `until`: on the monotonic clock, in ms. */
export async function untilPoolsEnded(
  out: Output,
  client: Client,
  target: Target,
  told: readonly string[],
  until: number,
): Promise<ExitCode> {
  const fleet = await lastLook(out, client, target, until)
  const { left, busy, badly } = standing(fleet, target)
  const silent = silentOf(fleet, target, told)
  const lines = [
    // Of a silent one nobody knows.
    ...(left === 0 && silent.length > 0 ? [] : [stateOf(target, left, busy)]),
    ...silent.map((worker) => `${plain(worker)} has fallen silent`),
    ...badly.map((pool) => `${plain(pool)} did not end well`),
  ]
  await out.answer(fleet, () => lines)
  return left === 0 && silent.length + badly.length === 0 ? EXIT.done : EXIT.otherwise
}

/** The fleet when none of the pools is left, or as it stands when the time is up. */
async function lastLook(out: Output, client: Client, target: Target, until: number): Promise<FleetView> {
  try {
    for (;;) {
      const fleet = await client.fleet(target.queue === undefined ? {} : { queue: target.queue })
      const { left, busy } = standing(fleet, target)
      const remainingMs = until - performance.now()
      if (left === 0 || remainingMs <= 0) return fleet
      out.progress(`${nameOf(target)}: waiting for ${pools(left)}, ${tasks(busy)}`)
      await sleep(Math.min(LOOK_EVERY_MS, remainingMs))
    }
  } finally {
    out.progress()
  }
}

/**
 * A worker that has gone in an orderly way is not there any more. One that starts while the queue's fleet drains has a new
 * pool, which waits for the end of that.
 */
function standing({ workers }: FleetView, { queue, worker }: Target) {
  const all = workers
    .filter((each) => each.alive && (worker === undefined || each.worker === worker))
    .flatMap((each) => each.pools.map((pool) => ({ ...pool, name: `${pool.queue} of ${each.worker}` })))
    .filter((pool) => queue === undefined || pool.queue === queue)
  const over: readonly PoolState[] = worker === undefined ? ['NEW', ...ENDED_POOL_STATES] : ENDED_POOL_STATES
  const left = all.filter(({ state }) => !over.includes(state))
  return {
    left: left.length,
    busy: left.reduce((sum, { busy }) => sum + busy, 0),
    badly: all.filter(({ state }) => BADLY.includes(state)).map((pool) => `${pool.name}: ${pool.state},`),
  }
}

/** Of those that were told: one that was silent before is none of this drain's. */
function silentOf({ workers }: FleetView, { worker }: Target, told: readonly string[]): readonly string[] {
  return workers
    .filter((each) => !each.alive && told.includes(each.worker) && (worker ?? each.worker) === each.worker)
    .map((each) => each.worker)
}

function stateOf(target: Target, left: number, busy: number): string {
  return left === 0 ? `${nameOf(target)}: ended` : `${nameOf(target)}: not ended: ${pools(left)}, ${tasks(busy)}`
}

function nameOf(target: Target): string {
  return plain(targetText(target))
}

function tasks(count: number): string {
  return count === 1 ? '1 task runs' : `${count} tasks run`
}

function pools(count: number): string {
  return count === 1 ? '1 pool' : `${count} pools`
}
