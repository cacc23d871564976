// Tests `bullpen dead` against a fake API: its requests, its output and its exit codes.
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { run } from './capture.fixture.ts'
import { fakeApi, ID, LINKS, problem, view } from './fake-api.fixture.ts'

const RETRY = `POST /v1/tasks/${ID}/retry`
const DELETE = `DELETE /v1/tasks/${ID}?by=ann`
const OTHER = `${ID.slice(0, -1)}1`
const retried = { id: ID, status: 'waiting', links: LINKS }

describe('dead retry', () => {
  test('retries each task in the name of the user, and prints its status', async () => {
    await using api = await fakeApi({ [RETRY]: [200, retried] })
    expect(await run(api, ['dead', 'retry', ID])).toEqual({ code: 0, out: `${ID}  retried, status waiting\n`, err: '' })
    expect(api.seen).toEqual([{ request: RETRY, body: { id: expect.any(String), by: 'ann' } }])
  })

  test('sends a new input from the command line or from standard input', async () => {
    await using api = await fakeApi({ [RETRY]: [200, retried] })
    expect(await run(api, ['dead', 'retry', ID, '--input', '{"n":1}', '--json'])).toMatchObject({ code: 0 })
    const stdin = Readable.from([Buffer.from('{"n":2}')])
    expect(await run(api, ['dead', 'retry', ID, '--input', '-'], { stdin })).toMatchObject({ code: 0 })
    expect(api.seen.map(({ body }) => body)).toMatchObject([{ input: { n: 1 } }, { input: { n: 2 } }])
    expect(await run(api, ['dead', 'retry', ID, OTHER, '--input', '{}'])).toMatchObject({ code: 2 })
    expect(await run(api, ['dead', 'retry', ID, '--input', '{'])).toMatchObject({ code: 2 })
  })

  test('continues after a task that is not dead, and ends with exit code 3', async () => {
    const refused = problem('task_not_dead', 409, { detail: 'task x is waiting' })
    await using api = await fakeApi({ [`POST /v1/tasks/${OTHER}/retry`]: refused, [RETRY]: [200, retried] })
    const { code, out, err } = await run(api, ['dead', 'retry', OTHER, ID])
    expect({ code, out }).toEqual({ code: 3, out: `${ID}  retried, status waiting\n` })
    expect(err).toContain('task_not_dead')
  })
})

test('dead delete deletes each task', async () => {
  await using api = await fakeApi({ [DELETE]: [200, { id: ID }] })
  expect(await run(api, ['dead', 'delete', ID])).toEqual({ code: 0, out: `${ID}  deleted\n`, err: '' })
  expect(await run(api, ['dead', 'delete', ID, '--input', '{}'])).toMatchObject({ code: 2 })
})

test.each([['dead'], ['dead', 'revive'], ['dead', 'retry'], ['dead', 'delete']])(
  'the arguments %j %j are refused before anything is sent',
  async (...args) => {
    await using api = await fakeApi()
    expect(await run(api, args)).toMatchObject({ code: 2, out: '' })
    expect(api.seen).toEqual([])
  },
)

test('show names who retried the task', async () => {
  const at = new Date(Date.now() - 7_200_000).toISOString()
  await using api = await fakeApi({ [`GET /v1/tasks/${ID}`]: [200, view({ retries: [{ at, by: 'ann (key 1)' }] })] })
  expect((await run(api, ['show', ID])).out).toMatch(/^retried +by ann \(key 1\) 2h ago$/m)
})
