// Tests bullpen limits against a fake API: requests, output and exit codes.
import type { LimitsView } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { run } from '../../capture.fixture.ts'
import { type Answer, fakeApi, problem } from '../../fake-api.fixture.ts'
import { LIMITS } from '../../fleet.fixture.ts'

const PATH = 'GET /v1/queues/reports/limits'
const ok = (body: LimitsView): Answer => [200, body]

test('each limit is shown with what has set it, each breaker with its state, and each key with what blocks it', async () => {
  const page = { ...LIMITS, keys: { ...LIMITS.keys, next: 'more' } }
  await using api = await fakeApi({ [`${PATH}?sort=active&limit=2`]: ok(page) })
  const { code, out, err } = await run(api, ['limits', '--queue', 'reports', '--sort', 'active', '--limit', '2'])
  expect(code).toBe(0)
  expect(
    out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/).join(' | ')),
  ).toEqual([
    'reports: paused, 98001 tasks of 2 concurrency keys wait',
    '',
    'limit | value | set by',
    'concurrency | 10 | command',
    'max bytes | 64MiB | definition',
    'enqueue rate per API key | 100/1s | definition',
    'unfinished tasks of API key shop | 8 | command',
    'concurrency per key | 2 | definition',
    'rate per key | 100/1m | command',
    'concurrency of gold | 4 | command',
    'concurrency of reports.render | 5, 5 in use | command',
    'permits db | 10, 3 in use | definition',
    'weight of gold | 3 | definition',
    'and 3 more limits of single keys',
    '',
    'service | state | since | calls | failed | slow',
    'smtp | open | 30s ago | - | - | - | next probe in 30s',
    '',
    'key | waiting | active | rate | weight | blocked by | next start',
    'gold | 98000 | 4/4 | 100/1m with bursts of 10 | 3 | concurrency, rate | in 3s',
    String.raw`"a\u001b[2J b" | 1 | 0 | - | 1 | -`,
  ])
  expect(err).toBe('stopped after 2 keys; there are more, so use a higher --limit or --concurrency-key\n')
})

test('the longest listing is not told to be longer', async () => {
  const page = { ...LIMITS, keys: { ...LIMITS.keys, next: 'more' } }
  await using api = await fakeApi({ [`${PATH}?limit=200`]: ok(page) })
  const { err } = await run(api, ['limits', '--queue', 'reports', '--limit', '200'])
  expect(err).toContain('use --concurrency-key, or the cursor of GET /v1/queues/{queue}/limits')
})

test('a single key is requested by its name, and --json prints the response unchanged', async () => {
  await using api = await fakeApi({ [`${PATH}?concurrencyKey=a+%26%22b%22`]: ok(LIMITS) })
  const { out, err } = await run(api, ['limits', '--queue', 'reports', '--concurrency-key', 'a &"b"', '--json'])
  expect([JSON.parse(out), err]).toEqual([LIMITS, ''])
})

test('a queue without turns, limits and tasks is shown in one line, and an unknown queue is an error', async () => {
  const keys = { waitingKeys: 0, waitingTasks: 0, exact: false, items: [] }
  await using api = await fakeApi({
    [PATH]: ok({ ...LIMITS, paused: false, takesTurns: false, limits: {}, breakers: undefined, keys }),
    'GET /v1/queues/other/limits': problem('queue_not_found', 404, { detail: 'did you mean reports?' }),
  })
  const { out, err } = await run(api, ['limits', '--queue', 'reports'])
  expect(out).toBe('reports: no fairness\n')
  expect(err).toContain('some keys may be missing')
  expect(await run(api, ['limits', '--queue', 'other'])).toMatchObject({
    code: 3,
    err: expect.stringContaining('mean'),
  })
})

test.each([
  [[], 'missing option --queue QUEUE'],
  [['--queue', 'reports', '--sort', 'size'], "--sort is 'size'; expected one of backlog, active"],
  [['--queue', 'reports', '--limit', '201'], "--limit is '201'; expected a whole number from 1 to 200"],
  [['--queue', 'reports', '--concurrency-key', 'a', '--sort', 'active'], '--concurrency-key selects a single key'],
  [['--queue', 'reports', '--concurrency-key', ''], 'missing option --concurrency-key KEY'],
])('the arguments %j are refused', async (args, message) => {
  const { code, err } = await run({ url: 'http://127.0.0.1:1' }, ['limits', ...args])
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
})
