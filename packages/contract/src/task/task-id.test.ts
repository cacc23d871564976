// Tests task ids: what they contain, their order, and that BullMQ and Redis can store them.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTaskId, ID_RANDOM_BYTES, QUEUE_NAME, readTaskId, taskId } from './task-id.ts'

const LAST_MS = 2 ** 48 - 1
const queue = fc.stringMatching(/^[a-z][a-z0-9._-]{0,39}$/)
const time = fc.oneof(fc.integer({ min: 0, max: LAST_MS }), fc.constantFrom(0, 1, LAST_MS, Date.UTC(2026, 0)))
const random = fc.uint8Array({ minLength: ID_RANDOM_BYTES, maxLength: ID_RANDOM_BYTES })

describe('an id', () => {
  test('tells its queue and its time', () => {
    fc.assert(
      fc.property(queue, time, random, (name, now, bytes) => {
        const id = createTaskId(name, now, bytes)
        expect(readTaskId(id)).toEqual({ id, queue: name, createdAt: now })
        expect(taskId(id)).toBe(id)
      }),
    )
  })

  test('comes after all that were made in an earlier millisecond', () => {
    fc.assert(
      fc.property(queue, time, time, random, random, (name, one, other, bytes, more) => {
        fc.pre(one !== other)
        expect(createTaskId(name, one, bytes) < createTaskId(name, other, more)).toBe(one < other)
      }),
    )
  })

  test('is no integer and has no colon, which BullMQ refuses', () => {
    fc.assert(
      fc.property(queue, time, random, (name, now, bytes) => {
        const id = createTaskId(name, now, bytes)
        expect(id).toMatch(/^[a-z][a-z0-9._-]*-[0-9a-z]{26}$/)
        expect(Number(id)).toBeNaN()
        expect(id).not.toContain(':')
      }),
    )
  })

  test('holds every random bit', () => {
    fc.assert(
      fc.property(random, fc.integer({ min: 0, max: ID_RANDOM_BYTES * 8 - 1 }), (bytes, bit) => {
        const other = Uint8Array.from(bytes)
        other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(createTaskId('q', 1, bytes)).not.toBe(createTaskId('q', 1, other))
      }),
    )
  })

  test('is a ULID in lower case', () => {
    // The time of the specification's example, 01ARZ3NDEKTSV4RRFFQ69G5FAV.
    const random80 = Uint8Array.from([0xd6, 0x76, 0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b])
    expect(createTaskId('q', 1_469_922_850_259, random80)).toBe('q-01arz3ndektsv4rrffq69g5fav')
  })
})

describe('what is not an id', () => {
  const good = createTaskId('short', Date.UTC(2026, 0), new Uint8Array(10))
  test.each([
    '',
    '-',
    'short',
    '17',
    good.slice(1 + good.indexOf('-')),
    good.slice(0, -1),
    `${good}0`,
    good.toUpperCase(),
    `${good}\n`,
    good.replace('short', 'Short'),
    good.replace('short', '1short'),
    good.replace('short', ''),
    good.replace('short-', 'short:'),
    good.replace('-0', '-8'),
    good.replace(/.$/, 'u'),
    good.replace(/.$/, 'i'),
    good.replace(/.$/, 'l'),
    good.replace(/.$/, 'o'),
    `${'q'.repeat(41)}-${good.slice(6)}`,
  ])('%j is answered as a task that was not found', (text) => {
    expect(readTaskId(text)).toBeUndefined()
    expect(() => taskId(text)).toThrow(expect.objectContaining({ code: 'task_not_found' }))
  })

  test('is any other text, too', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const read = readTaskId(text)
        if (read !== undefined) expect(QUEUE_NAME.test(read.queue)).toBe(true)
      }),
    )
  })
})
