// Tests that an event that a reader has missed, an event that it has received twice and a gap are counted.
import { expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { eventFigures } from './event-reader.ts'

const about = { at: '2026-01-01T00:00:00.000Z', queue: 'drill', taskId: 'drill-a', task: 'drill.work' }
const attempt = { attempt: 1, fencingToken: 1 }
const enqueued = { type: 'enqueued', id: '1-0', ...about } as const
const started = { type: 'started', id: '2-0', ...about, ...attempt, worker: 'w1' } as const
const ended = { type: 'ended', id: '3-0', ...about, ...attempt, status: 'completed' } as const
const groupEnded = { type: 'group_ended' } as const
const gap = { type: 'gap' } as const
const snapshot = { type: 'snapshot' } as const
const start: Effect = { what: 'start', id: 'drill-a', fencingToken: 1, worker: 'w1', at: 0 }

it.each([
  { name: 'all events', events: [enqueued, started, ended, groupEnded], lost: 0, repeated: 0 },
  { name: 'no start', events: [enqueued, ended, groupEnded], lost: 1, repeated: 0 },
  { name: 'no end', events: [enqueued, started, groupEnded], lost: 1, repeated: 0 },
  { name: 'no end of the group', events: [enqueued, started, ended], lost: 1, repeated: 0 },
  { name: 'an end that comes twice', events: [enqueued, started, ended, ended, groupEnded], lost: 0, repeated: 1 },
  { name: 'a gap', events: [enqueued, started, gap, snapshot, ended, groupEnded], lost: 1, repeated: 0 },
])('a reader that has received $name has lost $lost and repeated $repeated', ({ events, lost, repeated }) => {
  const figures = eventFigures(events, ['drill-a'], [start])
  expect([figures.eventsLost, figures.eventsRepeated]).toEqual([lost, repeated])
})
