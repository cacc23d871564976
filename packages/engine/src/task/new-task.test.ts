import { type CallOptions, defineTask, type UniqueOptions } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newTask } from './new-task.ts'

const schemas = { input: z.object({ n: z.int().default(1) }), output: z.unknown() }
const long = defineTask({ name: 'test.long', queue: 'q', version: 3, timeout: '1m', queueTimeout: '10s', ...schemas })
const short = defineTask({ name: 'test.short', queue: 'q', kind: 'short', retry: { maxAttempts: 7 }, ...schemas })
const origin = { id: createTaskId('q', 1, new Uint8Array(10)), enqueuedAt: 1_000, correlationId: 'c-1' }

describe('a new task', () => {
  it('carries its definition’s name, version, queue and attempts, its origin, and its input as it was given', () => {
    expect(newTask(short, { n: undefined }, { meta: { tenant: 'a' }, tags: ['x'] }, origin)).toEqual({
      ...origin,
      task: 'test.short',
      version: 1,
      queue: 'q',
      input: { n: undefined },
      maxAttempts: 7,
      priority: 0,
      durability: 'primary',
      concurrencyKey: undefined,
      meta: { tenant: 'a' },
      tags: ['x'],
      delayMs: undefined,
      timeoutMs: undefined,
      heartbeatMs: undefined,
      queueMs: undefined,
      totalMs: undefined,
      expiresAt: undefined,
    })
  })

  it('carries the limits that its caller said, and not those of its definition', () => {
    const call = { timeout: '2s', heartbeatTimeout: '1s', queueTimeout: 'none', totalTimeout: '1h' } as const
    expect(newTask(long, {}, call, origin)).toMatchObject({
      timeoutMs: 2_000,
      heartbeatMs: 1_000,
      queueMs: 'none',
      totalMs: 3_600_000,
    })
    expect(newTask(long, {}, {}, origin)).toMatchObject({ timeoutMs: undefined, queueMs: undefined })
  })

  it('is ready at its start time, which may be a Date or a string, and at once if that time has passed', () => {
    const delayAt = (runAt: Date | string) => newTask(long, {}, { runAt }, origin).delayMs
    expect(delayAt(new Date(4_000))).toBe(3_000)
    expect(delayAt('1970-01-01T01:00:04.5+01:00')).toBe(3_500)
    expect(delayAt(new Date(1_000))).toBeUndefined()
    expect(delayAt('1969-12-31T00:00:00Z')).toBeUndefined()
  })

  it.each([
    [{ runAt: new Date(9_000), delay: '1s' }, '/runAt', 'use either delay or runAt, not both'],
    [{ runAt: new Date(Number.NaN) }, '/runAt', "at most '365d' ahead"],
    [{ runAt: new Date(400 * 86_400_000) }, '/runAt', "at most '365d' ahead"],
    [{ unique: { key: 'k', onConflict: 'extend' } }, '/unique/onConflict', 'set delay or runAt'],
    [
      { retry: { maxAttempts: 8 } },
      '/retry/maxAttempts',
      'expected at most 7 (retry.callBounds.maxAttempts of test.short), got 8',
    ],
  ] as const)('cannot be created with %j', (call, pointer, message) => {
    expect(() => newTask(short, {}, call, origin)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        errors: [{ pointer, message: expect.stringContaining(message) }],
      }),
    )
  })

  it('has a unique key until it has finished, and keeps another task with the key, unless its call says otherwise', () => {
    const uniqueOf = (unique: UniqueOptions, call: CallOptions = {}) =>
      newTask(long, {}, { ...call, unique }, origin).unique
    expect(uniqueOf({ key: 'k' })).toEqual({ key: 'k', until: 'finished', onConflict: 'keep', maxDelayMs: undefined })
    expect(uniqueOf({ key: 'k', until: 'started', onConflict: 'replace' })).toMatchObject({
      until: 'started',
      onConflict: 'replace',
    })
    expect(uniqueOf({ key: 'k', until: '10m' })).toMatchObject({ until: 600_000 })
    expect(uniqueOf({ key: 'k' }, { totalTimeout: '1h' })).toMatchObject({ maxDelayMs: 3_600_000 })
    expect(uniqueOf({ key: 'k', onConflict: 'extend' }, { runAt: new Date(0) })).toMatchObject({ onConflict: 'extend' })
  })

  it('is acknowledged as its call says, or else as its definition says', () => {
    const kept = defineTask({ name: 'test.kept', queue: 'q', durability: 'replicated', ...schemas })
    expect(newTask(kept, {}, {}, origin).durability).toBe('replicated')
    expect(newTask(kept, {}, { durability: 'primary' }, origin).durability).toBe('primary')
  })

  it('has the priority and the number of attempts of its call, or else those of its definition', () => {
    const urgent = defineTask({ name: 'test.later', queue: 'q', priority: 4, ...schemas })
    expect(newTask(urgent, {}, {}, origin)).toMatchObject({ priority: 4, maxAttempts: 5 })
    expect(newTask(urgent, {}, { priority: 0, retry: { maxAttempts: 1 } }, origin)).toMatchObject({
      priority: 0,
      maxAttempts: 1,
    })
  })

  it('may not be delayed beyond its deadline', () => {
    expect(() =>
      newTask(long, {}, { delay: '10m', timeout: '1s', queueTimeout: '1s', totalTimeout: '5m' }, origin),
    ).toThrow(
      expect.objectContaining({ code: 'invalid_request', errors: [expect.objectContaining({ pointer: '/delay' })] }),
    )
  })

  it('expires its queue timeout after it is ready: the caller’s, else the definition’s, and never for none', () => {
    const expires = (call: Parameters<typeof newTask>[2]) => newTask(long, {}, call, origin).expiresAt
    expect(expires({})).toBe(1_000 + 10_000)
    expect(expires({ queueTimeout: '2s', delay: '30s' })).toBe(1_000 + 30_000 + 2_000)
    expect(expires({ queueTimeout: 'none' })).toBeUndefined()
  })

  it.each(['timeout', 'heartbeatTimeout', 'queueTimeout', 'totalTimeout'] as const)(
    'of a short definition takes no %s, and says why',
    (limit) => {
      expect(() => newTask(short, {}, { [limit]: '1s' }, origin)).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          message: expect.stringContaining('test.short is a short task'),
          errors: [expect.objectContaining({ pointer: `/${limit}` })],
        }),
      )
    },
  )

  it.each([
    [{ timeout: '5s', heartbeatTimeout: '5s' }, /heartbeatTimeout \(5000 ms\) is not shorter than timeout/],
    [{ heartbeatTimeout: '2m' }, /not shorter than timeout \(60000 ms\)/],
    [{ totalTimeout: '5s' }, /timeout \(60000 ms\) is longer than totalTimeout/],
    [{ timeout: '1s', totalTimeout: '10s' }, /queueTimeout \(10000 ms\) is not shorter than totalTimeout/],
  ] as const)('refuses limits that contradict each other or the definition: %j', (call, message) => {
    expect(() => newTask(long, {}, call, origin)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(message) }),
    )
  })

  it.each([{ delay: 'soon' }, { timeout: '0s' }] as const)('refuses what is no duration: %j', (call) => {
    expect(() => newTask(long, {}, call as never, origin)).toThrow(
      expect.objectContaining({ code: 'invalid_duration' }),
    )
  })
})
