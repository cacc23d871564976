// Tests that the table of places agrees with the status index, and with the scripts that read several places in one step.
import { randomUUID } from 'node:crypto'
import { isFinal, type TaskId } from '@bullpen/contract'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { cancelById } from '../../cancel/by-id.ts'
import { queueKeys } from '../../keys.ts'
import {
  cancelPageScript,
  countRemainingScript,
  readUnfinishedScript,
  repairTotalsScript,
  surveyQueueScript,
} from '../../store/scripts.ts'
import { PLACE_NAMES, PLACES, type PlaceName } from './places.ts'
import { PARTS } from './status-index.ts'

/** The list or set that holds the tasks of a place. */
function structureOf(name: PlaceName): string {
  const place = PLACES[name]
  return 'partOf' in place ? place.partOf : name
}

const waiting = PLACE_NAMES.filter((name) => 'waits' in PLACES[name])

it('the places that are parts of a set are the parts of the status index', () => {
  for (const [set, parts] of Object.entries(PARTS)) {
    expect(PLACE_NAMES.filter((name) => name !== set && structureOf(name) === set)).toEqual(parts)
  }
})

describe('a script that reads several places', () => {
  it.each([
    ['repair-totals', repairTotalsScript.keys, PLACE_NAMES],
    ['survey-queue', surveyQueueScript.keys, PLACE_NAMES],
    ['cancel-page', cancelPageScript.keys, [...waiting, 'active'] as const],
    ['count-remaining', countRemainingScript.keys, [...waiting, 'active'] as const],
    ['read-unfinished', readUnfinishedScript.keys, PLACE_NAMES.filter((name) => !isFinal(PLACES[name].status))],
  ])('%s reads all of them', (_, keys, names) => {
    expect(keys).toEqual(expect.arrayContaining([...new Set(names.map(structureOf))]))
  })
})

describe('a cancel by id', () => {
  /** Every list and set that holds tasks, which the test leaves empty. The lanes have a test of their own. */
  function structures() {
    const redis = new Redis(inject('redisUrl'))
    const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
    const holding = new Map<string, 'list' | 'sorted set'>()
    for (const name of PLACE_NAMES) {
      const { type } = PLACES[name]
      // The tasks in `active` have a lock.
      if (type !== 'lanes' && name !== 'active') holding.set(structureOf(name), type)
    }
    const keyOf = (name: string): string => keys[name as 'wait']
    onTestFinished(async () => {
      await redis.del([...holding.keys()].map(keyOf))
      redis.disconnect()
    })
    const cancel = async (id: string): Promise<boolean> => {
      await redis.hset(keys.job(id), 'name', 'x')
      const request = { request: randomUUID(), id: id as TaskId, stoppable: false, now: 1, by: '', process: 'test' }
      const { answer } = await cancelById(redis, keys, request)
      await redis.del(keys.job(id), keys.failed, keys.cancelled)
      return answer === 'cancelled'
    }
    return { redis, keys, holding, keyOf, cancel, expected: new Set(waiting.map(structureOf)) }
  }

  it('removes a task from each list or set in which it can wait, and from no other', async () => {
    const { redis, holding, keyOf, cancel, expected } = structures()
    for (const [name, type] of [...holding].filter(([each]) => each !== 'failed')) {
      if (type === 'list') await redis.rpush(keyOf(name), 'a', 'b', 'c')
      else await redis.zadd(keyOf(name), 1, 'a', 2, 'b', 3, 'c')
      expect(await cancel('b')).toBe(expected.has(name))
      const left = await (type === 'list' ? redis.lrange(keyOf(name), 0, -1) : redis.zrange(keyOf(name), '0', '-1'))
      expect(left).toEqual(expected.has(name) ? ['a', 'c'] : ['a', 'b', 'c'])
      await redis.del(keyOf(name))
    }
  })

  it('removes exactly one task from a long list, wherever the task is in that list', async () => {
    const { redis, keys, cancel } = structures()
    const ids = Array.from({ length: 1_000 }, (_, n) => `t${n}`)
    await redis.rpush(keys.wait, ...ids)
    for (const id of ['t0', 't100', 't249', 't250', 't500', 't998', 't999']) {
      expect(await cancel(id)).toBe(true)
      ids.splice(ids.indexOf(id), 1)
      expect(await redis.lrange(keys.wait, 0, -1)).toEqual(ids)
    }
    expect(await cancel('t0')).toBe(false)
  })

  it('searches no list for a task that is in a sorted set, whether the task can wait there or not', async () => {
    const { redis, keys, holding, keyOf, cancel, expected } = structures()
    const sets = [...holding].filter(([, type]) => type === 'sorted set').map(([name]) => name)
    expect(sets).toContain('waitingChildren')
    for (const name of sets) {
      // A task is in one place at a time. The list would lose this one if it were searched.
      await redis.rpush(keys.wait, 'b')
      await redis.zadd(keyOf(name), 1, 'b')
      expect(await cancel('b')).toBe(expected.has(name))
      expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['b'])
      await redis.del(keys.wait, keyOf(name))
    }
  })
})
