// drain.md has a row for every mode and every kind of task, each with a test that is really there.
import { DRAIN_MODES } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { rows, section } from './markdown-tables.ts'

const KINDS = [
  'runs, short',
  'runs, long, listens',
  'runs, long, does not listen',
  'taken, not started',
  'waiting',
  'scheduled',
  'retrying',
]
const table = rows(section('drain.md', 'What becomes of a task'))

it('says for every mode, and a crash, what becomes of every kind of task', () => {
  const wanted = [...DRAIN_MODES, 'crash'].flatMap((mode) => KINDS.map((kind) => `${mode}: ${kind}`))
  expect(table.map(([mode, kind]) => `${mode}: ${kind}`)).toEqual(wanted)
})

it('tells of every mode what it is', () => {
  expect(rows(section('drain.md', 'Draining')).map(([mode]) => mode)).toEqual([...DRAIN_MODES])
})
