// A worker whose tasks use up memory and stack, again and again: each ends its own attempt, and nothing of it is left.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskRecord } from '@bullpen/contract'
import { amount } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type HungryRig, PATIENCE, startHungryWorker, type Wanted } from './memory-hog-rig.fixture.ts'
import type { ProcessTree } from './process-tree.fixture.ts'

const KINDS = ['objects', 'array', 'map', 'json', 'buffers'] as const
const MODEST = ['modest.inline', 'modest.process'] as const
/** As many as the worker has. */
const SLOTS = 2
const HUNGRY_TASKS = amount({ small: 20, full: 200 })
const MODEST_TO_EACH = 10

const range = (length: number): readonly number[] => Array.from({ length }, (_, at) => at)
const turn = <T>(names: readonly T[], at: number): T => names[at % names.length] as T

/** The kinds take turns; after each hungry task come ten modest ones. */
const mixed = (hungry: number): readonly Wanted[] =>
  range(hungry).flatMap((n) => [
    { task: `hungry.${turn(KINDS, n)}`, n },
    ...range(MODEST_TO_EACH).map((at) => ({ task: turn(MODEST, at), n: MODEST_TO_EACH * n + at })),
  ])

/** Long enough to be at work all at once: afterwards each slot has a process, warm and idle. */
const oneForEachSlot: readonly Wanted[] = range(SLOTS).map((n) => ({ task: 'modest.process', n, ms: 500 }))

const inMB = ({ ownBytes, processes, residentBytes }: ProcessTree): string =>
  `${Math.round(residentBytes / 1e6)} MB in ${processes} processes, ${Math.round(ownBytes / 1e6)} of them the worker's`

let worker: HungryRig
beforeAll(async () => {
  worker = await startHungryWorker()
})
afterAll(() => worker.close())

describe('a worker whose isolated tasks use up their memory', () => {
  let before: ProcessTree
  let records: readonly TaskRecord[]
  let endedAt: number
  const of = (name: string) => records.filter((record) => record.task === name)

  beforeAll(async () => {
    // Compared is a worker that has seen each kind of task and has a process in each slot with the same worker later:
    // one that has just started would be small because it has done nothing, and one without processes at the end, too.
    await worker.run(mixed(KINDS.length))
    await worker.run(oneForEachSlot)
    before = worker.resources()
    records = await worker.run(mixed(HUNGRY_TASKS))
    await worker.run(oneForEachSlot)
    endedAt = performance.now()
  }, 2 * PATIENCE)

  it.each(KINDS)('ends every attempt that uses it up by %s as RECOVER_ERR (out_of_memory)', (kind) => {
    const ends = of(`hungry.${kind}`).map(({ status, attempts }) => ({ status, attempts }))
    const outOfMemory = expect.objectContaining({ state: 'RECOVER_ERR', reason: 'out_of_memory' })
    expect(ends).toEqual(Array(HUNGRY_TASKS / KINDS.length).fill({ status: 'dead', attempts: [outOfMemory] }))
  })

  it.each(MODEST)('completes every %s beside them, at its first start and with its own output', (name) => {
    const ends = of(name).map(({ status, fencingToken, input, output }) => ({
      status,
      fencingToken: fencingToken,
      input,
      output,
    }))
    const numbers = range(HUNGRY_TASKS * MODEST_TO_EACH).filter((n) => turn(MODEST, n % MODEST_TO_EACH) === name)
    expect(ends).toEqual(
      numbers.map((n) => ({ status: 'completed', fencingToken: 1, input: { n }, output: { twice: 2 * n } })),
    )
  })

  it('holds, 10 s after the end and with its processes, at most 1.2 × the memory of before + 32 MB', async (test) => {
    const allowed = 1.2 * before.residentBytes + 32e6
    // The promise is of a moment, which a full run waits for; a small one is content when it comes true earlier.
    if (inject('scale') === 'full') await sleep(endedAt + 10_000 - performance.now())
    else await eventually(() => worker.resources().residentBytes <= allowed, 10_000).catch(() => {})
    const after = worker.resources()
    await test.annotate(`before ${inMB(before)}, after ${inMB(after)}`)
    expect(after.residentBytes).toBeLessThanOrEqual(allowed)
    expect(after.processes).toBeLessThanOrEqual(before.processes)
  })

  it('is alive and ready', async () => {
    expect(worker.isAlive()).toBe(true)
    expect(await worker.readiness()).toBe(200)
  })
})

describe('a worker whose task overflows the stack', () => {
  it('ends it as RECOVER_ERR (unexpected_error), and completes the next one', async () => {
    const [overflown, next] = await worker.run([
      { task: 'hungry.stack', n: 1 },
      { task: 'modest.inline', n: 2 },
    ])
    expect(overflown).toMatchObject({
      status: 'dead',
      attempts: [{ state: 'RECOVER_ERR', reason: 'unexpected_error', message: expect.stringContaining('call stack') }],
    })
    expect(next).toMatchObject({ status: 'completed', fencingToken: 1, output: { twice: 4 } })
  })
})

it('drains after all that with nothing abandoned, and exits with 0', async () => {
  worker.drain()
  expect(await worker.exited).toBe(0)
  expect(worker.output()).toMatch(/"abandoned":0.*"drained"/)
})
