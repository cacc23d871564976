// Tests what the board shows of tasks in each status, on a real Redis.
import { eventually } from '@bullpen/testkit'
import { describe, expect, test } from 'vitest'
import { openBoard, QUEUE, type TestBoard } from './board.fixture.ts'

/** The name that each status has on the page. */
const TAB = {
  ...{ dead: 'failed', retrying: 'prioritized', scheduled: 'delayed', completed: 'completed' },
  ...{ cancelled: 'paused', expired: 'waiting-children' },
} as const

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
  })
  return { ...board, ids }
}

test('a sensitive value of an input is shown neither on the board nor by the diagnosis, and by the API only in the input', async () => {
  const board = await openBoard()
  const [card, listed] = ['4929-hidden', `/queues?activeQueue=${QUEUE}&status=failed&page=1&jobsPerPage=10`]
  const id = await board.enqueue('bank.charge', { error: 'card_declined', customer: 1, card })
  await eventually(async () => (await board.task(id)).status === 'dead')
  const page = await board.board(`/queues/${QUEUE}/${id}`)
  expect(page.job.data.input).toMatchObject({ customer: 1, card: '[redacted]' })
  const pages = [page, await board.board(listed), (await board.api('/v1/diagnosis')).body]
  pages.push((await board.api(`/v1/dead-tasks/fingerprints?queue=${QUEUE}`)).body)
  const { tasks } = (await board.api(`/v1/dead-tasks?queue=${QUEUE}`)).body
  expect(tasks).toMatchObject([{ input: { card }, error: { message: 'cannot charge customer 1 from [redacted]' } }])
  for (const { input: _, ...task } of tasks) pages.push(task)
  expect(JSON.stringify(pages)).not.toContain(card)
})

describe('a queue on the board', () => {
  test('has a tab for each status, with the number of its tasks', async () => {
    const board = await everyStatus()
    const { counts, statuses } = await tab(board, 'latest')
    expect(statuses).toEqual([
      ...['latest', 'failed', 'active', 'waiting', 'prioritized', 'delayed', 'completed', 'paused', 'waiting-children'],
    ])
    const none = { active: 0, waiting: 0, [TAB.expired]: 0 }
    const one = { [TAB.scheduled]: 1, [TAB.retrying]: 1, [TAB.cancelled]: 1, [TAB.dead]: 1, [TAB.completed]: 1 }
    expect(counts).toEqual({ ...none, ...one })
    const texts: unknown = await (
      await fetch(`${board.url}/board/static/locales/en-US/messages.json`, {
        headers: { cookie: board.cookie },
      })
    ).json()
    expect(texts).toMatchObject({
      QUEUE: { STATUS: { FAILED: 'Dead', PAUSED: 'Cancelled', COMPLETED: 'Completed' } },
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
      dead: [ids.dead, 'bank.charge · dead · failed (card_declined)'],
      retrying: [ids.retrying, 'bank.charge · retrying · attempt 1 failed (bank_away)'],
      scheduled: [ids.scheduled, 'bank.charge · scheduled'],
      cancelled: [ids.cancelled, expect.stringMatching(/^bank\.charge · cancelled · by bob \(key ops [0-9a-f]{8}\)$/)],
      completed: [ids.completed, 'bank.charge · completed'],
    }
    for (const [status, [id, name]] of Object.entries(expected)) {
      expect(await shown(TAB[status as keyof typeof TAB])).toEqual({
        all: [{ id, name, isFailed: status === 'dead' }],
        pages: 1,
      })
      // The page of a job has buttons only for BullMQ's own names.
      const state = status === 'dead' ? 'failed' : status
      const page = await board.board(`/queues/${QUEUE}/${id}`)
      expect(page).toMatchObject({ job: { id }, status: state })
      const [title, wait] = page.job.name.split(' · waits for ')
      expect(title).toEqual(name)
      // Only the page of a task says what the task waits for.
      if (status === 'scheduled' || status === 'retrying') expect(wait).toMatch(/^its due time|^attempt 2 of 2/)
      else expect(wait).toBeUndefined()
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
  await eventually(async () => (await board.task(id)).status === 'expired')
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

test('waiting tasks are shown page by page, those with a priority after the others', async () => {
  const { enqueue, board } = await openBoard()
  const urgent: string[] = []
  for (let i = 0; i < 3; i++) urgent.push(await enqueue('idle.wait', {}))
  for (let i = 0; i < 2; i++) await enqueue('idle.wait', {}, { priority: 5 })
  const page = async (number: number) => {
    const { queues } = await board(`/queues?activeQueue=idle&status=waiting&page=${number}&jobsPerPage=2`)
    const { jobs, pagination } = queues.find(({ name }: { name: string }) => name === 'idle')
    return { ids: jobs.map(({ id }: { id: string }) => id), pages: pagination.pageCount }
  }
  const pages = [await page(1), await page(2), await page(3)]
  expect(pages.map(({ ids, pages: count }) => [ids.length, count])).toEqual([
    [2, 3],
    [2, 3],
    [1, 3],
  ])
  const ids = pages.flatMap((each) => each.ids)
  expect(new Set(ids).size).toBe(5)
  expect(ids.slice(0, 3).sort()).toEqual(urgent.sort())
})

test('tasks that wait for their turns are shown after the others, and as waiting', async () => {
  const { enqueue, board } = await openBoard()
  const own = await enqueue('idle.wait', {})
  const keyed = [
    await enqueue('idle.wait', {}, { concurrencyKey: 'a' }),
    await enqueue('idle.wait', {}, { concurrencyKey: 'b' }),
  ]
  const page = async (number: number) => {
    const { queues } = await board(`/queues?activeQueue=idle&status=waiting&page=${number}&jobsPerPage=2`)
    const { jobs, counts, pagination } = queues.find(({ name }: { name: string }) => name === 'idle')
    expect([counts.waiting, pagination.pageCount]).toEqual([3, 2])
    return jobs.map(({ id }: { id: string }) => id)
  }
  expect([await page(1), await page(2)]).toEqual([[own, keyed[0]], [keyed[1]]])
  expect(await board(`/queues/idle/${keyed[0]}`)).toMatchObject({
    job: {
      name: 'idle.wait · waiting · waits for a worker that serves queue idle; no worker is known to have served it',
    },
    status: 'waiting',
  })
})

test('the menu lists the kinds of error of dead tasks, and each kind shows its own tasks', async () => {
  const { enqueue, board, task } = await openBoard()
  const declined = await enqueue('bank.charge', { error: 'card_declined', customer: 1 })
  const ids = [
    await enqueue('bank.charge', { error: 'gone', customer: 2 }),
    await enqueue('bank.charge', { error: 'gone', customer: 3 }),
  ]
  for (const id of [declined, ...ids]) await eventually(async () => (await task(id)).status === 'dead')
  const [queue, idle, ...kinds] = (await board('/queues')).queues
  expect([queue, idle]).toMatchObject([{ name: QUEUE, counts: { failed: 3 } }, { name: 'idle' }])
  expect(kinds).toMatchObject([
    {
      displayName: expect.stringMatching(/^gone: cannot charge customer/),
      name: expect.stringMatching(/^dead in bank:gone [0-9a-f]{16}$/),
      counts: { failed: 2 },
      readOnlyMode: true,
    },
    { displayName: expect.stringMatching(/^card_declined: cannot charge/), counts: { failed: 1 }, delimiter: ':' },
  ])
  const name = encodeURIComponent(kinds[0].name)
  const shown = (await board(`/queues?activeQueue=${name}&status=failed&page=1&jobsPerPage=10`)).queues.at(2)
  expect(shown.jobs.map(({ id }: { id: string }) => id).sort()).toEqual(ids.sort())
  expect(await board(`/queues/${name}/${ids[0]}`)).toMatchObject({
    job: { id: ids[0], isFailed: true },
    status: 'failed',
  })
})

test('the page of a kind of error stays open when its last task has left', async () => {
  const { board } = await openBoard()
  const name = `dead in ${QUEUE}:gone 0123456789abcdef`
  const { queues } = await board(`/queues?activeQueue=${encodeURIComponent(name)}&status=failed`)
  expect(queues.at(-1)).toMatchObject({ name, displayName: 'no such errors', counts: { failed: 0 }, jobs: [] })
})
