// Tests /board without Bull Board's packages, and the parts of Bull Board on which ours relies. The tests on a real Redis are in
// board-pages.test.ts.
import fastify from 'fastify'
import { assert, expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { anId } from '../api.fixture.ts'
import { fakeBroker } from '../fake-broker.fixture.ts'
import { addBoard } from './board.ts'
import { loadBullBoard } from './bull-board.ts'

const peers = Object.entries(manifest.peerDependencies).filter(([name]) => name.startsWith('@bull-board/'))
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const { find, waitsFor, counts, countDead } = fakeBroker()
const reads = { definition: () => undefined, find, waitsFor, counts, countDead, boardJobs: async () => [] }

test('Bull Board is loaded when its packages are installed', async () => {
  expect(await loadBullBoard()).toMatchObject({ createBullBoard: expect.any(Function) })
})

test.each(['/board', '/board/', '/board/queue/cpu'])(
  '%s says what to install if Bull Board is missing',
  async (url) => {
    const app = fastify()
    onTestFinished(() => app.close())
    await addBoard(app, undefined, { queues: [], reads, log: silent, buttons: undefined })
    const answer = await app.inject(url)
    expect(answer.json()).toMatchObject({
      status: 404,
      code: 'route_not_found',
      detail: `Bull Board is not installed; run: npm install ${peers.map(([name, version]) => `${name}@${version}`).join(' ')}`,
    })
  },
)

test('a browser reads on a page what to install if Bull Board is missing', async () => {
  const app = fastify()
  onTestFinished(() => app.close())
  await addBoard(app, undefined, { queues: [], reads, log: silent, buttons: undefined })
  const answer = await app.inject({ url: '/board/', headers: { accept: 'text/html,*/*;q=0.8' } })
  expect(answer).toMatchObject({ statusCode: 404, headers: { 'content-type': 'text/html; charset=utf-8' } })
  expect(answer.body).toMatch(/npm install @bull-board.*href="\/reference"/s)
})

test('Bull Board reads its jobs through its adapter, and shows what toJSON returns', async () => {
  const job = {
    id: anId,
    opts: {},
    toJSON: () => ({
      id: anId,
      name: 'x',
      data: {},
      opts: {},
      stacktrace: [],
      returnvalue: { output: 1, worker: 'w' },
    }),
    getState: async () => 'completed',
    isFailed: async () => false,
    isCompleted: async () => true,
  }
  const queue = { name: 'cpu', metaValues: { version: 'bullmq:6' }, getJob: async () => job }
  const record = fakeBroker().put({ id: anId, status: 'completed' })
  const app = fastify()
  onTestFinished(() => app.close())
  // BullMQ's Queue is a class with private members. This object has what the board reads to show one job.
  const bullBoard = await loadBullBoard()
  assert(bullBoard)
  await addBoard(app, bullBoard, {
    queues: [queue as never],
    reads: { ...reads, find: async () => record },
    log: silent,
    buttons: undefined,
  })
  const answer = await app.inject(`/board/api/queues/cpu/${anId}`)
  // `formatJob` adds the status to what the job's own toJSON returns.
  expect(answer.json()).toMatchObject({ job: { id: anId, name: 'x · completed' } })
})

test('the page of a task that does not run says what it waits for', async () => {
  const job = { id: anId, opts: {}, toJSON: () => ({ id: anId, name: 'x', data: {}, opts: {}, stacktrace: [] }) }
  const queue = { name: 'cpu', metaValues: { version: 'bullmq:6' }, getJob: async () => job }
  const broker = fakeBroker()
  broker.put({ id: anId, queue: 'cpu', status: 'waiting' })
  broker.reason = { kind: 'paused', by: 'ann' }
  const app = fastify()
  onTestFinished(() => app.close())
  const bullBoard = (await loadBullBoard()) ?? expect.fail()
  const own = { ...reads, find: broker.find, waitsFor: broker.waitsFor }
  await addBoard(app, bullBoard, { queues: [queue as never], reads: own, log: silent, buttons: undefined })
  const { job: shown } = (await app.inject(`/board/api/queues/cpu/${anId}`)).json()
  expect(shown.name).toBe('x · waiting · waits for queue cpu to be resumed (paused by ann)')
})

test.each([
  [undefined, []],
  [
    'https://grafana.example.com/d/bullpen-fleet',
    [{ text: 'Dashboards', url: 'https://grafana.example.com/d/bullpen-fleet' }],
  ],
])('if the address of the dashboards is %s, the links of the board contain %j', async (grafanaUrl, links) => {
  const app = fastify()
  onTestFinished(() => app.close())
  await addBoard(app, await loadBullBoard(), { queues: [], reads, log: silent, buttons: undefined, grafanaUrl })
  const { body } = await app.inject('/board/')
  const [, config = ''] = /<script id="__UI_CONFIG__"[^>]*>([^<]*)<\/script>/.exec(body) ?? []
  expect(JSON.parse(config).miscLinks).toEqual([{ text: 'API reference', url: '/reference' }, ...links])
})
