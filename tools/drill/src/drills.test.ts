// Runs every drill at small scale: no task is lost or completed twice, no attempt is used up, and interrupted tasks run again.
import { describe, expect, it } from 'vitest'
import { runDrill } from './drill.ts'
import { DOCKER_DRILLS, DRILLS } from './drills.ts'

/** Other tests run at the same time, so that times are judged by `npm run drill` alone. */
const isTime = (missed: string): boolean => /^\w+Ms [\d.]+, /.test(missed)

// Only two drills run at once. They mostly wait, but their processes need the processor when they start.
describe.each([
  { pair: ['kill', 'deploy'] },
  { pair: ['long', 'cutoff'] },
  { pair: ['block', 'clocks'] },
  { pair: ['cancel', 'receipts'] },
  { pair: ['kill-cluster', 'leader'] },
  { pair: ['idempotent', 'full'] },
  { pair: ['limit', 'outage'] },
  { pair: ['schedule', 'poison'] },
  { pair: ['retry-dead', 'group'] },
  { pair: ['group-cluster', 'followup'] },
  { pair: ['followup-cluster', 'compensation'] },
])('drills', ({ pair }) => {
  it.concurrent.each(pair)(
    'drill %s meets its targets at small scale, times aside',
    async (name) => {
      const drill = DRILLS.get(name)
      const report = drill && (await runDrill(drill, { scale: 'small', seed: 1, peer: false }))
      expect(report?.missed.filter((missed) => !isTime(missed))).toEqual([])
    },
    120_000,
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
    'schedule',
    'poison',
    'retry-dead',
    'group',
    'group-cluster',
    'compensation',
    'followup',
    'followup-cluster',
  ])
})
