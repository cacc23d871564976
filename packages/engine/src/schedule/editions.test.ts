// Tests which definition of a schedule is stored, in whatever order processes with different catalogues start and stop.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DECLARE_EVERY_MS, declared, type Editions, FORGET_EDITION_MS, isToStore } from './editions.ts'

/** Simulates a fleet whose processes declare when they start and then regularly, at times of their own. */
function fleet() {
  let [known, now]: [Editions, number] = [new Map(), 1_000_000]
  const processes: { readonly digest: string; readonly startedAt: number }[] = []
  /** What was stored, in order. */
  const stored: string[] = []
  const declare = (digest: string): void => {
    const edition = { name: 'nightly', digest }
    known = declared(known, [edition], now)
    if (!isToStore(known, edition)) return
    stored.push(digest)
    known = new Map([...known, [edition.name, digest]])
  }
  return {
    stored,
    start(digest: string): void {
      processes.push({ digest, startedAt: now })
      declare(digest)
    },
    stop: (digest: string) => void processes.splice(processes.findIndex((each) => each.digest === digest) >>> 0, 1),
    pass(ms: number): void {
      for (const end = now + ms; now < end; now += 1_000) {
        for (const { digest, startedAt } of processes) if ((now - startedAt) % DECLARE_EVERY_MS === 0) declare(digest)
      }
    },
    runs: (digest: string) => processes.some((each) => each.digest === digest),
    isEmpty: () => processes.length === 0,
  }
}

test('during a rolling deploy, processes of the old catalogue that restart do not overwrite the new definition', () => {
  const { start, stop, pass, stored } = fleet()
  start('a')
  start('a')
  for (let i = 0; i < 20; i++) {
    start(i % 2 === 0 ? 'b' : 'a')
    pass(7_000)
    stop(i % 2 === 0 ? 'a' : 'b')
    pass(20_000)
  }
  expect(stored).toEqual(['a', 'b'])
})

test('a rollback takes effect once no process of the newer catalogue has run for five minutes', () => {
  const { start, stop, pass, stored } = fleet()
  start('a')
  pass(10_000)
  start('b')
  pass(10_000)
  stop('b')
  pass(FORGET_EDITION_MS - 60_000)
  expect(stored).toEqual(['a', 'b'])
  pass(2 * DECLARE_EVERY_MS + 20_000)
  expect(stored).toEqual(['a', 'b', 'a'])
})

const step = fc.oneof(
  fc.record({ kind: fc.constantFrom('start' as const, 'stop' as const), digest: fc.constantFrom('a', 'b', 'c') }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 400 }).map((s) => s * 1_000) }),
)

test('whichever processes start and stop, the newest definition that a running process declares is stored in the end, and no definition is stored twice in a row', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { start, stop, pass, stored, runs, isEmpty } = fleet()
      for (const each of steps) {
        if (each.kind === 'pass') pass(each.ms)
        else if (each.kind === 'start') start(each.digest)
        else if (runs(each.digest)) stop(each.digest)
      }
      if (isEmpty()) return
      pass(FORGET_EDITION_MS + 2 * DECLARE_EVERY_MS)
      const settled = stored.length
      expect(runs(stored.at(-1) ?? '')).toBe(true)
      expect(stored.every((digest, i) => digest !== stored[i - 1])).toBe(true)
      // A deploy of a further definition wins against all that run.
      start('new')
      pass(3 * FORGET_EDITION_MS)
      expect(stored.slice(settled)).toEqual(['new'])
    }),
  )
})
