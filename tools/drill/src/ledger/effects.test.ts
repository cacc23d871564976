// Tests that the ledger of effects is read in the order in which it was written, and that a malformed line is rejected.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { appendTo, type Effect, readEffects } from './effects.ts'

it('the ledger returns the effects of several writers in order', () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-effects-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'effects.log')
  const effects: Effect[] = [
    { what: 'start', id: 'drill-1', fencingToken: 1, worker: 'w1', at: 5 },
    { what: 'start', id: 'drill-1', fencingToken: 2, worker: 'w2', at: 9 },
    { what: 'signal', id: 'drill-1', fencingToken: 1, worker: 'w1', at: 10, machineMs: 7.25 },
    { what: 'end', id: 'drill-1', fencingToken: 2, worker: 'w2', at: 12 },
    { what: 'failure', id: 'drill-after-1', fencingToken: 1, worker: 'w1', at: 13, of: 7 },
  ]
  const writers = [appendTo(file), appendTo(file)]
  for (const [i, effect] of effects.entries()) writers[i % 2]?.(effect)
  expect(readEffects(readFileSync(file, 'utf8'))).toEqual(effects)
})

it.each(['begin drill-1 1 w1 5', 'start drill-1 1 w1', 'start drill-1 1 w1 5 6 7'])(
  'the ledger refuses the line %s',
  (line) => {
    expect(() => readEffects(`${line}\n`)).toThrow(line)
  },
)
