// The positions at which Bullpen reads or replaces what BullMQ sends to a script. They are read from the pinned arguments, which
// interior.test.ts compares with what the installed BullMQ sends.

import { expect, it } from 'vitest'
import { queueKeys } from '../../keys.ts'
import type { Commander } from '../../scripts/script.ts'
import { COMPOSED } from '../composition/composed-scripts.ts'
import { TIME_AT } from '../composition/scripts-clock.ts'
import { requeueLostTasks } from '../stalled-check.ts'
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

it.each([...TIME_AT])('%s has the time at position %i, and nowhere else', (script, at) => {
  for (const args of callsOf(script)) {
    expect(args.flatMap((arg, i) => (arg.includes('<now>') ? [i] : []))).toEqual([at])
  }
})

it('an add has the id and the data of the job where Bullpen stores them', () => {
  for (const script of ['addStandardJob', 'addDelayedJob', 'addPrioritizedJob', 'addParentJob']) {
    expect(argv(script, 1)).toEqual([expect.stringMatching(/^packed \[:, <id>, <name>, <added>, /)])
    expect(argv(script, 2)).toEqual(['<data>'])
  }
})

it("the leader's stalled check sends the keys and arguments that BullMQ sends, with a key of its own for the last check", async () => {
  const sent: unknown[][] = []
  const script = COMPOSED.get('moveStalledJobsToWait')
  const redis = {
    isCluster: true,
    defineCommand() {},
    [script?.name ?? '']: async (args: unknown[]) => void sent.push(args),
  }
  const keys = queueKeys('n', 'q')
  // A client that has only the command that this check sends, and records its arguments. A cluster's calls are not encoded here.
  await requeueLostTasks(redis as unknown as Commander, keys, { fencing: 7, now: 1 })
  const [own = []] = sent
  const theirs = callsOf('moveStalledJobsToWait')[0] ?? []
  const described = own.map((arg) =>
    typeof arg === 'string' && arg.startsWith(keys.base) ? arg.slice(keys.base.length - 1) : arg,
  )
  expect(described.slice(0, 9)).toEqual(
    theirs.slice(0, 9).map((key) => (key === ':stalled-check' ? keys.leaderCheck.slice(keys.base.length - 1) : key)),
  )
  expect(theirs.slice(9)).toEqual(['5', ':', '<now>', '5'])
  expect(described.slice(10, 12)).toEqual([':', 1])
})
