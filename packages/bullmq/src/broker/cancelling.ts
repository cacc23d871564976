// Cancels tasks for a broker: one by its id, or all those that match a filter.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { readProgress, storeRule } from '../cancel/by-filter.ts'
import { cancelById, type OnEnded, reportLateEnd } from '../cancel/by-id.ts'
import { wakeLeader } from '../leader/leader.ts'
import type { BrokerOptions } from './broker-options.ts'
import type { QueueAccess } from './queue-handles.ts'

export interface CancellingOptions extends QueueAccess {
  /** Names this process in the records of the tasks that it cancels. */
  readonly processName: string
  /** Called for a task whose `cancel` has rejected, if Redis turns out to have cancelled it. */
  readonly onCancelled: NonNullable<BrokerOptions['onCancelled']>
}

export function createCancelling(options: CancellingOptions): Pick<Broker, 'cancel' | 'cancelMany' | 'cancelProgress'> {
  const { redis, namespace, queues, call, now, processName, onCancelled } = options
  return {
    async cancel(id, { stoppable, by = '' }) {
      const home = queues.ofTask(id)
      if (home === undefined) return 'not_found'
      const request = { request: randomUUID(), id, stoppable, now: now(), by, process: processName }
      const mayBeSent = redis.status === 'ready'
      try {
        const { answer } = await call(() => cancelById(redis, home.keys, request))
        return answer
      } catch (error) {
        const onEnded: OnEnded = (ended) => onCancelled({ queue: home.name, ...ended })
        if (mayBeSent) void reportLateEnd(redis, home.keys, request, onEnded)
        throw error
      }
    },

    async cancelMany({ queue, task, tag, before, reason, by = processName }) {
      const { keys } = queues.of(queue)
      const id = createTaskId(queue, now(), randomBytes(ID_RANDOM_BYTES))
      const { rule, known } = await call(() => storeRule(redis, keys, { id, queue, task, tag, before, reason, by }))
      // If this message is lost, the leader notices the rule in its next round.
      wakeLeader(redis, namespace, queue).catch(() => {})
      await known
      // Wait until the rule's millisecond has passed, so that the next task to be enqueued has a later timestamp than the rule.
      if (now() === before) await sleep(2)
      return rule
    },

    async cancelProgress(id) {
      const home = queues.ofTask(id)
      return home && call(() => readProgress(redis, home.keys, id))
    },
  }
}
