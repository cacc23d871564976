// Tests that memory that is refused at once, as for one very large buffer, is an error in the handler, and that the handler's
// process keeps running.
import { expect, it } from 'vitest'
import { openSetup, outputOf } from '../setup.fixture.ts'
import { expectingTask, greedyTask, modestTask } from './refused-memory.fixture.ts'

const module = new URL('./refused-memory.fixture.ts', import.meta.url).href

it.each(['zeros', 'no zeros', 'numbers'])('a refused buffer of %s ends its attempt as out_of_memory', async (of) => {
  await using setup = openSetup('process')
  const outcome = await setup.run(greedyTask, { of }, { module }).outcome
  expect(outcome).toMatchObject({ kind: 'panicked', reason: 'out_of_memory', error: { name: 'RangeError' } })
  await outputOf(setup.run(modestTask, { of }, { module }))
  expect(setup.replaced).toEqual([])
})

it('a handler may catch the error of a refused buffer', async () => {
  await using setup = openSetup('process')
  expect(await outputOf(setup.run(modestTask, { of: 'zeros' }, { module }))).toEqual({ bytes: 0 })
})

it('a definition may classify the error of a refused buffer', async () => {
  await using setup = openSetup('process')
  const outcome = await setup.run(expectingTask, { of: 'zeros' }, { module }).outcome
  expect(outcome).toMatchObject({ kind: 'declared', failure: { code: 'too_large', retryable: false } })
})

it('a size that no buffer can have is a panic, not a lack of memory', async () => {
  await using setup = openSetup('process')
  const outcome = await setup.run(greedyTask, { of: 'no such size' }, { module }).outcome
  expect(outcome).toMatchObject({ kind: 'panicked', reason: 'unexpected_error', error: { name: 'RangeError' } })
})
