// Tests that the figures of the drill `limit` report every way in which a task and its response can differ.
import { expect, test } from 'vitest'
import type { ApiProcess } from '../environment/api-processes.ts'
import type { Call, Outcome } from './caller.ts'
import { type LimitLedger, limitFigures } from './limit-figures.ts'

const [one, two] = [{}, {}] as [ApiProcess, ApiProcess]
const call = (name: string, outcome: Outcome, api = one, endedAt = 100): Call => ({ name, api, outcome, endedAt })

const good: LimitLedger = {
  calls: [
    call('1', { kind: 'accepted', id: 'a' }),
    call('2', { kind: 'refused' }),
    call('3', { kind: 'unknown', id: 'c' }),
    call('4', { kind: 'unknown', id: 'd' }),
    call('5', { kind: 'no_response' }),
  ],
  stored: new Map([
    ['a', '1'],
    ['c', '3'],
    ['e', '5'],
  ]),
  faults: [{ api: one, from: 50, to: 150 }],
  mostTasks: 3,
  room: { releasesMs: [1, 2.25, 9], lines: [['a', 'e'], ['c']], storedInOrder: ['a', 'c', 'e'] },
}

test('a ledger in which every stored task is explained misses nothing', () => {
  expect(limitFigures(good)).toMatchObject({
    accepted: 1,
    lost: 0,
    duplicated: 0,
    eventsMissed: 0,
    failed: 0,
    mostTasks: 3,
    refused: 1,
    unknownOutcomes: 3,
    storedUnknown: 2,
    storedUnexplained: 0,
    storedUnnamed: 0,
    faultsWithoutEffect: 0,
    overtaken: 0,
    roomP50Ms: 2.3,
    roomP99Ms: 9,
  })
})

test.each([
  ['an accepted task that is gone', { stored: new Map([['c', '3']]) }, { lost: 1 }],
  ['a second task of one call', { stored: new Map([...good.stored, ['f', '3']]) }, { duplicated: 1, storedUnnamed: 1 }],
  ['a task that was refused', { stored: new Map([...good.stored, ['f', '2']]) }, { storedUnexplained: 1 }],
  ['a task of no call', { stored: new Map([...good.stored, ['f', '9']]) }, { storedUnexplained: 1 }],
  [
    'a task that is stored under another id than the accepted one',
    { stored: new Map([['b', '1']]) },
    { lost: 1, storedUnexplained: 1 },
  ],
  [
    'a response that names no id, although the task is stored',
    { calls: [call('1', { kind: 'unknown', id: undefined })], stored: new Map([['a', '1']]) },
    { storedUnnamed: 1 },
  ],
  ['a fault of another process', { faults: [{ api: two, from: 50, to: 150 }] }, { faultsWithoutEffect: 1 }],
  ['a fault at another time', { faults: [{ api: one, from: 101, to: 150 }] }, { faultsWithoutEffect: 1 }],
  ['a caller that was overtaken', { room: { ...good.room, lines: [['e', 'a']] } }, { overtaken: 1 }],
  [
    'room in which no task was stored',
    { room: { ...good.room, releasesMs: [1, Number.POSITIVE_INFINITY] } },
    { roomP99Ms: Number.POSITIVE_INFINITY },
  ],
])('%s is reported', (_, changes, figures) => {
  expect(limitFigures({ ...good, ...changes })).toMatchObject(figures)
})
