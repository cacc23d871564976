// Tests that a task whose worker dies at any step between registering a compensation and its end is compensated if and only if it does
// not complete.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { endAs, scriptProxy } from '../internals/index-model/script-proxy.fixture.ts'
import { long, setup, short } from '../setup.fixture.ts'
import { registerTaskScript } from '../store/scripts.ts'

/** The step at which the worker dies. */
const STEPS = [
  { step: 'before the registration is stored', at: 'registration', when: 'before' },
  { step: 'after the registration is stored', at: 'registration', when: 'after' },
  { step: 'after the effect', at: 'effect', when: 'after' },
  { step: 'before the end is stored', at: 'end', when: 'before' },
  { step: 'after the end is stored', at: 'end', when: 'after' },
] as const

const CASES = STEPS.flatMap((each) => [true, false].map((completes) => ({ ...each, completes })))

it.each(CASES)(
  'a task whose worker dies $step, and that would complete ($completes), is compensated only if it does not',
  async ({ at, when, completes }) => {
    const died = Promise.withResolvers<void>()
    const undone: number[] = []
    let isDead = false
    const rig = await setup({
      roundMs: 50,
      concurrency: 1,
      async handle({ name, input, compensate, fencingToken }) {
        if (String(name) === short.name) {
          undone.push(input.n)
          return input
        }
        await compensate(short, { n: 7 })
        // Here is the effect.
        if (at === 'effect' && fencingToken === 1) die()
        if (isDead && fencingToken === 1) await new Promise(() => {})
        if (!completes) throw new TaskError('fatal', 'it broke', { retryable: false })
        return input
      },
    })
    const proxy = await scriptProxy(rig.redisUrl)
    onTestFinished(() => proxy.close())
    const die = (): void => {
      isDead = true
      proxy.close()
      died.resolve()
    }
    await rig.startPool(proxy.url)
    const end = endAs(completes ? 'completed' : 'dead')
    const call = at === 'registration' ? { scripts: [registerTaskScript.lua] } : end
    if (at !== 'effect') proxy.arm({ ...call, when, onFault: die })
    const id = await rig.enqueue(long)
    await died.promise
    await rig.kill(0, [id])
    await rig.startPool()
    const ended = await rig.settled(id)
    expect(ended?.status).toBe(completes ? 'completed' : 'dead')
    await eventually(async () => (await rig.broker.totals('rig')).outbox.entries === 0)
    await eventually(async () => {
      const { waiting, active } = await rig.broker.counts('rig')
      return waiting + active === 0
    })
    expect(undone).toEqual(completes ? [] : [7])
  },
)
