// Tests bullpen runs against the real API, a worker and a real Redis, which all tests share.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApi } from '@bullpen/api'
import {
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineSource,
  defineSourceHandler,
  defineTask,
  TaskError,
} from '@bullpen/contract'
import { createRunId, taskViewSchema } from '@bullpen/contract/internal'
import { createWorker } from '@bullpen/worker'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { Capture, run, terminal } from '../../capture.fixture.ts'
import { FAKE_KEY } from '../../fake-api.fixture.ts'

/** Built from schemas of the contract, because the CLI does not depend on zod. */
const item = taskViewSchema.pick({ fencingToken: true })
const gen = defineSource({ name: 'numbers.gen', queue: 'cpu', input: item, item })
const check = defineTask({ name: 'numbers.check', queue: 'cpu', input: item, output: item, retry: { maxAttempts: 1 } })
const wait = defineTask({ name: 'numbers.wait', queue: 'cpu', input: item, output: item })
const checks = definePipeline('checks', { onError: 'collect' }).source(gen).map(check, { concurrency: 2 })
const waits = definePipeline('waits').source(gen).map(wait, { concurrency: 2 })
const catalogue = defineCatalogue(gen, check, wait, checks, waits)

const folder = mkdtempSync(join(tmpdir(), 'runs-'))
let url = ''
let released = Promise.withResolvers<void>()
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const redisUrl = inject('redisUrl')
  const config = { redisUrl, keys: [FAKE_KEY], port: 0, metricsPort: 0, namespace }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const api = await createApi({ catalogue, config, log: silent })
  closing.push(() => api.close())
  ;({ url } = await api.listen())
  const handlers = {
    'numbers.gen': defineSourceHandler(gen, import.meta.url, function* ({ fencingToken: count }) {
      for (let n = 1; n <= count; n++) yield { fencingToken: n }
    }),
    'numbers.check': defineHandler(check, import.meta.url, async ({ input }) => {
      if (input.fencingToken === 3) throw new TaskError('unlucky', 'three', { retryable: false })
      return input
    }),
    'numbers.wait': defineHandler(wait, import.meta.url, async ({ input, signal }) => {
      const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      await Promise.race([released.promise, aborted])
      return input
    }),
  }
  const worker = createWorker({ catalogue, handlers, config: { redisUrl, namespace, port: 0, logLevel: 'silent' } })
  closing.unshift(() => worker.drain())
  await worker.start()
})
afterAll(async () => {
  for (const close of closing) await close()
  rmSync(folder, { recursive: true })
})

const runs = (...args: string[]) => run({ url }, ['runs', ...args])

test('a run is started and awaited, and shown with its stages and errors', async () => {
  const started = await runs('start', 'checks', '{"fencingToken":4}', '--wait', '15s', '--by', 'ann')
  expect(started).toMatchObject({ code: 0 })
  const [, id = ''] = /^(run-\w{26}) {2}started\n/.exec(started.out) ?? []
  const shown = await runs('show', id)
  const timeless = (text: string) => text.replaceAll(/\(\S+ ago\)/g, '(…)')
  expect(timeless(started.out)).toBe(`${id}  started\n${timeless(shown.out)}`)
  expect(shown.out).toMatch(
    /^run-\w{26} {2}completed\npipeline +checks\nsource +numbers\.gen {2}cpu {2}done, 4 items, 1 task\n/,
  )
  expect(shown.out).toMatch(/ {2}stage +task +queue +waiting +running +completed +dropped +failed\n/)
  expect(shown.out).toMatch(/ {2}1 +numbers\.check +cpu +0 +0 of 2 +3 +0 +1\n/)
  expect(shown.out).toMatch(
    /\nresults +3, [\d.]+ per second\nerrors +1, the first: stage 1, item 2, dead: cpu-\w{26} {2}unlucky: three\n/,
  )
  expect(shown.out).toMatch(/\nstarted +.*, by ann \(key/)
  expect((await runs('errors', id)).out).toMatch(/^stage 1 {2}item 2 {2}cpu-\w{26} {2}dead {2}unlucky: three\n$/)
  expect(JSON.parse((await runs('show', id, '--json')).out)).toMatchObject({ id, results: 3 })
})

test('a wait shows the progress of each stage, and its exit code shows whether the run has completed', async () => {
  released = Promise.withResolvers()
  const id = createRunId(Date.now(), new Uint8Array(10))
  const file = join(folder, 'input.json')
  writeFileSync(file, '{"fencingToken":3}')
  const start = ['start', 'waits', '--input-file', file, '--id', id, '--keep', '0s', '--total-timeout', '1h', '--json']
  expect(JSON.parse((await runs(...start)).out)).toMatchObject({ id, pipeline: 'waits' })
  expect(JSON.parse((await runs(...start)).out)).toMatchObject({ id })
  await expect.poll(async () => (await runs('list')).out).toMatch(new RegExp(`\\n${id} +waits +running +3 +2 +0 +0 `))
  expect((await runs('delete', id)).err).toContain('run_not_ended: ')

  const late = await runs('wait', id, '--timeout', '10ms')
  expect(late).toMatchObject({ code: 1, out: expect.stringContaining(`${id}  running\n`) })

  const [live, pipe] = [terminal(200), new Capture()]
  const waiting = [live, pipe].map((stderr) => run({ url }, ['runs', 'wait', id], { stderr }))
  const stages = 'numbers.gen 3 → numbers.wait 1 waiting, 2 running, 0 completed'
  const progress = `running  [....................] 0%  0 results, 1 worker  ${stages}`
  await expect.poll(() => live.text).toContain(`\r\u001b[2K${progress}`)
  await expect.poll(() => pipe.text).toBe(`${progress}\n`)
  released.resolve()
  for (const ended of await Promise.all(waiting)) {
    expect(ended).toMatchObject({ code: 0, out: expect.stringContaining(`${id}  completed\n`) })
  }
  expect(live.text.endsWith('\u001b[2K')).toBe(true)
  const ended = `completed  [####################] 100%  3 results  numbers.gen 3 → numbers.wait 3 completed`
  expect(pipe.text.split('\n').slice(-2)).toEqual([ended, ''])
  expect(await runs('delete', id, '--by', 'ann')).toEqual({ code: 0, out: `${id}  deleted\n`, err: '' })
  expect(await runs('show', id)).toMatchObject({ code: 3 })
})

test('a cancelled run is awaited with any result, but does not count as completed', async () => {
  released = Promise.withResolvers()
  const { id } = JSON.parse((await runs('start', 'waits', '{"fencingToken":3}', '--json')).out)
  const cancelled = await runs('cancel', id, '--wait', '15s', '--by', 'bob')
  expect(cancelled).toMatchObject({ code: 0, out: expect.stringContaining(`${id}  cancelled\n`) })
  expect(cancelled.out).toMatch(/\nstopped +.*, cancelled, by bob \(key/)
  expect(await runs('wait', id, '--json')).toMatchObject({ code: 1, err: '' })
  expect(await runs('errors', id)).toEqual({ code: 0, out: '', err: 'the run has collected no errors\n' })
  expect(await runs()).toEqual({ code: 0, out: '', err: 'there are no unfinished runs\n' })
})

test('a pipeline that is started without its input is refused with an example of the input', async () => {
  expect(await runs('start', 'checks')).toEqual({
    code: 3,
    out: '',
    err: expect.stringMatching(
      /^no INPUT was given, so it is \{\}; expected JSON: bullpen runs start checks '\{"fencingToken":…\}'\nbullpen: invalid_input: /,
    ),
  })
  const { err } = await runs('start', 'checks', '{}')
  expect(err).toMatch(/^bullpen: invalid_input: /)
  expect((await runs('start', 'numbers.check')).err).toContain("'numbers.check' is a task")
})

test.each([
  [['show'], 'expected bullpen runs show ID'],
  [['show', 'x', 'y'], "unexpected argument 'y'"],
  [['list', 'x'], "unexpected argument 'x'"],
  [['show', 'x', '--wait', '1s'], "'bullpen runs show' does not accept --wait"],
  [['start', 'checks', '{}', '--input-file', 'x'], 'INPUT and --input-file cannot be combined'],
  [['start', 'checks', '{'], 'INPUT is not valid JSON'],
  [['start', 'checks', '--input-file', '/no/such/file'], 'cannot read /no/such/file'],
  [['start', 'checks', '--keep', '31d'], '--keep'],
])('wrong arguments are explained: %j', async (args, message) => {
  const { code, err } = await runs(...args)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
})
