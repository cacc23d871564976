// The leader's report of kinds of error that are new among a queue's dead tasks.
import { type Log, TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { long, setup, silent } from '../setup.fixture.ts'

it('a new kind of error is logged once as a warning, whatever the number of tasks', async () => {
  const warnings: { readonly fields: object; readonly message: string }[] = []
  const log: Log = { ...silent, warn: (fields, message) => void warnings.push({ fields, message }) }
  const { enqueue, startPool, settled, broker } = await setup({
    log,
    roundMs: 50,
    handle: ({ input: { n } }) => {
      throw new TaskError(n < 5 ? 'gone' : 'other', `no customer ${n}`, { retryable: false })
    },
  })
  const warned = () => warnings.filter(({ message }) => message === 'new kind of error among dead tasks')
  const ids = [await enqueue(long, { input: { n: 1 } }), await enqueue(long, { input: { n: 2 } })]
  await startPool()
  for (const id of ids) await settled(id)
  await eventually(() => warned().length > 0)
  const last = await enqueue(long, { input: { n: 7 } })
  await settled(last)
  await eventually(() => warned().length > 1)
  const [first, second] = await broker.countDead('rig')
  const fields = { queue: 'rig', state: 'DONE_ERROR', maskedMessage: 'no customer #' }
  expect(warned().map((line) => line.fields)).toEqual([
    { ...fields, code: 'gone', fingerprint: first?.fingerprint },
    { ...fields, code: 'other', fingerprint: second?.fingerprint },
  ])
})
