// The operations of the index's model, and those of a team's own Queue that it does not have.
import { OPERATIONS } from '../../index-model/operations.fixture.ts'
import { QUEUE } from '../../index-model/worker.fixture.ts'
import type { FuzzOperation, FuzzOperations } from '../operation.fixture.ts'

const HOUR = 3_600_000

/** Their programs have tasks of all kinds, so that each of them is drawn less often than those that move tasks. */
const OF_MODEL: FuzzOperations = Object.fromEntries(
  Object.entries(OPERATIONS).map(([name, operation]) => [name, [2, operation]]),
)

/** Lets a parent go on without one of its children. */
const leaveParent: FuzzOperation = async ({ flows }, pick) => {
  const child = { name: 'child', queueName: QUEUE, opts: { delay: HOUR } }
  const { children = [] } = await flows.add({ name: 'parent', queueName: QUEUE, children: [child, child] })
  for (const { job } of children.slice(pick % 2)) await job.removeChildDependency()
}

export const OWN_QUEUE: FuzzOperations = {
  ...OF_MODEL,
  'add a flow whose parent does not wait for a child': [2, leaveParent],
  'empty the queue': [0.2, ({ queue }, _, n) => queue.drain(n % 2 === 0)],
  'obliterate the queue': [0.2, ({ queue }) => queue.obliterate({ force: true })],
  'pause the queue': [0.5, ({ queue }) => queue.pause()],
  'resume the queue': [2, ({ queue }) => queue.resume()],
}
