// Whatever happens to tasks, nothing is stored without an owner.
import type { Orphan, OrphanRef, TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openSetup, QUEUE, short } from './setup.ts'

/** The inputs of the task that runs until it is cancelled, and of the task that fails. */
const LONG = 1_000
const FAILS = 1_001

export function orphans(open: OpenBackend): void {
  const findAll = async (
    search: (cursor?: string) => Promise<{ orphans: readonly Orphan[]; next: string | undefined }>,
  ) => {
    const found: Orphan[] = []
    let cursor: string | undefined
    do {
      const page = await search(cursor)
      found.push(...page.orphans)
      cursor = page.next
    } while (cursor !== undefined)
    return found
  }

  it('there are no orphans while tasks wait, run, fail, are cancelled, retried and removed', async () => {
    const { entered, handle, open: openGate, holds } = gate()
    const setup = await openSetup(open, {
      locks: 'quick',
      retention: { completed: { count: 1 }, dead: { count: 1 } },
      handle: (context) => {
        const { n } = context.input
        if (n === LONG) return handle(context)
        if (n === FAILS) throw new Error('broken')
        return context.input
      },
    })
    const { broker, enqueue, enqueueTask, create, start, settled } = setup
    const search = (cursor?: string) => broker.orphans.search(cursor)
    const waiting = await enqueue(short, { n: 1 })
    const scheduled = await enqueue(short, { n: 2 }, { delay: '1h', tags: ['a'] })
    const unique = create(short, { n: 3 })
    const key = { key: 'k', until: 'finished', onConflict: 'keep', maxDelayMs: undefined } as const
    await enqueueTask({ ...unique, unique: key, expiresAt: Date.now() + 60_000 })
    expect(await findAll(search)).toEqual([])
    await start()
    const running = await enqueue(long, { n: LONG })
    const dead = await enqueue(short, { n: FAILS }, { retry: { maxAttempts: 1 } })
    await holds(1)
    await Promise.all([waiting, unique.id, dead].map(settled))
    expect(await findAll(search)).toEqual([])
    await broker.cancel(scheduled, { stoppable: true })
    await broker.cancel(running, { stoppable: true })
    await settled(running)
    await broker.cancelMany({ queue: QUEUE, before: Date.now(), reason: 'cancelled' })
    expect(await broker.retry(dead, { request: 'r', by: 'ann' })).toBe('done')
    await settled(dead)
    expect(await findAll(search)).toEqual([])
    openGate()
    const others: TaskId[] = []
    for (let i = 0; i < 20; i++) others.push(await enqueue(short, { n: i }))
    // All but the newest are removed.
    await eventually(async () => {
      const { waiting: left, active, completed } = await broker.counts(QUEUE)
      return left + active === 0 && completed <= 16
    })
    expect(await findAll(search)).toEqual([])
    expect(entered).toHaveLength(1)
    const refs: readonly OrphanRef[] = others.map((key) => ({ key }))
    expect(await broker.orphans.delete(refs)).toEqual([])
  })
}
