// Tests the routes for pipelines: what they accept, what they refuse, and what they return.
import { defineCatalogue, definePipeline, defineReducer, defineSource, defineTask } from '@bullpen/contract'
import { createRunId } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { KEY_NAME, NOW, problemIn, testApi } from '../../api.fixture.ts'

const item = z.object({ n: z.int() })
const input = z.object({ count: z.int() })
const numbers = defineSource({ name: 'math.numbers', queue: 'io', input, item })
const square = defineTask({ name: 'math.square', queue: 'cpu', input: item, output: item })
const sum = defineReducer({ name: 'math.sum', queue: 'cpu', input, item, output: z.int() })
const squares = definePipeline('squares', { onError: 'collect' })
  .source(numbers)
  .map(square, { concurrency: 3 })
  .reduce(sum)
const catalogue = defineCatalogue(numbers, square, sum, squares)

const id = createRunId(NOW, new Uint8Array(10))

async function setup() {
  const api = await testApi({ catalogue })
  const send = async (path: string, body?: unknown) =>
    api.ask({
      method: 'POST',
      url: `/v1/runs${path}`,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, payload: JSON.stringify(body) }),
    })
  return { ...api, send }
}

it('POST /v1/runs starts a pipeline by enqueueing its source', async () => {
  const { send, broker, lines } = await setup()
  const response = await send('', { pipeline: 'squares', input: { count: 3 }, id, by: 'ann' })
  expect(response.statusCode).toBe(201)
  expect(response.headers['location']).toBe(`/v1/runs/${id}`)
  expect(response.json()).toMatchObject({
    id,
    pipeline: 'squares',
    state: 'running',
    onError: 'collect',
    source: { task: 'math.numbers', queue: 'io', state: 'active', emitted: 0, segments: 1 },
    reduction: { task: 'math.sum', queue: 'cpu', state: 'pending' },
    stages: [{ task: 'math.square', queue: 'cpu', concurrency: 3, waiting: 0, running: 0, completed: 0 }],
    results: 0,
    errors: 0,
    by: `ann (${KEY_NAME})`,
    links: { cancel: `/v1/runs/${id}/cancel` },
  })
  await expect.poll(() => broker.enqueued).toMatchObject([{ task: 'math.numbers', queue: 'io' }])
  expect(lines).toContainEqual(expect.objectContaining({ message: 'pipeline started' }))
})

it('POST /v1/runs with an id is idempotent, and the run is listed until it has ended', async () => {
  const { send, get, broker } = await setup()
  const body = { pipeline: 'squares', input: { count: 3 }, id }
  const first = await send('', body)
  const again = await send('', { ...body, by: 'bob' })
  expect([first.statusCode, again.statusCode, again.json()]).toEqual([201, 200, first.json()])
  broker.trouble = 'queue full'
  const other = problemIn(await send('', { ...body, input: { count: 4 }, keep: '1h' }))
  expect(other).toMatchObject({ status: 409, code: 'run_id_taken' })
  expect(other.detail).toContain('a different input, keep;')
  broker.trouble = 'none'
  expect((await get('/v1/runs')).json()).toMatchObject({ runs: [{ id }] })
  await expect.poll(() => broker.enqueued).toHaveLength(1)
})

it.each([
  [{ pipeline: 'cubes' }, 404, 'unknown_pipeline'],
  [{ pipeline: 'squares', input: { count: 'x' } }, 422, 'invalid_input'],
  [{ pipeline: 'squares', input: { count: 1 }, totalTimeout: '31d' }, 400, 'invalid_request'],
  [{ pipeline: 'squares', input: { count: 1 }, keep: '31d' }, 400, 'invalid_request'],
  [{ pipeline: 'squares', input: { count: 1 }, id: 'group-1' }, 400, 'invalid_request'],
  [{ input: { count: 1 } }, 400, 'invalid_request'],
])('POST /v1/runs refuses %j', async (body, status, code) => {
  const { send } = await setup()
  expect(problemIn(await send('', body))).toMatchObject({ status, code })
})

it('the error for an id that is not the id of a run points to the id', async () => {
  const { send } = await setup()
  const refused = problemIn(await send('', { pipeline: 'squares', input: { count: 1 }, id: 'group-1' }))
  expect(refused.errors).toEqual([{ pointer: '/id', message: expect.stringContaining('one looks like') }])
})

it('a full queue refuses the start of a pipeline', async () => {
  const { send, broker } = await setup()
  broker.trouble = 'queue full'
  const refused = await send('', { pipeline: 'squares', input: { count: 3 } })
  expect(problemIn(refused)).toMatchObject({ status: 429, code: 'queue_full' })
})

it('POST /v1/runs/{id}/cancel cancels the run and says who did', async () => {
  const { send, lines } = await setup()
  await send('', { pipeline: 'squares', input: { count: 3 }, id })
  expect((await send(`/${id}/cancel`, { by: 'bob' })).json()).toMatchObject({
    stopReason: 'cancelled',
    stoppedBy: `bob (${KEY_NAME})`,
  })
  expect((await send(`/${id}/cancel`)).json()).toMatchObject({ stoppedBy: `bob (${KEY_NAME})` })
  expect(lines).toContainEqual(expect.objectContaining({ message: 'pipeline cancelled' }))
})

it('GET /v1/runs/{id} shows what the source and the stages have done', async () => {
  const { send, get, broker } = await setup()
  await send('', { pipeline: 'squares', input: { count: 2 }, id })
  const emission = {
    segment: 1,
    fencingToken: 1,
    from: 0,
    values: ['{"n":1}'],
    count: 1,
    digest: '',
    cursor: '',
    isLast: true,
  }
  const run = await broker.runs.find(id)
  await broker.runs.emit(run?.settings ?? { id, incarnation: '' }, emission)
  expect((await get(`/v1/runs/${id}`)).json()).toMatchObject({
    source: { emitted: 1 },
    stages: [{ running: 1 }],
  })
  expect((await get(`/v1/runs/${id}/errors`)).json()).toEqual({ errors: [] })
})

it('a run with a keep of 0s is kept for ten seconds after its end, so that callers that wait learn the result', async () => {
  const { send, broker } = await setup()
  expect((await send('', { pipeline: 'squares', input: { count: 2 }, id, keep: '0s' })).statusCode).toBe(201)
  expect((await broker.runs.find(id))?.settings.keepMs).toBe(10_000)
})

it('DELETE /v1/runs/{id} refuses a run that has not ended, and does not find others', async () => {
  const { send, ask } = await setup()
  await send('', { pipeline: 'squares', input: { count: 2 }, id })
  const refused = problemIn(await ask({ method: 'DELETE', url: `/v1/runs/${id}` }))
  expect(refused).toMatchObject({ status: 409, code: 'run_not_ended' })
  expect(refused.detail).toContain('is running')
  const missing = problemIn(
    await ask({ method: 'DELETE', url: `/v1/runs/${createRunId(NOW + 1, new Uint8Array(10))}` }),
  )
  expect(missing).toMatchObject({ status: 404, code: 'run_not_found' })
})

it.each([`/v1/runs/${id}`, '/v1/runs/cpu-1', `/v1/runs/${id}/errors`])('GET %s is not found', async (path) => {
  const { get } = await setup()
  expect(problemIn(await get(path))).toMatchObject({ status: 404, code: 'run_not_found' })
})
