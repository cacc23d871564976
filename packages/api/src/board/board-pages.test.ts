// Tests what the board shows of tasks in each status, on a real Redis.
import { eventually } from '@bullpen/testkit'
import { describe, expect, test } from 'vitest'
import { openBoard, QUEUE, type TestBoard } from './board.fixture.ts'

/** Returns one tab of a queue, as the page asks for it. */
async function tab(board: TestBoard, status: string, more = '') {
  const { queues } = await board.board(`/queues?activeQueue=${QUEUE}&status=${status}&page=1&jobsPerPage=10${more}`)
  return queues.find((queue: { name: string }) => queue.name === QUEUE)
}

/** A queue with one task in each status that BullMQ does not have. */
async function everyStatus() {
  const board = await openBoard()
  const { enqueue, api, task } = board
  const ids = {
    dead: await enqueue('bank.charge', { error: 'card_declined', customer: 1 }),
    retrying: await enqueue('bank.charge', { error: 'bank_away', retryable: true, customer: 2 }),
    scheduled: await enqueue('bank.charge', { customer: 3 }, { delay: '1h' }),
    cancelled: await enqueue('bank.charge', { customer: 4 }, { delay: '1h' }),
    completed: await enqueue('bank.charge', { customer: 5 }),
  }
  await api(`/v1/tasks/${ids.cancelled}/cancel`, { by: 'bob' })
  await eventually(async () => {
    const statuses = await Promise.all(Object.values(ids).map(async (id) => (await task(id)).status))
    return statuses.every((status, i) => status === Object.keys(ids)[i])
  }, 15_000)
  return { ...board, ids }
}

describe('a queue on the board', () => {
  test('has a tab for each status, with the number of its tasks', async () => {
    const board = await everyStatus()
    const { counts, statuses } = await tab(board, 'latest')
    expect(statuses).toEqual([
      ...['latest', 'failed', 'active', 'waiting', 'retrying', 'scheduled', 'completed', 'cancelled', 'expired'],
      ...['prioritized', 'waiting-children'],
    ])
    const none = { active: 0, waiting: 0, prioritized: 0, 'waiting-children': 0, expired: 0 }
    expect(counts).toEqual({ ...none, scheduled: 1, retrying: 1, completed: 1, failed: 1, cancelled: 1 })
    const texts: unknown = await (
      await fetch(`${board.url}/board/static/locales/en-US/messages.json`, {
        headers: { cookie: board.cookie },
      })
    ).json()
    expect(texts).toMatchObject({
      QUEUE: { STATUS: { FAILED: 'Dead', CANCELLED: 'Cancelled', COMPLETED: 'Completed' } },
    })
  })

  test('shows each task on the tab of its status, with a title that names the status and the reason', async () => {
    const board = await everyStatus()
    const shown = async (status: string) => {
      const { jobs, pagination } = await tab(board, status)
      const all = jobs.map(({ id, name, isFailed }: Record<string, unknown>) => ({ id, name, isFailed }))
      return { all, pages: pagination.pageCount }
    }
    const { ids } = board
    const expected = {
      failed: [ids.dead, 'bank.charge · dead · failed (card_declined)'],
      retrying: [ids.retrying, 'bank.charge · retrying · attempt 1 failed (bank_away)'],
      scheduled: [ids.scheduled, 'bank.charge · scheduled'],
      cancelled: [ids.cancelled, expect.stringMatching(/^bank\.charge · cancelled · by bob \(key ops [0-9a-f]{8}\)$/)],
      completed: [ids.completed, 'bank.charge · completed'],
    }
    for (const [status, [id, name]] of Object.entries(expected)) {
      expect(await shown(status)).toEqual({ all: [{ id, name, isFailed: status === 'failed' }], pages: 1 })
      expect(await board.board(`/queues/${QUEUE}/${id}`)).toMatchObject({ job: { id, name }, status })
    }
    const { all } = await shown('latest')
    expect(all.map(({ id }: { id: string }) => id).sort()).toEqual(Object.values(ids).sort())
  })

  test('shows the tasks that have ended page by page, newest first', async () => {
    const board = await openBoard()
    const ids: string[] = []
    for (let customer = 0; customer < 3; customer++) {
      const id = await board.enqueue('bank.charge', { error: 'card_declined', customer })
      await eventually(async () => (await board.task(id)).status === 'dead')
      ids.unshift(id)
    }
    const page = async (number: number) => {
      const url = `/queues?activeQueue=${QUEUE}&status=failed&page=${number}&jobsPerPage=2`
      const [{ jobs, pagination }] = (await board.board(url)).queues
      return [jobs.map(({ id }: { id: string }) => id), pagination.pageCount]
    }
    expect(await page(1)).toEqual([ids.slice(0, 2), 2])
    expect(await page(2)).toEqual([ids.slice(2), 2])
  })
})

test('a task expires on the board', async () => {
  const board = await openBoard()
  const id = await board.enqueue('idle.wait', {}, { queueTimeout: '1s' })
  await eventually(async () => (await board.task(id)).status === 'expired', 15_000)
  expect(await board.board(`/queues/idle/${id}`)).toMatchObject({
    job: { name: 'idle.wait · expired (queue_timeout)', isFailed: false },
    status: 'expired',
  })
})

test('a task links to its page on the board, and the page to the task', async () => {
  const { enqueue, task, board, api } = await openBoard()
  const id = await enqueue('idle.wait', {})
  const { links } = await task(id)
  expect(links.board).toBe(`/board/queue/idle/${id}`)
  const { job } = await board(`/queues/idle/${id}`)
  expect(job.externalUrl).toEqual({ displayText: 'In the API', href: links.self })
  const { tasks } = (await api('/v1/tasks?queue=idle&status=waiting')).body
  expect(tasks).toMatchObject([{ links: { board: links.board } }])
})
