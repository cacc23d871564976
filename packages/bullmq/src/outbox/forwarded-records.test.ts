// The records of forwarded follow-ups on a real Redis: each is found for a day, and takes little memory however many there are.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { luaInclude } from '../store/scripts.ts'

const PERIOD_S = 21_600
/** The first period whose records do not expire while the test runs. */
const FIRST = Math.floor(Date.now() / 1_000 / PERIOD_S) + 1

/** Looks for each record at a time that the test sets, stores those that are not found, and returns how many were. */
const SCRIPT = `
local base = KEYS[1]
local redis = setmetatable({
  call = function(name, ...)
    if name == 'TIME' then return { ARGV[1], '0' } end
    return redis.call(name, ...)
  end,
}, { __index = redis })
local ADDED = 1
${luaInclude('forwarded')}
local found = 0
for i = 2, #ARGV do
  local task = { forwarded = ARGV[i] }
  if recall_forwarded(task) then found = found + 1 else remember_forwarded(task) end
end
return found`

function setup() {
  const redis = new Redis(inject('redisUrl'))
  const base = `t-${randomUUID().slice(0, 12)}:`
  const keysOf = (period: number) => redis.keys(`${base}forwarded:${period}:*`)
  onTestFinished(async () => {
    await redis.del(`${base}totals`, ...(await redis.keys(`${base}forwarded:*`)))
    redis.disconnect()
  })
  return {
    redis,
    keysOf,
    /** Stores the records that are not found, and resolves with how many are. */
    forward: (period: number, records: readonly string[]) =>
      redis.eval(SCRIPT, 1, base, period * PERIOD_S + 1, ...records),
    digits: () => redis.hget(`${base}totals`, 'forwardedDigits'),
    lengths: async (period: number) =>
      [...new Set((await keysOf(period)).map((key) => key.length - key.lastIndexOf(':') - 1))].toSorted(),
  }
}

/** Records whose digits begin with the same three. */
const recordsFrom = (first: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${first + i} abc${((first + i) % 256).toString(16).padStart(2, '0')}`)

it('a record is found for a day, however many others there are', async () => {
  const { redis, forward, keysOf, digits, lengths } = setup()
  const all = recordsFrom(1, 12_000)
  expect(await forward(FIRST, all)).toBe(0)
  expect(await lengths(FIRST)).toEqual([3, 4, 5])
  const keys = await keysOf(FIRST)
  const encodings = await Promise.all(keys.map((key) => redis.object('ENCODING', key)))
  expect(new Set(encodings)).toEqual(new Set(['intset']))
  expect(await digits()).toBe(` ${FIRST}:345`)
  for (let period = FIRST; period <= FIRST + 4; period++) expect(await forward(period, all)).toBe(all.length)
  // The records would have expired by now.
  expect(await forward(FIRST + 5, all.slice(0, 10))).toBe(0)
})

it('a period begins with as many sets as the one before has needed, and with fewer if that is enough', async () => {
  const { forward, digits, lengths } = setup()
  await forward(FIRST, recordsFrom(1, 2_000))
  expect(await digits()).toBe(` ${FIRST}:34`)
  await forward(FIRST + 1, recordsFrom(10_001, 256))
  expect(await lengths(FIRST + 1)).toEqual([4])
  // Each of the 16 sets has 16 records, and then each has one.
  await forward(FIRST + 2, recordsFrom(20_001, 16))
  expect(await lengths(FIRST + 2)).toEqual([4])
  await forward(FIRST + 3, recordsFrom(30_001, 16))
  expect(await lengths(FIRST + 3)).toEqual([3])
  await forward(FIRST + 4, recordsFrom(40_001, 16))
  expect(await lengths(FIRST + 4)).toEqual([3])
  expect(await digits()).toBe(` ${FIRST}:34 ${FIRST + 1}:4 ${FIRST + 2}:4 ${FIRST + 3}:3`)
})

it('a queue with few follow-ups stores nothing but their records', async () => {
  const { forward, digits, lengths } = setup()
  for (let period = FIRST; period < FIRST + 3; period++) await forward(period, recordsFrom(period * 1_000, 100))
  expect([await digits(), await lengths(FIRST)]).toEqual([null, [3]])
})
