// Tests listing tasks, page by page.
import type { TaskPage } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, test } from 'vitest'
import { NOW, problemIn, testApi } from '../api.fixture.ts'

const id = (n: number) => createTaskId('cpu', NOW + n, new Uint8Array(10))

describe('a listing', () => {
  test('continues with its cursor until there is no next page', async () => {
    const { get, broker } = await testApi()
    const ids = Array.from({ length: 5 }, (_, n) => id(n))
    for (const each of ids) broker.put({ id: each })
    broker.put({ id: id(9), status: 'completed' })
    const seen: string[] = []
    let next: string | undefined = ''
    while (next !== undefined) {
      const cursor: string = next === '' ? '' : `&cursor=${next}`
      const page: TaskPage = (await get(`/v1/tasks?queue=cpu&status=waiting&limit=2${cursor}`)).json()
      seen.push(...page.tasks.map((task) => task.id))
      next = page.next
    }
    expect(seen).toEqual(ids)
  })

  test('of a queue without matching tasks is empty', async () => {
    const { get } = await testApi()
    expect((await get('/v1/tasks?queue=mail&status=dead')).json()).toEqual({ tasks: [] })
  })

  test('of an unknown queue is answered with the nearest one', async () => {
    const { get } = await testApi()
    const problem = problemIn(await get('/v1/tasks?queue=mial&status=dead'))
    expect(problem).toMatchObject({ status: 404, code: 'queue_not_found' })
    expect(problem.detail).toContain('did you mean mail?')
  })

  test.each([
    ['no queue', 'status=waiting', 'queue'],
    ['no status', 'queue=cpu', 'status'],
    ['an unknown status', 'queue=cpu&status=done', 'status'],
    ['a limit that is too high', 'queue=cpu&status=waiting&limit=201', 'limit'],
    ['a limit of nothing', 'queue=cpu&status=waiting&limit=0', 'limit'],
    ['a queue twice', 'queue=cpu&queue=mail&status=waiting', 'queue'],
    ['an unknown parameter', 'queue=cpu&status=waiting&page=2', 'page'],
  ])('with %s is rejected', async (_name, query, parameter) => {
    const { get } = await testApi()
    const problem = problemIn(await get(`/v1/tasks?${query}`))
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(problem.errors).toEqual([{ parameter, message: expect.not.stringContaining('Invalid') }])
  })

  test('accepts the long cursor after a task whose id another program has chosen', async () => {
    const { get } = await testApi()
    const cursor = '0'.repeat(1_000)
    for (const path of ['/v1/tasks?queue=cpu&status=waiting', '/v1/dead-tasks?queue=cpu']) {
      expect((await get(`${path}&cursor=${cursor}`)).statusCode).toBe(200)
    }
  })

  test('with a cursor that it did not return is rejected', async () => {
    const { get } = await testApi()
    expect(problemIn(await get('/v1/tasks?queue=cpu&status=waiting&cursor=zzz'))).toMatchObject({
      status: 400,
      code: 'invalid_cursor',
    })
  })

  test('is a 503 while Redis is down', async () => {
    const { get, broker } = await testApi()
    broker.trouble = 'down'
    expect(problemIn(await get('/v1/tasks?queue=cpu&status=waiting')).code).toBe('redis_unavailable')
  })
})
