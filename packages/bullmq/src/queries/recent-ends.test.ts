// Tests which ends of tasks are counted as recent.
import { TaskError } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { long, setup } from '../setup.fixture.ts'

it('the tasks that died and completed after a time are counted, the dead ones also by fingerprint', async () => {
  const { broker, enqueue, startPool, settled } = await setup({
    handle: ({ input: { n } }) => {
      if (n > 0) throw new TaskError('gone', `no customer ${'xyz'[n]}`, { retryable: false })
      return { n }
    },
  })
  await startPool()
  for (const n of [0, 1, 1, 2]) await settled(await enqueue(long, { input: { n } }))
  const kinds = await broker.countDead('rig')
  const fingerprints = kinds.map(({ fingerprint }) => fingerprint)
  expect(await broker.recentEnds('rig', 0, fingerprints)).toEqual({ dead: 3, completed: 1, ofFingerprints: [2, 1] })
  const last = Math.max(...kinds.map(({ newestAt }) => newestAt))
  expect(await broker.recentEnds('rig', last, fingerprints)).toEqual({ dead: 0, completed: 0, ofFingerprints: [0, 0] })
  expect(await broker.recentEnds('rig', last - 1, [])).toMatchObject({ ofFingerprints: [] })
})
