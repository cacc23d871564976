// Describes the keys of a pipeline's run. All of them expire.
import type { RunKeys } from '../../keys.ts'
import type { KeyRow } from './key-row.ts'

type Row = KeyRow<RunKeys>

/** What most keys of a run have in common. */
const ofRun = {
  ends: 'deleted when the run ends; expires two days after its total timeout at the latest',
  expires: true,
} as const

/** What a run leaves after its end. */
const ofRecord = {
  ...ofRun,
  ends: 'expires when the run has been kept long enough after its end, and two days after its total timeout at the latest',
} as const

export const RUN_ROWS = {
  meta: { ...ofRecord, type: 'hash', holds: "a run's state, its counts and its output" },
  definition: { ...ofRecord, type: 'string', holds: "a run's settings and the templates of its tasks" },
  tasks: { ...ofRun, type: 'set', holds: "a run's tasks that have not ended" },
  inputs: {
    ...ofRun,
    type: 'hash',
    holds: 'the inputs of these tasks that are larger than 64 KiB',
    ends: 'a field is deleted when its task has ended and was counted; expires two days after the total timeout of the run at the latest',
  },
  waiting: { ...ofRun, type: 'list', parts: ['stage'], holds: 'the items of a run that wait for a stage or a batch' },
  early: { ...ofRun, type: 'hash', holds: 'the outputs of a run that wait for an earlier one' },
  results: { ...ofRun, type: 'list', holds: "a run's results, until the reduction has run" },
  errors: { ...ofRecord, type: 'list', holds: 'the stages and positions of the items of a run that have failed' },
  outbox: {
    ...ofRun,
    type: 'stream',
    holds: 'the tasks of a run that are not enqueued yet, and what follows from its end',
    ends: 'deleted when its last entry is delivered; expires with the other keys of the run',
  },
} as const satisfies Record<Exclude<keyof RunKeys, 'base'>, Row>
