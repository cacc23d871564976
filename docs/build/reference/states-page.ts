// Builds the reference page of the states of tasks, attempts, slots and pools.
import { ATTEMPT_STATE_LABELS, POOL_STATE_LABELS, SLOT_STATE_LABELS } from '@bullpen/contract'
import { END_REASONS, TASK_STATUSES } from '@bullpen/contract/internal'
import { ATTEMPT_TRANSITIONS, POOL_TRANSITIONS, SLOT_TRANSITIONS, type Transitions } from '@bullpen/engine/internal'
import { REASON_ADVICE } from '../attempt-reasons.ts'
import { code, page, table } from './markdown.ts'

function diagram(transitions: Transitions<string>): string {
  const arrows = Object.entries(transitions).flatMap(([from, followers]) =>
    followers.length === 0 ? [`${from} --> [*]`] : followers.map((to) => `${from} --> ${to}`),
  )
  return ['```mermaid', 'stateDiagram-v2', '    [*] --> NEW', ...arrows.map((arrow) => `    ${arrow}`), '```'].join(
    '\n',
  )
}

const labelTable = (labels: Readonly<Record<string, string>>): string =>
  table(
    ['state', 'label'],
    Object.entries(labels).map(([state, label]) => [code(state), label]),
  )

export function statesPage(): string {
  return page(
    'States',
    `
A task has a status. Each of its attempts, each slot that runs attempts, and each pool of slots has a state. The diagrams show all
permitted transitions. Any other transition is rejected with the error \`illegal_transition\`. Titles, tables and log messages show a
state's label, whereas the API and the metrics use its name. [States](../explanation/states.md) explains what the states mean in
practice.`,
    '## Status of a task',
    table(
      ['status', 'meaning', 'final'],
      TASK_STATUSES.map((status) => [code(status), ...STATUS_MEANINGS[status]]),
    ),
    '## Attempt',
    labelTable(ATTEMPT_STATE_LABELS),
    diagram(ATTEMPT_TRANSITIONS),
    '## Why an attempt ended',
    '`DONE_SUCCESS` does not have a reason. `DONE_ERROR` has the declared failure’s code instead.',
    table(
      ['state', 'reason', 'cause', 'what to do'],
      Object.entries(END_REASONS).flatMap(([state, reasons]) =>
        reasons.map((reason) => [code(state), code(reason), REASON_ADVICE[reason].cause, REASON_ADVICE[reason].action]),
      ),
    ),
    '## Slot',
    'A slot runs one attempt at a time.',
    labelTable(SLOT_STATE_LABELS),
    diagram(SLOT_TRANSITIONS),
    '## Pool',
    'A pool is the slots of one worker on one queue.',
    labelTable(POOL_STATE_LABELS),
    diagram(POOL_TRANSITIONS),
  )
}

const STATUS_MEANINGS: Readonly<Record<(typeof TASK_STATUSES)[number], readonly [string, string]>> = {
  scheduled: [
    'waiting for a time in the future, because of a delay or a snooze, or because a worker could not run the task',
    '',
  ],
  waiting: ['ready to run in the next free slot', ''],
  active: ['running in a slot', ''],
  retrying: ['an attempt failed; the next one starts at `dueAt`', ''],
  completed: ['succeeded; `output` is available', 'yes'],
  dead: ['no attempts are left, or the task failed permanently; `error` has the failure', 'yes'],
  cancelled: ['ended by request; this is not a failure', 'yes'],
  expired: ['not started within its queue timeout or its total timeout', 'yes'],
}
