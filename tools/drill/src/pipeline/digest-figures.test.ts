// Tests that what is missing from a run, what is there twice, and what is counted wrongly shows in the figures.
import type { RunView } from '@bullpen/contract'
import { expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { digestFigures, type EndedRun } from './digest-figures.ts'

const PRINTED = 'aa  /f/0\nbb  /f/1\n'

const digest = (of: number, id = `drill-files-${of}`): Effect[] =>
  (['start', 'end'] as const).map((what) => ({ what, id, fencingToken: 1, worker: 'w1', at: 0, of }))

function ended(changes: {
  readonly text?: string
  readonly misordered?: number
  readonly results?: number
  readonly failed?: number
  readonly ordered?: boolean
  readonly effects?: readonly Effect[]
}): EndedRun {
  const { text = PRINTED, misordered = 0, results = 2, failed = 0, ordered = true } = changes
  const stage = { waiting: 0, running: 0, completed: 2, dropped: 0, failed }
  const view = { source: { emitted: 2 }, stages: [stage], results, errors: 0, output: { text, misordered } }
  return {
    view: view as unknown as RunView,
    isOrdered: ordered,
    effects: changes.effects ?? [...digest(0), ...digest(1)],
  }
}

const GOOD = {
  ...{ accepted: 2, lost: 0, duplicated: 0, linesWrong: 0, runsMiscounted: 0, misordered: 0, undigested: 0 },
  effectsRepeated: 0,
}

it.each([
  ['a run that prints what md5sum prints', {}, {}],
  ['a missing file', { text: 'aa  /f/0\n' }, { lost: 1 }],
  ['a file that is there twice', { text: `${PRINTED}bb  /f/1\n` }, { duplicated: 1 }],
  ['a wrong digest', { text: 'aa  /f/0\ncc  /f/1\n' }, { lost: 1, linesWrong: 1 }],
  ['a result that was counted twice', { results: 3 }, { runsMiscounted: 1 }],
  ['an item that failed', { failed: 1 }, { runsMiscounted: 1 }],
  ['results in the wrong order', { misordered: 1 }, { misordered: 1 }],
  ['results of an unordered run', { misordered: 1, ordered: false }, {}],
  ['a file without a digest in the ledger', { effects: digest(0) }, { undigested: 1 }],
  ['a file that was digested twice', { effects: [...digest(0), ...digest(1), ...digest(1)] }, { effectsRepeated: 1 }],
])('the figures show %s', (_, changes, expected) => {
  expect(digestFigures([ended(changes)], PRINTED)).toEqual({ ...GOOD, ...expected })
})

it('the figures of several runs are added up', () => {
  expect(digestFigures([ended({}), ended({ text: '' })], PRINTED)).toMatchObject({ accepted: 4, lost: 2 })
})
