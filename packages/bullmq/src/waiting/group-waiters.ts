// Wakes callers that wait for a group to end or for its queues to change, for a pipeline's run to end, or until the source of a run may
// emit items. The scripts publish the id, so nothing is polled, and any number of callers need only this process's one subscriber
// connection.
import type { Log } from '@bullpen/contract'
import { groupEndedChannel, groupQueuesChannel, runChannels } from '../keys.ts'
import { openSubscriber, type Subscriber } from '../redis/subscriber.ts'

type Wake = () => void

export interface GroupWaiters {
  /**
   * Calls `wake` when the group ends, and whenever the channel has been subscribed to, since the end may have been missed before, until
   * the returned function is called. A caller that has called this therefore reads the group at once.
   */
  wait(id: string, wake: Wake): () => void
  /** Like {@link wait}, but also calls `wake` when the group has members in a further queue. */
  watch(id: string, wake: Wake): () => void
  /** Like {@link wait}, for a pipeline's run. Also calls `wake` when the run's source may emit items. */
  followRun(id: string, wake: Wake): () => void
  close(): void
}

/** Opens nothing until the first caller waits. The subscription ends when no caller is waiting. */
export function openGroupWaiters({
  redisUrl,
  namespace,
  log,
}: {
  readonly redisUrl: string
  readonly namespace: string
  readonly log: Log
}): GroupWaiters {
  const ended = groupEndedChannel(namespace)
  const queues = groupQueuesChannel(namespace)
  const runs = ['ended', 'credits'].map((name) => `${runChannels(namespace)}${name}`)
  /** The callers to wake, by channel and group. */
  const waiting = new Map<string, Set<Wake>>()
  let current: Subscriber | undefined

  const wakeAll = (wakes: Iterable<Wake>): void => {
    for (const wake of wakes) wake()
  }

  const subscribe = (): Subscriber =>
    openSubscriber({
      redisUrl,
      channels: [ended, queues, ...runs],
      onMessage: (channel, id) => wakeAll(waiting.get(`${channel} ${id}`) ?? []),
      onSubscribed() {
        for (const wakes of waiting.values()) wakeAll(wakes)
      },
      log,
    })

  const close = (): void => {
    current?.close()
    current = undefined
  }

  const add = (key: string, wake: Wake): (() => void) => {
    const wakes = waiting.get(key) ?? new Set()
    waiting.set(key, wakes.add(wake))
    current ??= subscribe()
    return () => {
      wakes.delete(wake)
      if (wakes.size === 0 && waiting.get(key) === wakes) waiting.delete(key)
      if (waiting.size === 0) close()
    }
  }

  const addAll = (channels: readonly string[], id: string, wake: Wake): (() => void) => {
    const all = channels.map((channel) => add(`${channel} ${id}`, wake))
    return () => {
      for (const stop of all) stop()
    }
  }

  return {
    wait: (id, wake) => add(`${ended} ${id}`, wake),
    watch: (id, wake) => addAll([ended, queues], id, wake),
    followRun: (id, wake) => addAll(runs, id, wake),
    close,
  }
}
