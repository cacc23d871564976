// Notices that Redis has lost tasks that this process had acknowledged: after a failover to a replica that lagged behind, a restart without
// the newest writes, a restored backup, or FLUSHALL.
//
// - After a change of the server, unless the same server process still has the same history, it looks for all tasks that it remembers
//   (./acknowledged-tasks.ts).
// - Without a change, it only compares how many tasks each queue has accepted, a number that decreases only if Redis loses data.
// - If a count has decreased, or the server changes during a look, it looks through all queues again before it reports anything, because
//   those that it looked at first may have lost tasks as well. Each loss is therefore reported in one line.
// - Redis notes which process has found a lost task first, so that only that process counts the task.
import { randomUUID } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import { readTaskId, timeText } from '@bullpen/contract/internal'
import { queueKeys } from '../keys.ts'
import { addressOf, isConnectionError } from '../redis/outages/outage-reporter.ts'
import { isCluster } from '../redis/redis-client.ts'
import { onServerChange } from '../redis/server/server-changes.ts'
import { unlessRefused } from '../redis/server/server-description.ts'
import { infoField } from '../redis/server/server-info.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { noteLostScript } from '../store/scripts.ts'
import type { AcknowledgedTasks } from './acknowledged-tasks.ts'

/** How many tasks one script looks for, which takes Redis about 2 ms, and 20 ms more if some do not exist. */
const AT_ONCE = 2_000
/** For how long lost tasks are noted, in ms. */
const NOTED_MS = 86_400_000
/** How many ids a log line names. */
const NAMED = 10

export interface LossWatchOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  readonly acknowledged: AcknowledgedTasks
  /** Called with the number of tasks of a queue that Redis has lost and that no other process has counted. Must not throw or block. */
  readonly onLost: (lost: { readonly queue: string; readonly tasks: number }) => void
  readonly log: Log
}

export interface LossWatch {
  /**
   * Looks for lost tasks. Takes one round trip for each queue with remembered tasks and, after a change of the server, one more
   * for every 2,000 of them. Rejects if Redis is not reachable, and then looks again at the next call.
   */
  check(): Promise<void>
  close(): void
}

export function openLossWatch({ redis, redisUrl, namespace, acknowledged, onLost, log }: LossWatchOptions): LossWatch {
  /** Settles when the last look has ended. Two looks at the same time would report the same tasks. */
  let looking: Promise<unknown> = Promise.resolve()
  /** Whether Redis has lost data since the last complete look. If a look notices this and then fails, the next one reports the loss. */
  let isOlder = false
  /** How often the server has changed, now and when the tasks were last looked for. */
  let changes = 0
  let checkedChanges = 0
  let history: string | undefined
  /** How many tasks each queue had accepted. */
  const accepted = new Map<string, number>()
  const process = randomUUID()
  /** The tasks that this process has reported. Redis returns them again, because its first reply may have been lost. */
  const reported = new Set<string>()
  const stopWatching = onServerChange(redis, () => {
    changes++
  })

  const note = (queue: string, tasks: readonly string[]) => {
    const keys = queueKeys(namespace, queue)
    const { totals, recentlyRemoved, events, lostTasks } = keys
    const args = { base: keys.base, process, keptMs: NOTED_MS }
    return runScript(redis, noteLostScript, { totals, recentlyRemoved, events, lostTasks }, args, tasks)
  }

  /** Returns the ids of the tasks that Redis has lost and that this process has not reported. */
  const findLost = async (queue: string, tasks: readonly string[], mayBeLost: boolean): Promise<readonly string[]> => {
    const known = accepted.get(queue) ?? 0
    const [count] = await note(queue, [])
    accepted.set(queue, count)
    if (count < known) isOlder = true
    const lost: string[] = []
    if (mayBeLost || isOlder) {
      for (let i = 0; i < tasks.length; i += AT_ONCE) lost.push(...(await note(queue, tasks.slice(i, i + AT_ONCE)))[1])
    }
    return lost.filter((id) => !reported.has(id)).toSorted()
  }

  /** Logs before it counts, so that a metric never says more than the log. */
  const report = (byQueue: ReadonlyMap<string, readonly string[]>): void => {
    const ids = [...byQueue.values()].flat()
    const times = ids.map((id) => readTaskId(id)?.createdAt ?? 0)
    const [first, last] = [Math.min(...times), Math.max(...times)]
    log.error(
      {
        redis: addressOf(redisUrl),
        tasks: ids.length,
        queues: Object.fromEntries([...byQueue].map(([queue, { length }]) => [queue, length])),
        since: timeText(first),
        overMs: last - first,
        ids: ids.slice(0, NAMED),
      },
      'redis has lost acknowledged tasks: its data is older than before',
    )
    for (const id of ids) reported.add(id)
    for (const [queue, { length: tasks }] of byQueue) onLost({ queue, tasks })
  }

  const look = async (): Promise<void> => {
    for (;;) {
      const change = changes
      const wasOlder = isOlder
      const present = change === checkedChanges ? history : await readHistory(redis)
      const mayBeLost = change !== checkedChanges && (present === undefined || present !== history)
      const found = new Map<string, readonly string[]>()
      for (const [queue, tasks] of acknowledged.byQueue()) {
        const lost = await findLost(queue, tasks, mayBeLost)
        if (lost.length > 0) found.set(queue, lost)
      }
      // The queues that were looked at first may have lost tasks since.
      if (change !== changes || isOlder !== wasOlder) continue
      history = present
      checkedChanges = change
      isOlder = false
      if (found.size > 0) report(found)
      return
    }
  }

  return {
    check() {
      const looked = looking.then(look).catch((err: unknown) => {
        if (isConnectionError(err)) throw err
        log.warn({ err }, 'check for lost tasks failed: retrying')
      })
      looking = looked.catch(() => {})
      return looked
    },
    close: stopWatching,
  }
}

/** Returns what identifies a server's data until the server is replaced. Undefined if that is unknown, as in a cluster. */
async function readHistory(redis: Commander): Promise<string | undefined> {
  if (isCluster(redis)) return undefined
  const info = (await unlessRefused(redis.info())) ?? ''
  const [runId, replicationId] = [infoField(info, 'run_id'), infoField(info, 'master_replid')]
  return runId === undefined || replicationId === undefined ? undefined : `${runId} ${replicationId}`
}
