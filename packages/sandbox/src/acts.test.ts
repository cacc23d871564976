// Tests that nothing which a handler does to its isolate, or to the globals in it, ends the worker or changes what the next task does.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ACTS, actTask, checkTask } from './acts.fixture.ts'
import { openSetup, outputOf } from './setup.fixture.ts'

const module = new URL('./acts.fixture.ts', import.meta.url).href
const UNTOUCHED = {
  isSame: true,
  env: '',
  hasPath: true,
  exitCode: 0,
  json: '[2,3]',
  isNow: true,
  polluted: false,
  hasStack: true,
  emitted: false,
  waited: true,
  inherits: 'own',
  listeners: 1,
  builtIns: {
    iterated: 5,
    sizes: [1, 2, 1],
    inherits: false,
    now: true,
    uuid: 36,
    argv: false,
    title: false,
    deprecation: false,
    listeners: 10,
    files: true,
    read: 'x',
  },
}

describe.each(['thread', 'process'] as const)('a task in a %s', (isolation) => {
  const setup = openSetup(isolation)
  const escaped: unknown[] = []
  const onEscaped = (error: unknown): void => void escaped.push(error)
  beforeAll(() => void process.on('uncaughtExceptionMonitor', onEscaped))
  afterAll(async () => {
    process.off('uncaughtExceptionMonitor', onEscaped)
    await setup.isolator.close()
  })

  it.each(Object.keys(ACTS))('changes nothing for the next task if it %s', async (act) => {
    await setup.run(actTask, act, { module }).outcome
    expect(await outputOf(setup.run(checkTask, null, { module }))).toEqual(UNTOUCHED)
    expect(escaped).toEqual([])
  })

  it('is replaced after a change of what an earlier task has loaded', async () => {
    await using own = openSetup(isolation)
    await outputOf(own.run(actTask, 'loads a module of Node', { module }))
    expect(own.replaced).toEqual([])
    await own.run(actTask, 'replaces an export of that module', { module }).outcome
    await outputOf(own.run(checkTask, null, { module }))
    expect(own.replaced).toMatchObject([{ cause: 'touched' }])
    expect(own.own.lines).toMatchObject([{ message: 'isolate replaced: a task has changed readline.createInterface' }])
  })
})

it('a task in a process is completed, and the process replaced, if its directory no longer exists', async () => {
  await using setup = openSetup('process')
  await outputOf(setup.run(actTask, 'removes its directory', { module }))
  await outputOf(setup.run(checkTask, null, { module }))
  expect(setup.replaced).toMatchObject([{ cause: 'touched' }])
  expect(setup.own.lines).toMatchObject([{ message: 'isolate replaced: a task has changed the state of the isolate' }])
})
