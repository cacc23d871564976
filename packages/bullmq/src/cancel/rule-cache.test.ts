// A consumer's copy of the cancel rules expires before a canceller stops waiting for that consumer, whatever Redis does.
import type { TaskId } from '@bullpen/contract'
import type { FetchedTask } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { acknowledgeRuleScript, readRulesScript } from '../store/scripts.ts'
import { KNOWN_TO_ALL_MS, READ_EVERY_MS, TRUSTED_MS } from './by-filter.ts'
import { createRuleCache, RETRY_DELAY } from './rule-cache.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const task: FetchedTask = {
  id: 'q-1' as TaskId,
  task: 'rig.long',
  envelope: { v: 2, version: 1 },
  enqueuedAt: 1_000,
  fencingToken: 1,
  attempt: 1,
  maxAttempts: 1,
  readyAt: undefined,
  progress: async () => {},
  steps: { read: async () => new Map(), keep: async (_, result) => result, register: async () => 'stored' },
}

/** A rule cache on a fake Redis that answers until it is silenced. */
function setup() {
  const rules: string[] = []
  const known: string[] = []
  const unanswered: (() => void)[] = []
  let answers = true
  let isLoading = false
  let reads = 0
  const redis = {
    [readRulesScript.name]: async () => {
      reads++
      if (isLoading) throw new Error('LOADING Redis is loading the dataset in memory')
      if (!answers) await new Promise<void>((resolve) => unanswered.push(resolve))
      return [...rules]
    },
    [acknowledgeRuleScript.name]: async ([key = '']: readonly string[]) => known.push(key),
    zrem: async () => 1,
    // Only the commands that a rule cache sends.
  } as unknown as Redis
  const applied = vi.fn()
  const keys = queueKeys('t', 'q')
  let hasTasks = true
  const cache = createRuleCache(redis, keys, { apply: applied, hasTasks: () => hasTasks }, silent)
  return {
    endTasks: () => {
      hasTasks = false
    },
    cache,
    applied,
    reads: () => reads,
    known,
    addRule: (id: string) => {
      rules.push(JSON.stringify({ id, queue: 'q', before: 1_000, reason: 'cancelled', by: 'b', at: 1 }))
    },
    fail: (fails: boolean) => {
      isLoading = fails
    },
    silence: () => {
      answers = false
    },
    answer() {
      answers = true
      for (const resolve of unanswered.splice(0)) resolve()
    },
  }
}

describe('a rule cache', () => {
  it('reads the rules every two seconds and acknowledges new ones', async () => {
    expect(READ_EVERY_MS).toBeLessThan(TRUSTED_MS)
    expect(TRUSTED_MS).toBeLessThan(KNOWN_TO_ALL_MS)
    const { cache, reads, addRule, known } = setup()
    expect(cache.isFresh()).toBe(false)
    await cache.untilFresh()
    expect({ fresh: cache.isFresh(), reads: reads(), rule: cache.matching(task) }).toEqual({ fresh: true, reads: 1 })
    addRule('r1')
    await vi.advanceTimersByTimeAsync(READ_EVERY_MS)
    expect(cache.matching(task)).toMatchObject({ id: 'r1' })
    expect(known).toEqual(['{t.q}:q:cancel-known:r1'])
    cache.close()
  })

  it('is stale when Redis does not answer in time, and fresh only after a new reading', async () => {
    const { cache, silence, answer, addRule } = setup()
    await cache.untilFresh()
    silence()
    await vi.advanceTimersByTimeAsync(TRUSTED_MS - 1)
    expect(cache.isFresh()).toBe(true)
    await vi.advanceTimersByTimeAsync(1)
    expect(cache.isFresh()).toBe(false)
    const matched = cache.untilFresh().then(() => cache.matching(task))
    addRule('r1')
    await vi.advanceTimersByTimeAsync(10_000)
    // This answer is too old to be trusted, so the cache reads again.
    answer()
    expect(await matched).toMatchObject({ id: 'r1' })
    expect(cache.isFresh()).toBe(true)
    cache.close()
  })

  it('reads nothing while the consumer is idle, so that its copy expires, and reads again when a task is about to come', async () => {
    const { cache, reads, endTasks } = setup()
    await cache.untilFresh()
    endTasks()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(reads()).toBe(1)
    cache.prepare()
    cache.prepare()
    await vi.advanceTimersByTimeAsync(0)
    expect({ reads: reads(), fresh: cache.isFresh() }).toEqual({ reads: 2, fresh: true })
    // A task was started, and the consumer may start another one until the copy expires.
    await vi.advanceTimersByTimeAsync(READ_EVERY_MS)
    expect(reads()).toBe(3)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(reads()).toBe(3)
    cache.close()
  })

  it('is never fresh without having been read within the time that a canceller waits, whenever it is asked', async () => {
    const { cache, reads, endTasks } = setup()
    await cache.untilFresh()
    endTasks()
    // The timer has found the consumer idle, and the copy has not expired yet.
    await vi.advanceTimersByTimeAsync(READ_EVERY_MS + 100)
    expect({ fresh: cache.isFresh(), reads: reads() }).toEqual({ fresh: true, reads: 2 })
    await vi.advanceTimersByTimeAsync(READ_EVERY_MS + TRUSTED_MS)
    await vi.advanceTimersByTimeAsync(TRUSTED_MS)
    expect(cache.isFresh()).toBe(false)
    cache.close()
  })

  it('reads the rules again if it is notified during a reading', async () => {
    const { cache, silence, answer, reads, applied, addRule } = setup()
    silence()
    cache.refresh()
    cache.refresh()
    expect(reads()).toBe(1)
    addRule('r1')
    answer()
    await vi.advanceTimersByTimeAsync(0)
    expect(reads()).toBe(2)
    expect(applied).toHaveBeenCalled()
    cache.close()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(reads()).toBe(2)
  })

  it('reads the rules again ever more slowly while Redis answers with errors, and soon after the last error', async () => {
    const { cache, fail, reads } = setup()
    fail(true)
    let isFresh = false
    const fresh = Promise.all([cache.untilFresh(), cache.untilFresh()]).then(() => {
      isFresh = true
    })
    const readsAfter = async (ms: number): Promise<number> => {
      await vi.advanceTimersByTimeAsync(ms)
      return reads()
    }
    const { firstMs, longestMs } = RETRY_DELAY
    expect(await readsAfter(0)).toBe(1)
    expect(await readsAfter(firstMs - 1)).toBe(1)
    expect(await readsAfter(1)).toBe(2)
    expect(await readsAfter(2 * firstMs)).toBe(3)
    expect(await readsAfter(20 * longestMs)).toBeLessThanOrEqual(24)
    fail(false)
    expect(isFresh).toBe(false)
    await vi.advanceTimersByTimeAsync(longestMs)
    await fresh
    expect(cache.isFresh()).toBe(true)
    cache.close()
  })

  it('stops waiting for fresh rules when it is closed', async () => {
    const { cache, fail, reads } = setup()
    fail(true)
    const waiting = cache.untilFresh()
    await vi.advanceTimersByTimeAsync(0)
    cache.close()
    await waiting
    expect(reads()).toBe(1)
  })
})
