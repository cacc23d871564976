// Conformance: what each mode of a drain, and a crash, makes of every task there is then.
import { TaskError } from '@bullpen/contract'
import { type DrainLimits, drainLimits } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { type Handle, long, openStage, short } from './stage.ts'

/** What a handler is to do, by its input. */
const LISTENS = 1
const IS_DEAF = 2
const FAILS = 3
const RETURNS = 4

const TIMES = { drainMs: 100, graceMs: 100 }

/** A pool at work on one task of each kind, and one of each that does not run. */
async function manyTasks(open: OpenBackend) {
  const released = Promise.withResolvers<void>()
  const entered: string[] = []
  const handle: Handle = async ({ id, input, signal, start }) => {
    if (input.n === FAILS) throw new TaskError('busy', 'later', { retryable: true, retryAfter: '1h' })
    // Who begins again is not what is looked at.
    if (input.n === RETURNS || start > 1) return input
    entered.push(id)
    const aborted =
      input.n === LISTENS && new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await (aborted ? Promise.race([released.promise, aborted]) : released.promise)
    return input
  }
  const { enqueue, start, find, settled, reaches, backend } = await openStage(open, {
    handle,
    concurrency: 3,
    locks: 'quick',
  })
  const retrying = await enqueue(long, { n: FAILS })
  const working = await start()
  await reaches(retrying, 'retrying')
  const running = {
    short: await enqueue(short, {}),
    listens: await enqueue(long, { n: LISTENS }),
    deaf: await enqueue(long, { n: IS_DEAF }),
  }
  await eventually(() => entered.length === 3)
  const scheduled = await enqueue(long, {}, { delay: '1h' })
  const waiting = await enqueue(long, { n: RETURNS })
  return {
    ids: { ...running, scheduled, waiting, retrying },
    find,
    settled,
    letGo: () => released.resolve(),
    drain: (limits: DrainLimits) => working.drain(limits),
    crash: async () => {
      await backend.kill('test:1', Object.values(running))
      await start('test:2')
    },
  }
}

type Scene = Awaited<ReturnType<typeof manyTasks>>

async function expectUnstarted({ ids, find }: Scene): Promise<void> {
  expect(await find(ids.waiting)).toMatchObject({ status: 'waiting', fencingToken: 0 })
  expect(await find(ids.scheduled)).toMatchObject({ status: 'scheduled', fencingToken: 0 })
  expect(await find(ids.retrying)).toMatchObject({ status: 'retrying', fencingToken: 1, attemptsMade: 1 })
}

/** What ran has finished, and nothing else has begun. */
async function expectFinished(scene: Scene): Promise<void> {
  const { ids, find } = scene
  for (const id of [ids.short, ids.listens, ids.deaf]) {
    expect(await find(id)).toMatchObject({ status: 'completed', fencingToken: 1, attemptsMade: 1 })
  }
  await expectUnstarted(scene)
}

/** What could be stopped is back in its queue, no attempt used; a short task is cut off. */
async function expectHandedBack(scene: Scene): Promise<void> {
  const { ids, find, letGo } = scene
  for (const id of [ids.listens, ids.deaf]) {
    const end = { state: 'TERMINATED_CTX_CLOSED', reason: 'drain' }
    expect(await find(id)).toMatchObject({ status: 'waiting', fencingToken: 1, attemptsMade: 0, attempts: [end] })
  }
  expect(await find(ids.short)).toMatchObject({ attempts: [] })
  await expectUnstarted(scene)
  letGo()
}

export function drains(open: OpenBackend): void {
  it.each(['light', 'soft'] as const)(
    'by %s finishes what runs, whatever it does, and leaves the rest as it is',
    async (mode) => {
      const scene = await manyTasks(open)
      const drained = scene.drain(drainLimits(mode, TIMES))
      scene.letGo()
      expect(await drained).toMatchObject({ finished: 3, requeued: 0, abandoned: [], unconfirmed: [] })
      await expectFinished(scene)
    },
  )

  it('by soft_timeout finishes what ends in time, and leaves the rest as it is', async () => {
    const scene = await manyTasks(open)
    const drained = scene.drain(drainLimits('soft_timeout', { ...TIMES, drainMs: 5_000 }))
    scene.letGo()
    expect(await drained).toMatchObject({ finished: 3, requeued: 0, abandoned: [], unconfirmed: [] })
    await expectFinished(scene)
  })

  it.each(['soft_timeout', 'hard'] as const)(
    'by %s hands back what it has to stop, names what it can not, and leaves the rest as it is',
    async (mode) => {
      const scene = await manyTasks(open)
      expect(await scene.drain(drainLimits(mode, TIMES))).toMatchObject({
        finished: 0,
        requeued: 2,
        abandoned: [{ id: scene.ids.short }],
        unconfirmed: [],
      })
      await expectHandedBack(scene)
    },
  )

  it('that never comes, since the process crashes, is made good by another process: one start more, no attempt', async () => {
    const scene = await manyTasks(open)
    const { ids, settled, find, letGo } = scene
    await scene.crash()
    for (const id of [ids.short, ids.listens, ids.deaf]) {
      expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2, attemptsMade: 1 })
    }
    expect(await settled(ids.waiting)).toMatchObject({ status: 'completed', fencingToken: 1 })
    expect(await find(ids.scheduled)).toMatchObject({ status: 'scheduled', fencingToken: 0 })
    expect(await find(ids.retrying)).toMatchObject({ status: 'retrying', fencingToken: 1, attemptsMade: 1 })
    letGo()
  })
}
