// Tests what the figures of a cut-over say of jobs that are lost, run twice or end otherwise than they should.
import { expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { type CutoverLedger, cutoverFigures } from './cutover-figures.ts'
import type { JobEnd, Outcome, PlainJob } from './plain-jobs.ts'

const DEATH_AT = 10_000

function attempt(id: string, fencingToken: number, at: number, last: 'end' | 'failure' | undefined, worker = 'w1') {
  const effect = { id, fencingToken, worker, at } as const
  const start: Effect = { ...effect, what: 'start' }
  return last === undefined ? [start] : [start, { ...effect, what: last }]
}

const end = (outcome: JobEnd['outcome'], attemptsMade = 1): JobEnd => ({ outcome, attemptsMade })

const planned = (outcome: Outcome, fails = false): Pick<PlainJob, 'outcome' | 'fails'> => ({ outcome, fails })

/** Three jobs: one that completes, one that is retried, and one that was interrupted by the death of its worker. */
function ledger(change: Partial<CutoverLedger> = {}): CutoverLedger {
  return {
    jobs: new Map((['plain', 'retried', 'killed'] as const).map((id) => [id, planned('completed', id === 'retried')])),
    found: new Map([
      ['plain', end('completed')],
      ['retried', end('completed', 2)],
      ['killed', end('completed')],
    ]),
    effects: [
      ...attempt('plain', 1, 1, 'end'),
      ...attempt('retried', 1, 1, 'failure'),
      ...attempt('retried', 2, 600, 'end'),
      ...attempt('killed', 1, DEATH_AT - 1, undefined),
      ...attempt('killed', 2, DEATH_AT + 9, 'end', 'w2'),
    ],
    completions: new Map([
      ['plain', 1],
      ['retried', 1],
      ['killed', 1],
    ]),
    deaths: [{ worker: 'w1', at: DEATH_AT, unended: ['killed'] }],
    interruptions: [{ id: 'killed', worker: 'w1', at: DEATH_AT }],
    ...change,
  }
}

const RIGHT = {
  accepted: 3,
  lost: 0,
  duplicated: 0,
  failed: 0,
  restartedUnaffected: 0,
  effectsRepeated: 0,
  recoveryP99Ms: 9,
}

it('retries that a job asks for, and jobs that a killed worker ran, count as no fault', () => {
  expect(cutoverFigures(ledger())).toMatchObject(RIGHT)
})

const { jobs, found, effects } = ledger()

it('a job may run twice if the end that its killed worker had sent did not reach Redis, however early that was', () => {
  const twice = { effects: [...effects, ...attempt('plain', 2, DEATH_AT + 9, 'end', 'w2')] }
  const deaths = [{ worker: 'w1', at: DEATH_AT, unended: ['plain', 'killed'] }]
  expect(cutoverFigures(ledger({ ...twice, deaths }))).toMatchObject({ restartedUnaffected: 0, effectsRepeated: 1 })
  expect(cutoverFigures(ledger(twice))).toMatchObject({ restartedUnaffected: 1, effectsRepeated: 1 })
})

it.each([
  ['that has not ended is lost', { found: new Map([...found, ['plain', end('unfinished')]]) }, { lost: 1 }],
  [
    'that was removed without having run is lost',
    {
      jobs: new Map([...jobs, ['x', planned('removed')]]),
      found: new Map([...found, ['x', end('removed')]]),
    },
    { lost: 1, accepted: 4 },
  ],
  [
    'that was kept although it should have been removed ends wrongly',
    { jobs: new Map([...jobs, ['plain', planned('removed')]]) },
    { failed: 1 },
  ],
  [
    'that fails although it should complete ends wrongly',
    { found: new Map([...found, ['plain', end('failed')]]) },
    { failed: 1 },
  ],
  [
    'that runs twice in living workers is counted',
    { effects: [...effects, ...attempt('plain', 2, 2, 'end', 'w2')] },
    { restartedUnaffected: 1, effectsRepeated: 1 },
  ],
  [
    'that completes twice is counted',
    { completions: new Map([...ledger().completions, ['plain', 2]]) },
    { duplicated: 1 },
  ],
])('a job %s', (_name, change, figures) => {
  expect(cutoverFigures(ledger(change))).toMatchObject({ ...RIGHT, ...figures })
})

it('a job may complete although its first attempt should have failed if that attempt was interrupted, or never began', () => {
  const failing = new Map([...jobs, ['killed', planned('failed', true)]])
  expect(cutoverFigures(ledger({ jobs: failing }))).toMatchObject(RIGHT)
  const fetched = {
    jobs: new Map([...jobs, ['plain', planned('failed', true)]]),
    effects: effects.with(0, { ...(attempt('plain', 2, 1, undefined)[0] as Effect) }),
  }
  expect(cutoverFigures(ledger(fetched))).toMatchObject({ failed: 0 })
  const failed = { jobs: failing, effects: [...effects, ...attempt('killed', 1, 1, 'failure')], deaths: [] }
  expect(cutoverFigures(ledger(failed))).toMatchObject({ failed: 1 })
})
