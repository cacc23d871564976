// Tests that a team's own Worker, too, gives a stage of a pipeline the input that the run keeps.
import { createRunId } from '@bullpen/contract/internal'
import type { JobsOptions } from 'bullmq'
import { expect, it } from 'vitest'
import { runKeys } from '../../keys.ts'
import { ownWorker } from '../../plain-processor.fixture.ts'
import { BULLPEN_OPTION } from './foreign-job.ts'

it.each([
  ['{"n":9}', 'one', { output: { n: 9 } }],
  [undefined, 'one', undefined],
  ['{"n":9}', 'another', undefined],
])('a Worker of a team reads the input %s from the run of its task, which is %s', async (kept, incarnation, result) => {
  const { openQueue, startWorker, namespace } = ownWorker(({ input }) => input)
  const { settled } = startWorker()
  const queue = openQueue()
  const run = createRunId(Date.now(), new Uint8Array(10))
  const { meta, inputs } = runKeys(namespace, run)
  const redis = await queue.backend.client
  await redis.hset(meta, { incarnation })
  if (kept !== undefined) await redis.hset(inputs, { '1.4': kept })
  const data = { v: 2, version: 1, run: { id: `${run}.one`, stage: 1, position: 4 }, keptInput: 70_000 }
  await queue.add('own.slow', data, { attempts: 3, [BULLPEN_OPTION]: 1 } as JobsOptions)
  const { job, event } = await settled()
  await redis.del(meta)
  await redis.del(inputs)
  expect(event).toBe(result === undefined ? 'failed' : 'completed')
  if (result === undefined)
    expect(job).toMatchObject({ attemptsMade: 1, failedReason: expect.stringContaining('input_gone') })
  else expect(job.returnvalue).toMatchObject(result)
})
