// Tests what each drain mode, and a crash, does to tasks in every status, with every broker.
import { TaskError } from '@bullpen/contract'
import { type DrainLimits, drainLimits } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { type Handle, long, openSetup, short } from '../setup.ts'

/** The handler's behaviour, which depends on its input: it ends when it is signalled, ignores the signal, fails, or returns. */
const LISTENS = 1
const IGNORES_SIGNAL = 2
const FAILS = 3
const RETURNS = 4

const TIMES = { drainMs: 100, graceMs: 100 }

/** Creates a pool that runs three tasks, in addition to one waiting, one scheduled and one retrying task. */
async function manyTasks(open: OpenBackend) {
  const released = Promise.withResolvers<void>()
  const entered: string[] = []
  const handle: Handle = async ({ id, input, signal, fencingToken }) => {
    if (input.n === FAILS) throw new TaskError('busy', 'later', { retryable: true, retryAfter: '1h' })
    // Later attempts return at once.
    if (input.n === RETURNS || fencingToken > 1) return input
    entered.push(id)
    const aborted =
      input.n === LISTENS && new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await (aborted ? Promise.race([released.promise, aborted]) : released.promise)
    return input
  }
  const { enqueue, start, find, settled, reaches, backend } = await openSetup(open, {
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
    ignores: await enqueue(long, { n: IGNORES_SIGNAL }),
  }
  await eventually(() => entered.length === 3)
  const scheduled = await enqueue(long, {}, { delay: '1h' })
  const waiting = await enqueue(long, { n: RETURNS })
  return {
    ids: { ...running, scheduled, waiting, retrying },
    find,
    settled,
    release: () => released.resolve(),
    drain: (limits: DrainLimits) => working.drain(limits),
    crash: async () => {
      await backend.kill('test:1', Object.values(running))
      await start('test:2')
    },
  }
}

type Setup = Awaited<ReturnType<typeof manyTasks>>

async function expectUnstarted({ ids, find }: Setup): Promise<void> {
  expect(await find(ids.waiting)).toMatchObject({ status: 'waiting', fencingToken: 0 })
  expect(await find(ids.scheduled)).toMatchObject({ status: 'scheduled', fencingToken: 0 })
  expect(await find(ids.retrying)).toMatchObject({ status: 'retrying', fencingToken: 1, attemptsMade: 1 })
}

/** Expects that the running tasks have finished and that no other task has started. */
async function expectFinished(setup: Setup): Promise<void> {
  const { ids, find } = setup
  for (const id of [ids.short, ids.listens, ids.ignores]) {
    expect(await find(id)).toMatchObject({ status: 'completed', fencingToken: 1, attemptsMade: 1 })
  }
  await expectUnstarted(setup)
}

/** Expects that the long tasks were requeued without using an attempt, and that the short task was abandoned. */
async function expectRequeued(setup: Setup): Promise<void> {
  const { ids, find, release } = setup
  for (const id of [ids.listens, ids.ignores]) {
    const end = { state: 'TERMINATED_CTX_CLOSED', reason: 'drain' }
    expect(await find(id)).toMatchObject({ status: 'waiting', fencingToken: 1, attemptsMade: 0, attempts: [end] })
  }
  expect(await find(ids.short)).toMatchObject({ attempts: [] })
  await expectUnstarted(setup)
  release()
}

export function drains(open: OpenBackend): void {
  it.each(['light', 'soft'] as const)(
    'a %s drain finishes running tasks and leaves the others as they are',
    async (mode) => {
      const setup = await manyTasks(open)
      const drained = setup.drain(drainLimits(mode, TIMES))
      setup.release()
      expect(await drained).toMatchObject({ finished: 3, requeued: 0, abandoned: [], unconfirmed: [] })
      await expectFinished(setup)
    },
  )

  it('a soft_timeout drain finishes tasks that end in time and leaves the others as they are', async () => {
    const setup = await manyTasks(open)
    const drained = setup.drain(drainLimits('soft_timeout', { ...TIMES, drainMs: 5_000 }))
    setup.release()
    expect(await drained).toMatchObject({ finished: 3, requeued: 0, abandoned: [], unconfirmed: [] })
    await expectFinished(setup)
  })

  it.each(['soft_timeout', 'hard'] as const)(
    'a %s drain requeues tasks that it interrupts, names those that it cannot, and leaves the others as they are',
    async (mode) => {
      const setup = await manyTasks(open)
      expect(await setup.drain(drainLimits(mode, TIMES))).toMatchObject({
        finished: 0,
        requeued: 2,
        abandoned: [{ id: setup.ids.short }],
        unconfirmed: [],
      })
      await expectRequeued(setup)
    },
  )

  it('a crash without a drain: another worker runs each task again, and no attempt is used', async () => {
    const setup = await manyTasks(open)
    const { ids, settled, find, release } = setup
    await setup.crash()
    for (const id of [ids.short, ids.listens, ids.ignores]) {
      expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2, attemptsMade: 1 })
    }
    expect(await settled(ids.waiting)).toMatchObject({ status: 'completed', fencingToken: 1 })
    expect(await find(ids.scheduled)).toMatchObject({ status: 'scheduled', fencingToken: 0 })
    expect(await find(ids.retrying)).toMatchObject({ status: 'retrying', fencingToken: 1, attemptsMade: 1 })
    release()
  })
}
