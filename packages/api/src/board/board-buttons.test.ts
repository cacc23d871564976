// Tests the board's buttons over HTTP, on a real Redis: what they do, which of them are refused, and whose requests they accept.
import { createRequire } from 'node:module'
import { eventually } from '@bullpen/testkit'
import { describe, expect, test } from 'vitest'
import { openBoard, QUEUE, type TestBoard } from './board.fixture.ts'

const ON = { allowBoardChanges: true }
const ANN = expect.stringMatching(/^ann \(key ops [0-9a-f]{8}\)$/)
const UNREADABLE = expect.stringContaining("does not come from this board's own page")

const auditOf = ({ lines }: TestBoard) =>
  lines.filter(({ message }) => message === 'dead tasks: request accepted').map(({ fields }) => fields)

async function deadTasks(board: TestBoard, error: string, count: number): Promise<string[]> {
  const ids = await Promise.all(
    Array.from({ length: count }, (_, customer) => board.enqueue('bank.charge', { error, customer })),
  )
  await eventually(async () => (await statusesOf(board, ids)).every((status) => status === 'dead'))
  return ids
}

const statusesOf = ({ task }: TestBoard, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await task(id)).status))

/** A cancelled task, and one that is retrying. */
async function bystanders({ enqueue, api, task }: TestBoard) {
  const cancelled = await enqueue('bank.charge', { customer: 1 }, { delay: '1h' })
  await api(`/v1/tasks/${cancelled}/cancel`, {})
  const retrying = await enqueue('bank.charge', { error: 'away', retryable: true, customer: 2 })
  await eventually(async () => (await task(retrying)).status === 'retrying')
  return [cancelled, retrying]
}

/** The routes of Bull Board's page that change something, as method and path. */
function changingRoutes(): readonly (readonly [string, string])[] {
  const { appRoutes } = createRequire(import.meta.url)('@bull-board/api/dist/routes.js')
  return appRoutes.api
    .filter(({ method }: { method: string }) => method !== 'get')
    .map(({ method, route }: { method: string; route: string }) => [method.toUpperCase(), route.replace('/api', '')])
}

const WORKING = [
  ...['/queues/:queueName/:jobId/retry', '/queues/:queueName/:jobId/clean'],
  ...['/queues/:queueName/retry/:queueStatus', '/queues/:queueName/clean/:queueStatus'],
  ...['/queues/:queueName/pause', '/queues/:queueName/resume', '/queues/pause', '/queues/resume'],
]

const filled = (route: string, jobId = 'x') =>
  route
    .replace(':queueName', QUEUE)
    .replace(':jobId', jobId)
    .replace(':queueStatus', 'failed')
    .replace(':schedulerId', 'daily')

describe('the buttons', () => {
  test('are off by default, and every request says how to switch them on', async () => {
    const board = await openBoard()
    const [id = ''] = await deadTasks(board, 'declined', 1)
    for (const [method, route] of changingRoutes()) {
      const { status, body } = await board.press(filled(route, id), { origin: board.url }, method)
      expect([route, status, body.message]).toEqual([
        route,
        403,
        'the board is read-only; use the API or the CLI to change tasks, or set BULLPEN_API_ALLOW_BOARD_CHANGES=true',
      ])
    }
    const { queues } = await board.board('/queues')
    expect(queues.map(({ readOnlyMode }: { readOnlyMode: boolean }) => readOnlyMode)).toEqual([true, true, true])
    expect(await statusesOf(board, [id])).toEqual(['dead'])
  })

  test('retry and delete one dead task, each with an audit line that names the user', async () => {
    const board = await openBoard(ON)
    const [first = '', second = '', third = ''] = await deadTasks(board, 'declined', 3)
    board.fixed.add('declined')
    expect((await board.press(`/queues/${QUEUE}/${first}/retry`)).status).toBe(200)
    expect((await board.press(`/queues/${QUEUE}/${second}/clean`)).status).toBe(200)
    await eventually(async () => (await board.task(first)).status === 'completed')
    expect((await board.task(first)).retries).toMatchObject([{ by: ANN }])
    expect((await board.api(`/v1/tasks/${second}`)).status).toBe(404)
    expect(await statusesOf(board, [third])).toEqual(['dead'])
    expect(auditOf(board)).toMatchObject([
      { action: 'retry', queue: QUEUE, filter: { id: first }, matching: 1, by: ANN },
      { action: 'delete', queue: QUEUE, filter: { id: second }, matching: 1, by: ANN },
    ])
  })

  test('retry all dead tasks, and no others', async () => {
    const board = await openBoard(ON)
    const others = await bystanders(board)
    const ids = await deadTasks(board, 'declined', 5)
    board.fixed.add('declined').add('away')
    expect((await board.press(`/queues/${QUEUE}/retry/failed`)).status).toBe(202)
    await eventually(async () => (await statusesOf(board, ids)).every((status) => status === 'completed'))
    expect(await statusesOf(board, others)).toEqual(['cancelled', 'retrying'])
    expect(auditOf(board)).toMatchObject([{ action: 'retry', queue: QUEUE, matching: 5, by: ANN }])
  })

  test('delete all dead tasks, and no others', async () => {
    const board = await openBoard(ON)
    const others = await bystanders(board)
    const ids = await deadTasks(board, 'declined', 5)
    expect((await board.press(`/queues/${QUEUE}/clean/failed`)).status).toBe(202)
    await eventually(async () => (await board.board('/queues')).queues[0].counts.failed === 0)
    const found = await Promise.all(ids.map(async (id) => (await board.api(`/v1/tasks/${id}`)).status))
    expect(new Set(found)).toEqual(new Set([404]))
    expect(await statusesOf(board, others)).toEqual(['cancelled', 'retrying'])
    expect(auditOf(board)).toMatchObject([{ action: 'delete', queue: QUEUE, matching: 5, by: ANN }])
  })

  test('retry and delete the dead tasks with one kind of error, and no others', async () => {
    const board = await openBoard(ON)
    const dead = {
      away: await deadTasks(board, 'bank_away', 3),
      gone: await deadTasks(board, 'customer_gone', 2),
      declined: await deadTasks(board, 'card_declined', 1),
    }
    board.fixed.add('bank_away')
    const { queues } = await board.board('/queues')
    const nameOf = (code: string): string =>
      encodeURIComponent(queues.find(({ displayName }: { displayName?: string }) => displayName?.startsWith(code)).name)
    expect((await board.press(`/queues/${nameOf('bank_away')}/retry/failed`)).status).toBe(202)
    expect((await board.press(`/queues/${nameOf('customer_gone')}/clean/failed`)).status).toBe(202)
    await eventually(async () => (await board.board('/queues')).queues[0].counts.failed === 1)
    await eventually(async () => (await statusesOf(board, dead.away)).every((status) => status === 'completed'))
    expect(await statusesOf(board, dead.declined)).toEqual(['dead'])
    expect((await board.api(`/v1/tasks/${dead.gone[0]}`)).status).toBe(404)
    const fingerprint = expect.stringMatching(/^[0-9a-f]{16}$/)
    expect(auditOf(board)).toMatchObject([
      { action: 'retry', queue: QUEUE, filter: { queue: QUEUE, fingerprint }, matching: 3, by: ANN },
      { action: 'delete', queue: QUEUE, filter: { queue: QUEUE, fingerprint }, matching: 2, by: ANN },
    ])
    expect((await board.press(`/queues/${nameOf('card_declined')}/pause`)).body.message).toBe(
      "this page shows only the dead tasks with one kind of error; open queue 'bank' to pause or resume it",
    )
  })

  test('explain why a task that is not dead is neither retried nor deleted', async () => {
    const board = await openBoard(ON)
    const others = await bystanders(board)
    for (const [id, status] of others.map((each, i) => [each, ['cancelled', 'retrying'][i]])) {
      for (const action of ['retry', 'clean']) {
        expect(await board.press(`/queues/${QUEUE}/${id}/${action}`)).toMatchObject({
          status: 409,
          body: {
            code: 'task_not_dead',
            error: expect.any(String),
            message: `task ${id} is ${status}; only dead tasks can be retried or deleted`,
          },
        })
      }
    }
    for (const tab of ['completed', 'delayed', 'paused', 'toString']) {
      for (const action of ['retry', 'clean']) {
        expect(await board.press(`/queues/${QUEUE}/${action}/${tab}`)).toMatchObject({
          status: 403,
          body: { message: expect.stringMatching(/^only dead tasks can be (retried|deleted)/) },
        })
      }
    }
    expect((await board.press(`/queues/${QUEUE}/1/retry`)).body.message).toContain('"1" is not a task id')
    expect((await board.press('/queues/nowhere/retry/failed')).status).toBe(404)
    expect(await statusesOf(board, others)).toEqual(['cancelled', 'retrying'])
    expect(auditOf(board)).toEqual([])
  })

  test('pause and resume one queue or all of them, by commands', async () => {
    const board = await openBoard(ON)
    const paused = async () =>
      (await board.board('/queues')).queues.map(({ isPaused }: { isPaused: boolean }) => isPaused)
    await board.press(`/queues/${QUEUE}/pause`)
    expect(await paused()).toEqual([true, false])
    await board.press('/queues/pause')
    expect(await paused()).toEqual([true, true])
    await board.press('/queues/idle/resume')
    await board.press('/queues/resume')
    expect(await paused()).toEqual([false, false])
    const commands = board.lines.filter(({ message }) => message === 'fleet command sent').map(({ fields }) => fields)
    expect(commands).toMatchObject([
      { spec: { action: 'pause', queue: QUEUE }, by: ANN },
      { spec: { action: 'pause', queue: 'idle' }, by: ANN },
      { spec: { action: 'resume', queue: 'idle' }, by: ANN },
      { spec: { action: 'resume', queue: QUEUE }, by: ANN },
    ])
  })

  test('that have no counterpart in Bullpen are refused with an explanation', async () => {
    const board = await openBoard(ON)
    const id = await board.enqueue('bank.charge', { customer: 1 }, { delay: '1h' })
    const refused = changingRoutes().filter(([, route]) => !WORKING.includes(route))
    expect(refused).toHaveLength(changingRoutes().length - WORKING.length)
    for (const [method, route] of refused) {
      const { status, body } = await board.press(filled(route, id), { origin: board.url }, method)
      expect([route, status, body.error]).toEqual([route, 403, 'Forbidden'])
      expect(body.message).toMatch(/^the board cannot /)
    }
    expect(await statusesOf(board, [id])).toEqual(['scheduled'])
  })
})

describe('a request from elsewhere', () => {
  test.each<[string, (url: string) => Readonly<Record<string, string>>]>([
    ['another site', () => ({ origin: 'https://evil.example' })],
    ['another site, in a current browser', (url) => ({ origin: url, 'sec-fetch-site': 'cross-site' })],
    ['another port of this host', () => ({ origin: 'http://127.0.0.1:1' })],
    ['a page without an origin', () => ({ origin: 'null' })],
    ['a program that sends no origin', () => ({})],
  ])('(%s) is refused by every button', async (_from, headersFor) => {
    const board = await openBoard(ON)
    const [id = ''] = await deadTasks(board, 'declined', 1)
    for (const [method, route] of changingRoutes()) {
      const answer = await board.press(filled(route, id), headersFor(board.url), method)
      expect([route, answer]).toMatchObject([route, { status: 403, body: { code: 'forbidden', message: UNREADABLE } }])
    }
    expect(await statusesOf(board, [id])).toEqual(['dead'])
    expect(auditOf(board)).toEqual([])
  })

  test('without a session gets a 401 with an explanation, whatever its origin', async () => {
    const board = await openBoard(ON)
    const [id = ''] = await deadTasks(board, 'declined', 1)
    const headers = { origin: board.url, cookie: '' }
    expect(await board.press(`/queues/${QUEUE}/${id}/retry`, headers)).toMatchObject({
      status: 401,
      body: { code: 'unauthorized', message: expect.stringContaining('log in at /board/login') },
    })
    expect(await statusesOf(board, [id])).toEqual(['dead'])
  })

  test('with a session can change nothing outside of the board', async () => {
    const board = await openBoard(ON)
    const [id = ''] = await deadTasks(board, 'declined', 1)
    const init = { method: 'POST', headers: { cookie: board.cookie, origin: board.url } }
    expect((await fetch(`${board.url}/v1/tasks/${id}/retry`, init)).status).toBe(401)
    expect((await fetch(`${board.url}/reference`, init)).status).not.toBe(200)
    expect(await statusesOf(board, [id])).toEqual(['dead'])
  })
})
