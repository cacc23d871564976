// Tests how the fleet is written for people.
import { expect, test } from 'vitest'
import { busy, fleetOf, idle, P1, pool, processOf, queueOf } from '../fleet.fixture.ts'
import { fleetLines } from './fleet-text.ts'

const look = { now: 0, paint: (style: string, text: string) => `<${style} ${text}>` }
const plainLook = { ...look, paint: (_: string, text: string) => text }

test('without a worker it is the queues, and a line that says so', () => {
  expect(fleetLines(fleetOf([]), undefined, look)).toEqual([
    'queue  busy  pools  state',
    'cpu    1/4   1      open',
    '',
    'no worker works here',
  ])
})

test('queues are told with what holds for their whole fleet', () => {
  const drain = { mode: 'light', since: '2026-01-01T00:09:30.000Z', command: 'c' } as const
  const limits = { concurrency: 4, rate: { max: 10, perMs: 60_000 } }
  const queues = [queueOf('files', { admission: 'closed', drain, paused: true, ...limits }), queueOf('cpu', limits)]
  expect(fleetLines(fleetOf([], queues), undefined, look).slice(1, 3)).toEqual([
    'files  1/4   1      <yellow closed: light drain, begun 30s ago, paused, at most 4 at once, at most 10 starts in 1m>',
    'cpu    1/4   1      open, at most 4 at once, at most 10 starts in 1m',
  ])
})

test('workers are told with what is odd of them and of their pools', () => {
  const odd = pool({
    queue: 'files',
    state: 'SHUTTING_DOWN',
    paused: true,
    stuckHandlers: 2,
    notReady: 'Redis is away',
  })
  const fleet = fleetOf([
    processOf(P1, { draining: true, skewMs: 1_500, pools: [pool(), odd] }),
    processOf('silent:1:x', { alive: false, seenAt: '2026-01-01T00:09:48.000Z', skewMs: -90_000, host: 'h' }),
  ])
  expect(fleetLines(fleet, undefined, look).slice(3)).toEqual([
    `${P1}  draining, up 10m, version 0.1.0, clock 1.5s ahead`,
    '  cpu    BG_RUNNING     1/4',
    '  files  <yellow SHUTTING_DOWN>  1/4  paused, 2 go on after their end, takes none: Redis is away',
    '<red silent:1:x>  silent for 12s, on h, version 0.1.0, clock 1m behind',
    '  cpu  BG_RUNNING  1/4',
  ])
})

test('slots stand below their pool, under the name that stop takes', () => {
  const slots = [busy(1, 30), idle(2), { ...busy(10, 5), state: 'TERMINATING_STOP_SIGNAL' as const }]
  const others = [
    { ...idle(3), worker: 'other' },
    { ...idle(4), queue: 'files' },
  ]
  expect(fleetLines(fleetOf([processOf(P1)]), [...slots, ...others], plainLook).slice(4)).toEqual([
    '  cpu  BG_RUNNING  1/4',
    `    ${P1}/cpu/1   WORKING                  30s  math.factorial  cpu-01jd3v7n8q0000000000000000`,
    `    ${P1}/cpu/2   IDLE                     1m`,
    `    ${P1}/cpu/10  TERMINATING_STOP_SIGNAL  5s   math.factorial  cpu-01jd3v7n8q0000000000000000`,
  ])
})

test('on a terminal of 80 columns nothing is cut, and no line is longer unless a single name is', () => {
  const long = 'bullpen-worker-7d9f8c6b5d-x2x9z:1:a3f84945'
  const limits = { concurrency: 4, rate: { max: 10, perMs: 60_000 }, paused: true }
  const pools = [pool({ paused: true, stuckHandlers: 2, notReady: 'more handlers go on than are allowed to' })]
  const fleet = fleetOf([processOf(long, { pools, skewMs: 5_000, draining: true })], [queueOf('cpu', limits)])
  const slots = [busy(1, 30), busy(2, 5)].map((slot) => ({ ...slot, worker: long }))
  const narrow = fleetLines(fleet, slots, { ...plainLook, columns: 80 })
  expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80)
  const words = (lines: readonly string[]) => lines.join(' ').split(/ +/)
  expect(words(narrow)).toEqual(words(fleetLines(fleet, slots, plainLook)))
})

test('names that would move a cursor do not', () => {
  const odd = 'über pod/1\u001b[2J\n\u009b1m'
  const fleet = fleetOf([processOf(odd, { host: '\u0007', version: '\u001b]0;x\u0007' })])
  const slots = [{ ...busy(1, 1, { task: 'a\u001b[1m' }), worker: odd }]
  const text = fleetLines(fleet, slots, plainLook).join('\n')
  expect(text).not.toMatch(/[\p{Cc}--\n]/v)
  expect(text).toContain('über pod/1 [2J 1m/cpu/1')
})
