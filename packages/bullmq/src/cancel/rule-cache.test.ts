// What a feed knows of cancel rules is trusted for less time than a canceller waits, whatever becomes of Redis.
import type { TaskId } from '@bullpen/contract'
import type { FetchedTask } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { queueKeys } from '../keys.ts'
import { silent } from '../rig.fixture.ts'
import { ASK_EVERY_MS, KNOWN_TO_ALL_MS, TRUSTED_MS } from './cancel-rules.ts'
import { openRuleCache } from './rule-cache.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const task: FetchedTask = {
  id: 'q-1' as TaskId,
  task: 'rig.long',
  envelope: { v: 1, version: 1 },
  enqueuedAt: 1_000,
  fencingToken: 1,
  attempt: 1,
  maxAttempts: 1,
  readyAt: undefined,
  progress: async () => {},
  steps: { read: async () => new Map(), keep: async (_, result) => result },
}

/** A Redis that holds these rules, and answers while it is told to. */
function watching() {
  const rules: string[] = []
  const known: string[] = []
  const unanswered: (() => void)[] = []
  let answers = true
  let asked = 0
  const pipeline = {
    sadd: (key: string) => {
      known.push(key)
      return pipeline
    },
    pexpire: () => pipeline,
    exec: async () => [],
  }
  const redis = {
    eval: async () => {
      asked++
      if (!answers) await new Promise<void>((resolve) => unanswered.push(resolve))
      return [...rules]
    },
    pipeline: () => pipeline,
    zrem: async () => 1,
    // No more of Redis than a watch asks for.
  } as unknown as Redis
  const applied = vi.fn()
  const keys = queueKeys('t', 'q')
  const watch = openRuleCache(redis, keys, applied, silent)
  return {
    watch,
    applied,
    asked: () => asked,
    known,
    addRule: (id: string) => {
      rules.push(JSON.stringify({ id, queue: 'q', before: 1_000, reason: 'cancelled', by: 'b', at: 1 }))
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

describe('the rules that a feed knows', () => {
  it('are asked for every two seconds, and for longer than that a canceller waits', async () => {
    expect(ASK_EVERY_MS).toBeLessThan(TRUSTED_MS)
    expect(TRUSTED_MS).toBeLessThan(KNOWN_TO_ALL_MS)
    const { watch, asked, addRule, known } = watching()
    expect(watch.isFresh()).toBe(false)
    await watch.fresh()
    expect({ fresh: watch.isFresh(), asked: asked(), rule: watch.covering(task) }).toEqual({ fresh: true, asked: 1 })
    addRule('r1')
    await vi.advanceTimersByTimeAsync(ASK_EVERY_MS)
    expect(watch.covering(task)).toMatchObject({ id: 'r1' })
    expect(known).toEqual(['{t.q}:q:cancel-known:r1'])
    watch.close()
  })

  it('are not trusted when Redis does not answer in time, and asked for before anything starts', async () => {
    const { watch, silence, answer, addRule } = watching()
    await watch.fresh()
    silence()
    await vi.advanceTimersByTimeAsync(TRUSTED_MS - 1)
    expect(watch.isFresh()).toBe(true)
    await vi.advanceTimersByTimeAsync(1)
    expect(watch.isFresh()).toBe(false)
    const asked = watch.fresh().then(() => watch.covering(task))
    addRule('r1')
    await vi.advanceTimersByTimeAsync(10_000)
    // An answer that comes so late to a question from before says nothing of now: it is asked for again.
    answer()
    expect(await asked).toMatchObject({ id: 'r1' })
    expect(watch.isFresh()).toBe(true)
    watch.close()
  })

  it('are asked for once more when it hears of a new one while it asks', async () => {
    const { watch, silence, answer, asked, applied, addRule } = watching()
    silence()
    watch.hear()
    watch.hear()
    expect(asked()).toBe(1)
    addRule('r1')
    answer()
    await vi.advanceTimersByTimeAsync(0)
    expect(asked()).toBe(2)
    expect(applied).toHaveBeenCalled()
    watch.close()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked()).toBe(2)
  })
})
