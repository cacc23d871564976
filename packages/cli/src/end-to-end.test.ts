// Tests the program against the real API and a real Redis.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'
import { run } from './capture.fixture.ts'
import { FAKE_KEY, MAIN } from './fake-api.fixture.ts'

/** Built from schemas of the contract, because the CLI does not depend on zod. */
const count = defineTask({
  name: 'task.count',
  queue: 'cpu',
  input: taskViewSchema.pick({ fencingToken: true }),
  output: taskViewSchema.pick({ attempts: true }),
})

async function startApi() {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const config = { redisUrl: inject('redisUrl'), keys: [FAKE_KEY], port: 0, metricsPort: 0, namespace }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const api = await createApi({ catalogue: defineCatalogue(count), config, log: silent })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const client = createClient({ transport: http(url, FAKE_KEY) })
  return {
    url,
    run: (...args: string[]) => run({ url }, args),
    waiting: async () => (await client.previewCancel({ queue: 'cpu' })).matching,
  }
}

test('tasks are enqueued, shown, listed and cancelled', async () => {
  const { run } = await startApi()

  const enqueued = await run('enqueue', 'task.count', '{"fencingToken":1}', '--delay', '1h', '--meta', 'a=b')
  expect(enqueued).toMatchObject({ code: 0, err: '' })
  const [id = ''] = enqueued.out.split(' ')
  const shown = JSON.parse((await run('show', id, '--json')).out)
  expect(shown).toMatchObject({ id, status: 'scheduled', input: { fencingToken: 1 }, meta: { a: 'b' } })
  const listed = await run('list', '--queue', 'cpu', '--status', 'scheduled', '--json')
  // A list does not say what each task waits for.
  const { waitsFor: _, ...others } = shown
  expect(JSON.parse(listed.out)).toEqual(others)
  expect(await run('cancel', id, '--wait', '1.5s')).toEqual({ code: 0, out: `${id}  cancelled\n`, err: '' })
  expect(await run('cancel', id)).toMatchObject({ code: 0 })
  expect(await run('show', id, '--wait', '1s')).toMatchObject({ code: 1, out: expect.stringContaining('cancelled') })

  const next = 'task.count={"fencingToken":2}'
  const followed = await run('enqueue', 'task.count', '{"fencingToken":1}', '--on-success', next, '--on-end', next)
  expect(await run('show', followed.out.split(' ')[0] ?? '')).toMatchObject({
    out: expect.stringMatching(/follow-ups +task\.count on success, task\.count on end/),
  })
  expect(await run('enqueue', 'task.count', '--on-end', 'task.count=')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--on-end is empty'),
  })

  const tagged = await run('enqueue', 'task.count', '{"fencingToken":1}', '--delay', '1h', '--tag', 'batch:7')
  const [taggedId = ''] = tagged.out.split(' ')
  expect(await run('cancel', '--queue', 'cpu', '--tag', 'batch:7', '--dry-run')).toMatchObject({
    code: 0,
    out: 'would cancel 1 task of cpu (tag batch:7)\n',
  })
  const many = await run(
    'cancel',
    '--queue',
    'cpu',
    '--task',
    'task.count',
    '--tag',
    'batch:7',
    '--yes',
    '--wait',
    '20s',
  )
  expect(many).toEqual({
    code: 0,
    out: expect.stringMatching(
      /^(cpu-\S+) {2}in effect: no matching task .*\n\1 {2}done: cancelled 1 task that had not started \(enqueued until \S+\)\n$/,
    ),
    err: '',
  })
  const ended = JSON.parse((await run('show', taggedId, '--json')).out)
  expect(ended).toMatchObject({
    status: 'cancelled',
    tags: ['batch:7'],
    attempts: [{ outcome: 'cancelled', error: { code: 'cancelled' }, by: expect.stringContaining('ann') }],
  })

  expect(await run('enqueue', 'task.conut')).toMatchObject({ code: 3, err: expect.stringContaining('task.count') })
  const misfit = await run('enqueue', 'task.count', '{"fencingToken":"x"}')
  expect(misfit).toMatchObject({
    code: 3,
    out: '',
    err: expect.stringMatching(/^bullpen: invalid_input: .*\/input\/fencingToken/),
  })
  expect(await run('list', '--queue', 'nope', '--status', 'dead')).toMatchObject({
    code: 3,
    err: expect.stringContaining('queue_not_found'),
  })
})

test('a queue without workers is limited, drained and resumed, and the audit lists every command', async () => {
  const { run } = await startApi()
  expect(await run('fleet')).toMatchObject({ code: 0, out: expect.stringContaining('no workers are running') })
  expect(await run('limit', '--queue', 'cpu', '--concurrency', '4', '--rate', '10/1m')).toMatchObject({
    code: 0,
    err: '',
  })
  expect(await run('drain', '--queue', 'cpu', '--wait', '5s')).toMatchObject({
    code: 0,
    out: expect.stringContaining('cpu: drained'),
  })
  const refused = await run('enqueue', 'task.count', '{"fencingToken":1}')
  expect(refused).toMatchObject({ code: 3, err: expect.stringContaining('queue_draining') })
  expect((await run('queues', '--queue', 'cpu')).out).toMatch(/^queue +waiting .*\ncpu +\d+ /)
  expect((await run('fleet', '--queue', 'cpu')).out).toMatch(
    /cpu +0\/0 +0 +draining \(soft_timeout\), started \S+ ago, at most 4 at once, at most 10 starts per 1m\n/,
  )
  expect(await run('resume', '--queue', 'cpu')).toMatchObject({
    code: 0,
    err: 'no running worker has a pool that matches the target\n',
  })
  expect(await run('enqueue', 'task.count', '{"fencingToken":1}')).toMatchObject({ code: 0 })
  const audit = (await run('audit')).out
  expect(audit).toMatch(
    /^.* done {2}resume cpu .* ann \(key [0-9a-f]{8}\) .*\n.* drain cpu, soft_timeout .*\n.* limit cpu, concurrency 4, rate 10\/1m .*\n$/,
  )
  const [id = ''] = /\S+$/.exec(audit.trimEnd()) ?? []
  expect(await run('audit', id, '--wait', '1s')).toMatchObject({ code: 0, out: expect.stringContaining('command ') })
  expect(await run('stop', 'nobody/cpu/1')).toMatchObject({
    code: 3,
    err: expect.stringContaining('no workers are running'),
  })
  expect(await run('pause', '--queue', 'cpv')).toMatchObject({ code: 3, err: expect.stringContaining('cpu') })
})

test('the tasks of a file are enqueued once, although the command is killed and repeated', async () => {
  const { url, waiting } = await startApi()
  const lines = Array.from({ length: 1_900 }, (_, i) => `{"fencingToken":${i}}\n`)
  const args = ['enqueue', 'task.count', '--bulk', '-', '--idempotency-key', 'import 7']
  const env = programEnv({ BULLPEN_API: url, BULLPEN_KEY: FAKE_KEY })
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['pipe', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  child.stdin.on('error', () => {})
  child.stdin.write(lines.slice(0, 1_200).join(''))
  await eventually(async () => (await waiting()) >= 1_000)
  child.kill('SIGKILL')
  await exited
  const stored = await waiting()
  expect(stored).toBeLessThan(1_900)
  const repeated = await run({ url }, args, { stdin: Readable.from(lines) })
  const counts = `${(1_900 - stored).toLocaleString('en')} enqueued, ${stored.toLocaleString('en')} already stored`
  expect(repeated).toEqual({ code: 0, out: `1,900 tasks: ${counts}\n`, err: '' })
  expect(await waiting()).toBe(1_900)
})

test('the tasks of a file are enqueued once, although the command is repeated after a line was corrected', async () => {
  const { run, waiting } = await startApi()
  const file = join(mkdtempSync(join(tmpdir(), 'bullpen-bulk-')), 'tasks.ndjson')
  onTestFinished(() => rmSync(dirname(file), { recursive: true }))
  const lines: readonly object[] = Array.from({ length: 1_500 }, (_, i) => ({
    task: 'task.count',
    input: { fencingToken: i },
  }))
  const write = (all: readonly object[]) => writeFileSync(file, all.map((line) => `${JSON.stringify(line)}\n`).join(''))
  write(lines.with(700, { task: 'task.count', input: { fencingToken: 'x' } }))
  const enqueue = () => run('enqueue', '--bulk', file, '--idempotency-key', 'import 7')
  expect(await enqueue()).toMatchObject({
    ...{ code: 1, out: '1,500 tasks: 1,499 enqueued, 1 rejected\n' },
    err: expect.stringMatching(/^bullpen: line 701: invalid_input: \/input\/fencingToken: /),
  })
  write([...lines, { task: 'task.count', input: { fencingToken: 1_500 } }])
  expect(await enqueue()).toMatchObject({ code: 0, out: '1,501 tasks: 2 enqueued, 1,499 already stored\n' })
  expect(await waiting()).toBe(1_501)
})

test('a limit of a task definition without concurrency is refused with what to do', async () => {
  const { run } = await startApi()
  expect(await run('limit', '--queue', 'cpu', '--task', 'task.count', '--concurrency', '3')).toEqual({
    ...{ code: 3, out: '' },
    err: "bullpen: invalid_request: /task: the definition of task 'task.count' has no concurrency, so its tasks are not counted and cannot be limited; add a concurrency to the definition\n",
  })
  expect(await run('limits', '--queue', 'cpu', '--json')).toMatchObject({
    code: 0,
    out: expect.not.stringContaining('task.count'),
  })
})
