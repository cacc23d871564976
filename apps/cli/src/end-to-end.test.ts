// Tests the program against the real API on a real Redis.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineTask, taskViewSchema } from '@bullpen/contract'
import { expect, inject, onTestFinished, test } from 'vitest'
import { FAKE_KEY, runBullpen } from './fake-api.fixture.ts'

/** Made of the contract's own schemas, since the program has no zod. */
const count = defineTask({
  name: 'task.count',
  queue: 'cpu',
  input: taskViewSchema.pick({ starts: true }),
  output: taskViewSchema.pick({ attempts: true }),
})

test('a task is enqueued, shown, listed, cancelled, and cancelled again', async () => {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const config = { redisUrl: inject('redisUrl'), keys: [FAKE_KEY], port: 0, metricsPort: 0, namespace }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const api = await createApi({ catalogue: defineCatalogue(count), config, log: silent })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const run = (...args: string[]) => runBullpen({ url }, args)

  const enqueued = await run('enqueue', 'task.count', '{"starts":1}', '--delay', '1h', '--meta', 'a=b')
  expect(enqueued).toMatchObject({ code: 0, err: '' })
  const [id = ''] = enqueued.out.split(' ')
  const shown = JSON.parse((await run('show', id, '--json')).out)
  expect(shown).toMatchObject({ id, status: 'scheduled', input: { starts: 1 }, meta: { a: 'b' } })
  const listed = await run('list', '--queue', 'cpu', '--status', 'scheduled', '--json')
  expect(JSON.parse(listed.out)).toEqual(shown)
  expect(await run('cancel', id, '--wait', '1.5s')).toEqual({ code: 0, out: `${id}  cancelled\n`, err: '' })
  expect(await run('cancel', id)).toMatchObject({ code: 0 })
  expect(await run('show', id, '--wait', '1s')).toMatchObject({ code: 1, out: expect.stringContaining('cancelled') })

  const tagged = await run('enqueue', 'task.count', '{"starts":1}', '--delay', '1h', '--tag', 'batch:7')
  const [taggedId = ''] = tagged.out.split(' ')
  const many = await run('cancel', '--queue', 'cpu', '--task', 'task.count', '--tag', 'batch:7')
  expect(many).toEqual({ code: 0, out: expect.stringMatching(/^cpu-\S+ {2}pending, covers what was /), err: '' })
  const ended = JSON.parse((await run('show', taggedId, '--json')).out)
  expect(ended).toMatchObject({ status: 'cancelled', tags: ['batch:7'], error: { code: 'cancelled' } })

  expect(await run('enqueue', 'task.conut')).toMatchObject({ code: 3, err: expect.stringContaining('task.count') })
  const misfit = await run('enqueue', 'task.count', '{"starts":"x"}')
  expect(misfit).toMatchObject({
    code: 3,
    out: '',
    err: expect.stringMatching(/^bullpen: invalid_input: .*input\.starts/),
  })
  expect(await run('list', '--queue', 'nope', '--status', 'dead')).toMatchObject({
    code: 3,
    err: expect.stringContaining('queue_not_found'),
  })
})
