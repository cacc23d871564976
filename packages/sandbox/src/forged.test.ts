// Tests that strange messages on the channel of an isolate are ignored, and that forged ones end only the attempt that sent them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORGED, forge } from './forged.fixture.ts'
import { openSetup, outputOf } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

const module = new URL('./forged.fixture.ts', import.meta.url).href

describe.each(['thread', 'process'] as const)('a handler in a %s', (isolation) => {
  const setup = openSetup(isolation)
  const escaped: unknown[] = []
  const onEscaped = (error: unknown): void => void escaped.push(error)
  beforeAll(() => void process.on('uncaughtExceptionMonitor', onEscaped))
  afterAll(async () => {
    process.off('uncaughtExceptionMonitor', onEscaped)
    await setup.isolator.close()
  })

  it.each(['worker', 'isolate'])('may send anything that is not a message of Bullpen to its %s', async (to) => {
    const before = setup.replaced.length
    expect(await outputOf(setup.run(forge, { to, what: 'strange' }, { module }))).toBe('ignored')
    await outputOf(setup.run(tasks.where))
    expect(setup.replaced.length).toBe(before)
    expect(escaped).toEqual([])
  })

  it.each(['worker', 'isolate'].flatMap((to) => Object.keys(FORGED).map((what) => ({ to, what }))))(
    'ends its attempt if it forges $what to its $to',
    async ({ to, what }) => {
      expect(await setup.run(forge, { to, what }, { module }).outcome).toMatchObject({
        kind: 'panicked',
        reason: 'escaped_error',
        error: { message: /^a message (of|to) .* was forged or is malformed: / },
      })
      await outputOf(setup.run(tasks.where))
      expect(setup.replaced.at(-1)).toMatchObject({ cause: 'escaped_error' })
      expect(setup.own.lines.filter(({ message }) => message.startsWith('message refused'))).toEqual([])
      expect(escaped).toEqual([])
    },
  )
})
