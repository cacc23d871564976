// Tests bullpen schedules against the real API and a real Redis.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { type Catalogue, defineCatalogue, defineSchedule, defineTask } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { expect, inject, onTestFinished, test } from 'vitest'
import { run } from '../../capture.fixture.ts'
import { FAKE_KEY } from '../../fake-api.fixture.ts'

/** Built from schemas of the contract, because the CLI does not depend on zod. */
const count = defineTask({ name: 'task.count', queue: 'cpu', input: taskViewSchema.pick({ fencingToken: true }) })
const nightly = defineSchedule({ name: 'nightly', task: count, input: { fencingToken: 1 }, cron: '0 3 * * *' })

async function startApi(catalogue: Catalogue) {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const config = { redisUrl: inject('redisUrl'), keys: [FAKE_KEY], port: 0, metricsPort: 0, namespace }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const api = await createApi({ catalogue, config, log: silent })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  return (...args: string[]) => run({ url }, ['schedules', ...args])
}

test('schedules are stored, listed, shown, paused, resumed, run and deleted', async () => {
  const schedules = await startApi(defineCatalogue(count))
  expect(await schedules()).toMatchObject({ code: 0, out: '', err: 'there are no schedules\n' })

  const settings = ['--task', 'task.count', '--input', '{"fencingToken":2}', '--cron', '0 0 1 1 *', '--time-zone']
  const put = await schedules('put', 'yearly', ...settings, 'Europe/Berlin', '--overlap', 'queue', '--catch-up', '5')
  expect(put).toMatchObject({ code: 0, err: '' })
  expect(put.out).toMatch(/^yearly {2}created\n/)
  expect((await schedules('put', 'yearly', ...settings, 'UTC')).out).toMatch(/^yearly {2}changed\n/)

  expect((await schedules('list')).out).toMatch(/yearly +0 0 1 1 \* \(UTC\) +task\.count +in \d+d +active/)
  const shown = JSON.parse((await schedules('show', 'yearly', '--next', '2', '--json')).out)
  expect(shown).toMatchObject({ name: 'yearly', cron: '0 0 1 1 *', overlap: 'skip', input: { fencingToken: 2 } })
  expect(shown.nextTicks).toHaveLength(2)

  expect((await schedules('pause', 'yearly', '--by', 'ann')).out).toBe('yearly  paused\n')
  expect((await schedules('show', 'yearly')).out).toMatch(/paused {4}.* by ann \(key/)
  expect((await schedules('run', 'yearly')).out).toMatch(/^cpu-\w{26} {2}waiting\n$/)
  expect((await schedules('resume', 'yearly')).out).toBe('yearly  active\n')
  expect((await schedules('list')).out).toMatch(/waiting .* ago +active/)
  expect((await schedules('list', '--trouble')).err).toBe('no schedule is in trouble\n')
  expect((await schedules('delete', 'yearly')).out).toBe('yearly  deleted\n')
  expect(await schedules('show', 'yearly')).toMatchObject({ code: 3 })
})

test('a sync prints the differences from the catalogue, and a dry run exits with 1', async () => {
  const schedules = await startApi(defineCatalogue(count, nightly))
  // The API stores the schedule when it starts. What a command deletes stays deleted until a sync.
  while ((await schedules('delete', 'nightly')).code !== 0);
  expect(await schedules('sync', '--dry-run')).toMatchObject({
    code: 1,
    out: 'would be created  nightly (queue cpu)\n',
  })
  expect(await schedules('sync')).toMatchObject({ code: 0, out: 'created  nightly (queue cpu)\n' })
  expect(await schedules('sync', '--dry-run')).toMatchObject({
    code: 0,
    out: '',
    err: "the stored schedules match the catalogue's\n",
  })
  await schedules('put', 'nightly', '--task', 'task.count', '--input', '{"fencingToken":1}', '--cron', '0 4 * * *')
  expect((await schedules('sync')).out).toBe('changed  nightly (queue cpu)\n  cron: "0 4 * * *" → "0 3 * * *"\n')
})

test.each([
  [['stop'], "ACTION is 'stop'; expected one of list, show"],
  [['show'], 'missing argument; expected bullpen schedules show NAME'],
  [['sync', 'nightly'], "unexpected argument 'nightly'"],
  [['pause', 'nightly', '--cron', '* * * * *'], "'bullpen schedules pause' does not accept --cron"],
  [['put', 'x', '--every', '1h'], 'missing option --task TASK'],
  [['put', 'x', '--task', 'a.b'], 'missing option --cron or --every'],
  [['put', 'x', '--task', 'a.b', '--every', '1h', '--input', '{bad'], '--input is not valid JSON: Expected property'],
  [['put', 'x', '--task', 'a.b', '--every', '1h', '--catch-up', 'all'], "--catch-up is 'all'; expected skip, one"],
  [['put', 'x', '--task', 'a.b', '--every', '1h', '--overlap', 'both'], "--overlap is 'both'; expected one of skip"],
])('bullpen schedules %j is refused before anything is sent', async (args, message) => {
  const refused = await run({ url: 'http://127.0.0.1:1' }, ['schedules', ...args])
  expect(refused).toMatchObject({ code: 2 })
  expect(refused.err).toContain(message)
})
