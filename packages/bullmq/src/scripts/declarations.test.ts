// Every script declares itself to Redis: with `#!lua`, so that a cluster refuses a second hash slot, and with the flags of its kind.
import { expect, it } from 'vitest'
import { bullmqScripts, FLAGGED, REPLACED } from '../store/bullmq-scripts.ts'
import { ownScripts, scripts } from './all-scripts.fixture.ts'

function namesWith(firstLine: string): string[] {
  return [...scripts].flatMap(([name, lua]) => (lua.split('\n')[0] === firstLine ? [name.replace('bullpen:', '')] : []))
}

it('every script, also each one of BullMQ that writes, begins with #!lua', () => {
  expect(ownScripts.length).toBeGreaterThan(20)
  expect([...scripts].filter(([, lua]) => !lua.startsWith('#!lua')).map(([name]) => name)).toEqual([])
})

it('only a script that adds something new is refused by a full Redis', () => {
  expect(namesWith('#!lua').toSorted()).toEqual([
    ...['add', 'add-job', 'add-jobs', 'add-members', 'add-scheduler', 'addLog'],
    'claim-namespace',
    'create-group',
    'emit-items',
    'run-schedule',
    'start-run',
  ])
})

it('every script that fetches, ends, requeues, renews or cancels runs in a full Redis', () => {
  expect(namesWith('#!lua flags=allow-oom')).toEqual(
    expect.arrayContaining([
      // fetch, and end or requeue an attempt
      ...['end-and-start', 'recover', 'wait-for-children', 'updateProgress', 'keep-step'],
      // what a running task stores
      ...['register-task', 'write-events'],
      // renew locks
      'renew-locks',
      // cancel and expire
      ...['cancel-task', 'cancel-page', 'begin-pass', 'store-rule', 'read-rules', 'acknowledge-rule', 'forget-rules'],
      ...['expire-tasks'],
      // create, change, pause and delete schedules
      ...['write-schedule'],
      // retry, start early, delete
      ...['retry-ended', 'return-jobs', 'promote-task', 'change-delay', 'change-priority', 'remove-job', 'clean-jobs'],
      ...['drain-queue', 'obliterate-queue', 'pause-queue', 'remove-old'],
    ]),
  )
})

it('BullMQ’s scripts that run as they are, without flags, only read', () => {
  const unsent = (name: string) => REPLACED.includes(name) || name.startsWith('relay')
  const plain = bullmqScripts().filter(({ name }) => !FLAGGED.has(name) && !unsent(name))
  expect(plain.map(({ name }) => name).toSorted()).toEqual([
    ...[
      'getCounts',
      'getCountsPerPriority',
      'getDependencyCounts',
      'getJobScheduler',
      'getJobs',
      'getMetrics',
      'getRanges',
    ],
    // Deletes the counter of the rate limit when it is over, which needs no memory.
    'getRateLimitTtl',
    ...['getState', 'getStateV2', 'isFinished', 'isJobInList', 'isMaxed', 'paginate'],
  ])
})

it('a script that only reads says so, and every other one runs in a full Redis', () => {
  const others = [...namesWith('#!lua'), ...namesWith('#!lua flags=allow-oom'), ...namesWith('#!lua flags=no-writes')]
  expect(others).toHaveLength(scripts.size)
  expect(namesWith('#!lua flags=no-writes').length).toBeGreaterThan(0)
})
