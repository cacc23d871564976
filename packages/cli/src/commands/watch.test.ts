// bullpen watch against an API whose streams the tests define.
import { expect, it } from 'vitest'
import { run } from '../capture.fixture.ts'
import { fakeApi, ID, problem } from '../fake-api.fixture.ts'

const HEADERS = { 'content-type': 'text/event-stream' }
const about = { at: '2030-01-01T10:00:00.000Z', queue: 'cpu', taskId: ID, task: 'math.factorial' }
const attempt = { attempt: 1, fencingToken: 1 }

const EVENTS = [
  { type: 'enqueued', id: '1-0', ...about },
  { type: 'started', id: '2-0', ...about, ...attempt, worker: 'host:7' },
  { type: 'log', id: '3-0', ...about, ...attempt, line: 1, level: 'info', message: 'half way', fields: { n: 5 } },
  { type: 'progress', id: '4-0', ...about, ...attempt, fraction: 0.5, note: 'half' },
]
const COMPLETED = { type: 'ended', id: '5-0', ...about, ...attempt, outcome: 'succeeded', status: 'completed' }
const DEAD = {
  ...{ type: 'ended', id: '5-0', ...about, ...attempt, outcome: 'failed', status: 'dead' },
  error: { code: 'gone', message: 'not there' },
}
const stream = (events: readonly object[]) =>
  [200, events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''), HEADERS] as const

it('prints one line for each event until the task has completed', async () => {
  await using api = await fakeApi({ [`GET /v1/tasks/${ID}/events`]: stream([...EVENTS, COMPLETED]) })
  const { code, out } = await run(api, ['watch', ID])
  expect(code).toBe(0)
  expect(out.trimEnd().split('\n')).toEqual([
    '10:00:00.000  enqueued',
    '10:00:00.000  started  attempt 1 on host:7',
    '10:00:00.000  log  info  half way  {"n":5}',
    '10:00:00.000  progress  50 %  half',
    '10:00:00.000  ended  completed',
  ])
})

it('exits with 1 if the task has ended without completing', async () => {
  await using api = await fakeApi({ [`GET /v1/tasks/${ID}/events`]: stream([...EVENTS, DEAD]) })
  const { code, out } = await run(api, ['watch', ID])
  expect(code).toBe(1)
  expect(out).toContain('ended  dead  gone: not there')
})

it('prints each event as a line of JSON', async () => {
  await using api = await fakeApi({ [`GET /v1/tasks/${ID}/events`]: stream([...EVENTS, COMPLETED]) })
  const { out } = await run(api, ['watch', ID, '--json'])
  expect(
    out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([...EVENTS, COMPLETED])
})

it.each([
  ['completed', 0],
  ['failed', 1],
] as const)('prints the events of a group that has %s until its end, and exits with %i', async (result, expected) => {
  const id = `group-${'0'.repeat(26)}`
  const statuses = { completed: 1, dead: result === 'failed' ? 1 : 0, cancelled: 0, expired: 0, removed: 0 }
  const times = { createdAt: about.at, timeoutAt: about.at, sealedAt: about.at, endedAt: about.at }
  const group = { id, state: 'ended', result, count: 2, ended: 2, statuses, queues: ['cpu'], by: 'ann', ...times }
  const events = [
    { ...COMPLETED, group: { id, member: 0 } },
    { type: 'group_ended', id: 'cpu:6-0', group },
  ]
  await using api = await fakeApi({ [`GET /v1/groups/${id}/events`]: stream(events) })
  const { code, out } = await run(api, ['watch', '--group', id])
  expect(code).toBe(expected)
  expect(out).toContain(
    `10:00:00.000  ${ID}  math.factorial  ended  completed\n${id}  ${result}\nmembers    2 members, 2 ended`,
  )
})

it('needs either the id of a task, a group, a queue or a tag', async () => {
  await using api = await fakeApi()
  for (const args of [
    [],
    [ID, '--queue', 'cpu'],
    [ID, '--group', 'group-1'],
    ['--queue', 'cpu', '--tag', 'a'],
    ['--tag', 'a', '--tag', 'b'],
  ]) {
    const { code, err } = await run(api, ['watch', ...args])
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('specify one of: the id of a task, --group, --queue or --tag'),
    ])
  }
  expect(api.seen).toEqual([])
})

it('streams a queue and a tag, and reports a rejection', async () => {
  await using api = await fakeApi({
    'GET /v1/queues/cpu/events': problem('no_events', 409, { detail: 'no events here' }),
  })
  const { code, err } = await run(api, ['watch', '--queue', 'cpu'])
  expect([code, err]).toEqual([3, expect.stringContaining('no events here')])
  await run(api, ['watch', '--tag', 'batch:7'])
  expect(api.seen.map(({ request }) => request)).toEqual(['GET /v1/queues/cpu/events', 'GET /v1/events?tag=batch%3A7'])
})
