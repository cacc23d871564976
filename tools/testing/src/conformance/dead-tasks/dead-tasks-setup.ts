// Provides tasks that die with different errors, for the conformance tests of dead tasks.
import { type CallOptions, TaskError, type TaskId } from '@bullpen/contract'
import type { DeadFilter } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, QUEUE, type short } from '../setup.ts'

/** A request to retry a dead task. */
export const ANN = { request: 'request-1', by: 'ann' }

/** Fails with the message and the code that the tags of the task give. */
export async function tasksWithErrors(open: OpenBackend) {
  const setup = await openSetup(open, {
    concurrency: 1,
    handle: ({ input }) => {
      if (input.n >= 100) throw new TypeError(`cannot read line ${input.n}`)
      throw new TaskError(input.n % 2 === 0 ? 'even' : 'odd', `no Customer ${input.n}`, { retryable: false })
    },
  })
  await setup.start()
  return {
    ...setup,
    /** Resolves when the task is dead. No two tasks end in the same millisecond. */
    async die(n: number, call: CallOptions = {}, definition: typeof long | typeof short = long): Promise<TaskId> {
      const id = await setup.enqueue(definition, { n }, { retry: { maxAttempts: 1 }, ...call })
      const { endedAt = 0 } = await setup.reaches(id, 'dead')
      await eventually(() => Date.now() > endedAt)
      return id
    },
    async found(filter: Omit<DeadFilter, 'queue'>, limit = 50): Promise<readonly TaskId[]> {
      const ids: TaskId[] = []
      let cursor: string | undefined
      do {
        const page = await setup.broker.searchDead({ queue: QUEUE, ...filter, limit, cursor })
        ids.push(...page.tasks.map(({ id }) => id))
        cursor = page.next
      } while (cursor !== undefined)
      return ids
    },
  }
}
