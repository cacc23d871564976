// Tests a worker's states: which calls are allowed in each state, and that the parts that were opened are closed once,
// in reverse order.
import type { Log } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { createLifecycle, type Opening, WORKER_TRANSITIONS } from './lifecycle.ts'
import type { PoolSupervisor } from './pools/pool-supervisor.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
const SUMMARY = { finished: 0, requeued: 0, failed: 0, abandoned: [], unconfirmed: [], slowestTaskMs: 0 }

function newLifecycle(openMore: (opening: Opening) => Promise<void> = async () => {}) {
  const order: string[] = []
  const draining = Promise.withResolvers<[]>()
  const requests: unknown[] = []
  const pools = {
    end(request: unknown) {
      requests.push(request)
      return draining.promise
    },
    // The lifecycle only ends the pools.
  } as unknown as PoolSupervisor
  const lifecycle = createLifecycle({
    async open(opening) {
      order.push('open first')
      opening.owns(() => order.push('close first'))
      await openMore(opening)
      opening.assertWanted()
      order.push('open second')
      opening.owns(() => order.push('close second'))
      return { pools }
    },
    closeMs: 1_000,
    log: silent,
  })
  return { ...lifecycle, order, requests, finishDrain: () => draining.resolve([]) }
}

const wrongState = (message: string) => ({ code: 'wrong_state', message })

describe('the lifecycle of a worker', () => {
  it('opens, runs, drains and closes in the reverse order of opening', async () => {
    const { open, drain, state, order, requests, finishDrain } = newLifecycle()
    expect(state()).toBe('new')
    const opened = open('start')
    expect(state()).toBe('opening')
    await opened
    expect(state()).toBe('running')
    const drained = drain({ mode: 'soft' })
    expect(state()).toBe('draining')
    expect(requests).toEqual([{ mode: 'soft' }])
    finishDrain()
    expect(await drained).toEqual(SUMMARY)
    expect(state()).toBe('closed')
    expect(order).toEqual(['open first', 'open second', 'close second', 'close first'])
  })

  it('merges concurrent drains', async () => {
    const { open, drain, ended, requests, finishDrain } = newLifecycle()
    await open('start')
    const first = drain({ mode: 'soft' })
    const second = drain({ mode: 'hard' })
    expect(second).toBe(first)
    expect(requests).toEqual([{ mode: 'soft' }, { mode: 'hard' }])
    finishDrain()
    expect(await ended).toEqual(await first)
  })

  it('closes what it opened when the opening fails, and can then be drained without effect', async () => {
    const { open, drain, state, order } = newLifecycle(() => Promise.reject(new Error('port taken')))
    await expect(open('start')).rejects.toThrow('port taken')
    expect(state()).toBe('closed')
    expect(order).toEqual(['open first', 'close first'])
    expect(await drain({ mode: 'soft' })).toEqual(SUMMARY)
  })

  it('cancels its opening when it is drained meanwhile', async () => {
    const resource = Promise.withResolvers<void>()
    const { open, drain, order } = newLifecycle(() => resource.promise)
    const opened = open('start')
    const drained = drain({ mode: 'soft' })
    resource.resolve()
    await expect(opened).rejects.toMatchObject(wrongState('the worker is draining: it was drained before it started'))
    await drained
    expect(order).toEqual(['open first', 'close first'])
  })

  it('closes at once what opens after it has closed', async () => {
    const { open, drain, order } = newLifecycle(async (opening) => {
      await drained
      opening.owns(() => order.push('close late'))
    })
    const { promise: drained, resolve } = Promise.withResolvers<void>()
    const opened = open('start')
    // The opening hangs: the drain goes on without it.
    void drain({ mode: 'hard' }).then(() => resolve())
    await expect(opened).rejects.toMatchObject({ code: 'wrong_state' })
    expect(order).toEqual(['open first', 'close first', 'close late'])
  })

  it.each(['opening', 'running', 'draining', 'closed'] as const)('refuses to start while it is %s', async (wanted) => {
    const { open, drain, state, finishDrain } = newLifecycle()
    const opened = open('start')
    if (wanted !== 'opening') await opened
    const drained = wanted === 'draining' || wanted === 'closed' ? drain({ mode: 'soft' }) : undefined
    if (wanted === 'closed') {
      finishDrain()
      await drained
    }
    expect(state()).toBe(wanted)
    await expect(open('online')).rejects.toMatchObject(
      wrongState(`the worker is ${wanted}: online() can be called only on a new worker`),
    )
  })

  it('reaches every state of its table', () => {
    const reachable = new Set(['new', ...Object.values(WORKER_TRANSITIONS).flat()])
    expect([...reachable].sort()).toEqual(Object.keys(WORKER_TRANSITIONS).sort())
  })
})
