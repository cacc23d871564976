// Tests /board without Bull Board's packages. The test with these packages and a real Redis is in create-api.test.ts.
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { addBoard } from './board.ts'
import { loadBullBoard } from './bull-board.ts'

const peers = Object.entries(manifest.peerDependencies).filter(([name]) => name.startsWith('@bull-board/'))
const silent = { debug() {}, info() {}, warn() {}, error() {} }

test('Bull Board is loaded when its packages are installed', async () => {
  expect(await loadBullBoard()).toMatchObject({ createBullBoard: expect.any(Function) })
})

test.each(['/board', '/board/', '/board/queue/cpu'])(
  '%s says what to install if Bull Board is missing',
  async (url) => {
    const app = fastify()
    onTestFinished(() => app.close())
    await addBoard(app, [], silent, async () => undefined)
    const answer = await app.inject(url)
    expect(answer.json()).toMatchObject({
      status: 404,
      code: 'route_not_found',
      detail: `Bull Board is not installed; run: npm install ${peers.map(([name, version]) => `${name}@${version}`).join(' ')}`,
    })
  },
)

test('Bull Board reads its jobs through its adapter, and shows what toJSON returns', async () => {
  const job = {
    id: '1',
    opts: {},
    toJSON: () => ({ id: '1', name: 'x', data: {}, opts: {}, stacktrace: [], returnvalue: { output: 1, worker: 'w' } }),
    getState: async () => 'completed',
    isFailed: async () => false,
    isCompleted: async () => true,
  }
  const queue = { name: 'cpu', metaValues: { version: 'bullmq:6' }, getJob: async () => job }
  const app = fastify()
  onTestFinished(() => app.close())
  // BullMQ's Queue is a class with private members. This object has what the board reads to show one job.
  await addBoard(app, [queue as never], silent)
  const answer = await app.inject('/board/api/queues/cpu/1')
  // `formatJob` adds the outcome to what the job's own toJSON returns.
  expect(answer.json()).toMatchObject({ job: { id: '1', name: 'x · succeeded' } })
})
