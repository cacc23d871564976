// Tests a worker whose tasks repeatedly use up memory and stack. Each task ends only its own attempt and does not leave anything
// behind.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskRecord } from '@bullpen/contract'
import { amount, type ProcessTree } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type MemoryHogWorker, PATIENCE, startMemoryHogWorker, type Wanted } from './memory-hog-setup.fixture.ts'

const KINDS = ['objects', 'array', 'map', 'json', 'buffers'] as const
const MODEST = ['modest.inline', 'modest.process'] as const
/** The concurrency of the worker. */
const SLOTS = 2
const HOGS = amount({ small: 10, full: 200 })
const MODEST_PER_HOG = 10

const range = (length: number): readonly number[] => Array.from({ length }, (_, at) => at)
const turn = <T>(names: readonly T[], at: number): T => names[at % names.length] as T

/** Returns hogs of all kinds in turn, each followed by ten modest tasks. */
const mixed = (hogs: number): readonly Wanted[] =>
  range(hogs).flatMap((n) => [
    { task: `hog.${turn(KINDS, n)}`, n },
    ...range(MODEST_PER_HOG).map((at) => ({ task: turn(MODEST, at), n: MODEST_PER_HOG * n + at })),
  ])

/** Long enough to run at the same time: afterwards each slot has a warm, idle process. */
const oneForEachSlot: readonly Wanted[] = range(SLOTS).map((n) => ({ task: 'modest.process', n, ms: 500 }))

const inMB = ({ ownBytes, processes, residentBytes }: ProcessTree): string =>
  `${Math.round(residentBytes / 1e6)} MB in ${processes} processes, ${Math.round(ownBytes / 1e6)} of them the worker's`

let worker: MemoryHogWorker
beforeAll(async () => {
  worker = await startMemoryHogWorker()
})
afterAll(() => worker.close())

describe('a worker whose isolated tasks use up their memory', () => {
  let before: ProcessTree
  let records: readonly TaskRecord[]
  let endedAt: number
  const of = (name: string) => records.filter((record) => record.task === name)

  beforeAll(async () => {
    // The worker is compared with itself after it has seen each kind of task and has a process in each slot: a new worker would
    // be smaller, and so would one whose processes have ended.
    await worker.run(mixed(KINDS.length))
    await worker.run(oneForEachSlot)
    before = worker.resources()
    records = await worker.run(mixed(HOGS))
    await worker.run(oneForEachSlot)
    endedAt = performance.now()
  }, 2 * PATIENCE)

  it.each(KINDS)('ends every attempt that uses it up by %s with out_of_memory', (kind) => {
    const ends = of(`hog.${kind}`).map(({ status, attempts }) => ({ status, attempts }))
    const outOfMemory = expect.objectContaining({ state: 'RECOVER_ERR', reason: 'out_of_memory' })
    expect(ends).toEqual(Array(HOGS / KINDS.length).fill({ status: 'dead', attempts: [outOfMemory] }))
  })

  it.each(MODEST)('completes every %s at its first attempt and with its own output', (name) => {
    const ends = of(name).map(({ status, fencingToken, input, output }) => ({
      status,
      fencingToken: fencingToken,
      input,
      output,
    }))
    const numbers = range(HOGS * MODEST_PER_HOG).filter((n) => turn(MODEST, n % MODEST_PER_HOG) === name)
    expect(ends).toEqual(
      numbers.map((n) => ({ status: 'completed', fencingToken: 1, input: { n }, output: { twice: 2 * n } })),
    )
  })

  it('uses, 10 s later and with its processes, at most 1.2 × the memory of before + 32 MB', async (test) => {
    const allowed = 1.2 * before.residentBytes + 32e6
    // A full run measures at exactly 10 s; a small run accepts any earlier moment.
    if (inject('scale') === 'full') await sleep(endedAt + 10_000 - performance.now())
    else await eventually(() => worker.resources().residentBytes <= allowed).catch(() => {})
    const after = worker.resources()
    await test.annotate(`before ${inMB(before)}, after ${inMB(after)}`)
    expect(after.residentBytes).toBeLessThanOrEqual(allowed)
    expect(after.processes).toBeLessThanOrEqual(before.processes)
  })

  it('stays alive and ready', async () => {
    expect(worker.isAlive()).toBe(true)
    expect(await worker.readiness()).toBe(200)
  })
})

describe('a worker whose task overflows the stack', () => {
  it('ends that attempt with unexpected_error, and completes the next task', async () => {
    const [overflown, next] = await worker.run([
      { task: 'hog.stack', n: 1 },
      { task: 'modest.inline', n: 2 },
    ])
    expect(overflown).toMatchObject({
      status: 'dead',
      attempts: [{ state: 'RECOVER_ERR', reason: 'unexpected_error', message: expect.stringContaining('call stack') }],
    })
    expect(next).toMatchObject({ status: 'completed', fencingToken: 1, output: { twice: 4 } })
  })
})

it('a worker drains after such tasks with nothing abandoned, and exits with 0', async () => {
  worker.drain()
  expect(await worker.exited).toBe(0)
  expect(worker.output()).toMatch(/"abandoned":0.*"drained"/)
})
