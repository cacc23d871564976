// Memory that is refused at once, as that for one very large buffer: an error in the handler, and no end of its process.
import { expect, it } from 'vitest'
import { openRig, outputOf } from '../rig.fixture.ts'
import { expectingTask, greedyTask, modestTask } from './refused-memory.fixture.ts'

const module = new URL('./refused-memory.fixture.ts', import.meta.url).href

it.each(['zeros', 'no zeros', 'numbers'])('ends its attempt as out_of_memory: a buffer of %s', async (of) => {
  await using rig = openRig('process')
  const outcome = await rig.run(greedyTask, { of }, { module }).outcome
  expect(outcome).toMatchObject({ kind: 'panicked', reason: 'out_of_memory', error: { name: 'RangeError' } })
  await outputOf(rig.run(modestTask, { of }, { module }))
  expect(rig.replaced).toEqual([])
})

it('is the handler’s to catch', async () => {
  await using rig = openRig('process')
  expect(await outputOf(rig.run(modestTask, { of: 'zeros' }, { module }))).toEqual({ bytes: 0 })
})

it('is what the definition says it is', async () => {
  await using rig = openRig('process')
  const outcome = await rig.run(expectingTask, { of: 'zeros' }, { module }).outcome
  expect(outcome).toMatchObject({ kind: 'declared', failure: { code: 'too_large', retryable: false } })
})

it('is not meant by a size that no buffer has: that is a mistake', async () => {
  await using rig = openRig('process')
  const outcome = await rig.run(greedyTask, { of: 'no such size' }, { module }).outcome
  expect(outcome).toMatchObject({ kind: 'panicked', reason: 'unexpected_error', error: { name: 'RangeError' } })
})
