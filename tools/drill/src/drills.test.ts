// Runs every drill at small scale: no task is lost or completed twice, no attempt is used up, and interrupted tasks run again.
import { describe, expect, inject, it } from 'vitest'
import { runDrill } from './drill.ts'
import { DOCKER_DRILLS, DRILLS } from './drills.ts'

/**
 * Other tests run at the same time, so that times are judged by `npm run drill` alone. A time that was not measured is a miss: the
 * drill's faults hit nothing.
 */
const isTime = (missed: string): boolean => /^\w+Ms [\d.]+, /.test(missed)

// The drills `autoscale` and `stuck` take minutes even at small scale, because an autoscaler waits before it removes workers, and a
// diagnosis until it calls a task late. Their parts have tests of their own.
// Three drills run on a single Redis and on a Redis Cluster. A small run has one of each two, because the conformance suites run on both.
const TWINS = inject('scale') === 'full' ? [['kill-cluster', 'followup'], ['group-cluster']] : []

// Only two or three drills run at once. They mostly wait, but their processes need the processor when they start.
describe.each([
  { together: ['kill', 'deploy'] },
  { together: ['long', 'cutoff'] },
  { together: ['block', 'clocks'] },
  { together: ['cancel', 'receipts', 'pipeline'] },
  { together: ['leader', 'idempotent'] },
  { together: ['full', 'limit'] },
  { together: ['outage', 'exactness', 'group'] },
  { together: ['schedule', 'poison', 'fairness'] },
  { together: ['retry-dead', 'followup-cluster', 'compensation'] },
  { together: ['failover', 'silent', 'cutover'] },
  ...TWINS.map((together) => ({ together })),
])('drills', ({ together }) => {
  it.concurrent.each(together)(
    'drill %s meets its targets at small scale, times aside',
    async (name) => {
      const drill = DRILLS.get(name)
      const report = drill && (await runDrill(drill, { scale: 'small', seed: 1, peer: false }))
      expect(report?.missed.filter((missed) => !isTime(missed))).toEqual([])
    },
    900_000,
  )
})

it('drills that need Docker are listed apart from the others', () => {
  expect([...DOCKER_DRILLS.keys()]).toEqual(['containers'])
  expect([...DRILLS.keys()]).toEqual([
    'kill',
    'kill-cluster',
    'deploy',
    'long',
    'cutoff',
    'block',
    'clocks',
    'cancel',
    'leader',
    'idempotent',
    'receipts',
    'full',
    'limit',
    'outage',
    'failover',
    'silent',
    'schedule',
    'poison',
    'retry-dead',
    'group',
    'group-cluster',
    'compensation',
    'followup',
    'followup-cluster',
    'pipeline',
    'fairness',
    'exactness',
    'autoscale',
    'stuck',
    'cutover',
  ])
})
