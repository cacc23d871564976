// The positions at which Bullpen reads or replaces what BullMQ sends to a script. They are read from the pinned arguments, which
// interior.test.ts compares with what the installed BullMQ sends.

import { expect, it } from 'vitest'
import { PINNED } from './pinned-table.fixture.ts'

/** Every call of a script, since some are sent in several ways. */
function callsOf(script: string): (readonly string[])[] {
  const calls = Object.entries(PINNED.arguments).filter(([label]) => label.split(' ')[0] === script)
  expect(calls.length).toBeGreaterThan(0)
  return calls.map(([, args]) => args)
}

/** The element that a script reads as `ARGV[number]`. */
function argv(script: string, number: number): (string | undefined)[] {
  const keys = PINNED.scripts[script]?.keys ?? 0
  return callsOf(script).map((args) => args[keys + number - 1])
}

it('an add has the id and the data of the job where Bullpen stores them', () => {
  for (const script of ['addStandardJob', 'addDelayedJob', 'addPrioritizedJob', 'addParentJob']) {
    expect(argv(script, 1)).toEqual([expect.stringMatching(/^packed \[:, <id>, <name>, <added>, /)])
    expect(argv(script, 2)).toEqual(['<data>'])
  }
})
