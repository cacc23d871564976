// A consumer without a pool. Each test decides what happens to the tasks that the consumer fetches.
import type { ConsumerHost, RunTask } from '@bullpen/engine/internal'
import { onTestFinished } from 'vitest'
import { type ConsumerOptions, openConsumer } from './consumer.ts'
import { silent } from './setup.fixture.ts'

/** For consumers that have nothing to fetch. */
export const noTask: RunTask = () => Promise.reject(new Error('there is no task'))

export type BareConsumerOptions = Pick<ConsumerOptions, 'redisUrl' | 'namespace'> & Partial<ConsumerOptions>

/**
 * Opens a consumer of the queue `rig` with one slot. `host` contains the calls that the test wants to receive. The test closes
 * the consumer.
 */
export function bareConsumer(options: BareConsumerOptions, runTask = noTask, host: Partial<ConsumerHost> = {}) {
  const consumer = openConsumer(
    { queue: 'rig', concurrency: 1, retention: { completed: { ageMs: 60_000 } }, log: silent, ...options },
    runTask,
    {
      fetchingFailed: () => {},
      fetchingResumed: () => {},
      lockLost: () => {},
      settled: () => {},
      released: () => {},
      endedAsDead: () => {},
      cancel: () => 'not_found',
      tasks: () => [],
      ...host,
    },
  )
  onTestFinished(() => consumer.close())
  return consumer
}
