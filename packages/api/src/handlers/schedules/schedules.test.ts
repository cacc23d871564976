import { defineCatalogue, defineSchedule, defineTask } from '@bullpen/contract'
import { scheduleViewSchema } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { KEY_NAME, problemIn, testApi } from '../../api.fixture.ts'
import { scheduleView } from '../../views/schedule-view.ts'

const square = defineTask({ name: 'math.square', queue: 'cpu', input: z.object({ n: z.int() }) })
const nightly = defineSchedule({ name: 'nightly', task: square, input: { n: 1 }, cron: '0 3 * * *' })
const catalogue = defineCatalogue(square, nightly)

const request = {
  name: 'yearly',
  task: 'math.square',
  input: { n: 4 },
  cron: '0 0 1 1 *',
  timeZone: 'Europe/Berlin',
  priority: 3,
} as const

async function setup() {
  const api = await testApi({ catalogue })
  const send = async (path: string, body?: unknown) =>
    api.ask({
      method: 'POST',
      url: `/v1/schedules${path}`,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, payload: JSON.stringify(body) }),
    })
  const remove = (name: string) => api.ask({ method: 'DELETE', url: `/v1/schedules/${name}?by=ann` })
  return { ...api, send, remove }
}

describe('POST /v1/schedules', () => {
  it('gives its tasks the retry settings of the schedule, which must be within the bounds of the task', async () => {
    const { send, broker } = await setup()
    const backoff = { type: 'fixed', initialDelay: '1m' } as const
    const created = await send('', { ...request, retry: { maxAttempts: 2, backoff } })
    expect(created.json()).toMatchObject({ schedule: { retry: { maxAttempts: 2, backoff } } })
    const { record } = await broker.schedules.find('yearly')
    expect(record.template).toMatchObject({ maxAttempts: 2, backoff: { type: 'fixed', initialMs: 60_000 } })
    const refused = await send('', { ...request, retry: { backoff: { ...backoff, initialDelay: '1d' } } })
    expect(refused.json()).toMatchObject({
      code: 'invalid_request',
      errors: [
        {
          pointer: '/retry/backoff/initialDelay',
          message: "expected at most '5m' (retry.callBounds.maxDelay of math.square), got '1d'",
        },
      ],
    })
  })

  it('creates a schedule, and shows its next ticks in the time zone', async () => {
    const { send, get, lines } = await setup()
    const created = await send('', { ...request, by: 'ann' })
    expect(created.statusCode).toBe(201)
    expect(created.headers['location']).toBe('/v1/schedules/yearly')
    const year = new Date().getUTCFullYear()
    expect(created.json()).toMatchObject({
      action: 'created',
      schedule: {
        ...request,
        queue: 'cpu',
        overlap: 'skip',
        catchUp: 'one',
        source: 'api',
        status: 'active',
        changedBy: `ann (${KEY_NAME})`,
        runs: 0,
        trouble: [],
        nextTicks: [0, 1, 2, 3, 4].map((i) => `${year + i}-12-31T23:00:00.000Z`),
      },
    })
    expect(lines).toContainEqual(expect.objectContaining({ level: 'info', message: 'schedule created' }))
    const listed = (await get('/v1/schedules?next=0')).json()
    expect(listed.schedules).toMatchObject([{ name: 'yearly', nextTicks: [] }])
    expect((await get('/v1/schedules?trouble=true')).json()).toEqual({ schedules: [] })
  })

  it('changes a schedule, and does nothing if nothing differs', async () => {
    const { send } = await setup()
    await send('', request)
    const again = await send('', request)
    expect([again.statusCode, again.json().action]).toEqual([200, 'unchanged'])
    const changed = await send('', { ...request, input: { n: 5 } })
    expect([changed.statusCode, changed.json()]).toMatchObject([
      200,
      { action: 'changed', schedule: { input: { n: 5 } } },
    ])
  })

  it.each([
    ['an invalid cron expression', { cron: '61 * * * *' }, '/cron', 'invalid_request'],
    ['an unknown time zone', { timeZone: 'Europe/Atlantis' }, '/timeZone', 'invalid_request'],
    ['a cron expression together with an interval', { every: '1h' }, '/every', 'invalid_request'],
    ['a name with capital letters', { name: 'Nightly' }, '/name', 'invalid_request'],
    ['a delay', { delay: '1s' }, '/delay', 'invalid_request'],
    ['an input that the task does not accept', { input: { n: 'x' } }, '/input/n', 'invalid_input'],
    ['an unknown overlap policy', { overlap: 'both' }, '/overlap', 'invalid_request'],
  ])('refuses %s, and names the place', async (_, wrong, pointer, code) => {
    const { send } = await setup()
    const problem = problemIn(await send('', { ...request, ...wrong }))
    expect(problem).toMatchObject({ code, errors: [{ pointer }] })
  })

  it('refuses an unknown task, and an interval below a second', async () => {
    const { send } = await setup()
    expect(problemIn(await send('', { ...request, task: 'math.sqare' }))).toMatchObject({ code: 'unknown_task' })
    const { cron: _, timeZone: _zone, ...rest } = request
    expect(problemIn(await send('', { ...rest, every: '500ms' }))).toMatchObject({ errors: [{ pointer: '/every' }] })
  })
})

describe('GET /v1/schedules', () => {
  it('returns the schedules page by page, and each that stays once, though others are stored and deleted meanwhile', async () => {
    const { send, get, remove } = await setup()
    for (const name of ['b', 'd', 'f', 'h', 'j']) await send('', { ...request, name })
    const names = async (path: string) => {
      const page = (await get(path)).json()
      return { names: page.schedules.map(({ name }: { readonly name: string }) => name), next: page.next }
    }
    const first = await names('/v1/schedules?limit=2')
    expect(first).toEqual({ names: ['b', 'd'], next: expect.any(String) })
    await remove('d')
    for (const name of ['a', 'e']) await send('', { ...request, name })
    const second = await names(`/v1/schedules?limit=2&cursor=${first.next}`)
    expect(second).toEqual({ names: ['e', 'f'], next: expect.any(String) })
    expect(await names(`/v1/schedules?limit=2&cursor=${second.next}`)).toEqual({ names: ['h', 'j'], next: undefined })
  })

  it('returns full pages of the schedules in trouble', async () => {
    const { send, get, broker } = await setup()
    for (const name of ['a', 'b', 'c', 'd']) {
      await send('', { ...request, name })
      if (name !== 'c')
        broker.change((await send(`/${name}/run`)).json().id, { status: name === 'a' ? 'completed' : 'dead' })
    }
    const first = (await get('/v1/schedules?trouble=true&limit=1')).json()
    expect(first.schedules).toMatchObject([{ name: 'b' }])
    const second = (await get(`/v1/schedules?trouble=true&limit=1&cursor=${first.next}`)).json()
    expect(second).toMatchObject({ schedules: [{ name: 'd' }] })
    expect(second).not.toHaveProperty('next')
  })

  it.each(['cursor=zzz', 'cursor=e30', 'limit=0', 'limit=201'])('refuses %s', async (query) => {
    const { get } = await setup()
    const code = query.startsWith('cursor') ? 'invalid_cursor' : 'invalid_request'
    expect(problemIn(await get(`/v1/schedules?${query}`))).toMatchObject({ status: 400, code })
  })
})

describe('a schedule', () => {
  it('is paused, resumed, run and deleted by request', async () => {
    const { send, get, remove, broker, events } = await setup()
    await send('', request)
    expect((await send('/yearly/pause', { by: 'ann' })).json()).toMatchObject({ status: 'paused', nextTicks: [] })
    const run = await send('/yearly/run')
    expect(run.statusCode).toBe(202)
    const { id } = run.json()
    expect(broker.enqueued.map((task) => task.id)).toEqual([id])
    expect(events).toContainEqual({ event: 'task.enqueued', queue: 'cpu', task: 'math.square', id })
    expect((await send('/yearly/resume')).json()).toMatchObject({
      status: 'active',
      lastRun: { id, status: 'waiting' },
    })
    expect((await remove('yearly')).json()).toEqual({ name: 'yearly', action: 'deleted' })
    expect(problemIn(await get('/v1/schedules/yearly'))).toMatchObject({ status: 404, code: 'schedule_not_found' })
    expect(problemIn(await remove('yearly'))).toMatchObject({ code: 'schedule_not_found' })
  })

  it('whose last run is dead is in trouble', async () => {
    const { send, get, broker } = await setup()
    await send('', request)
    const { id } = (await send('/yearly/run')).json()
    broker.change(id, { status: 'dead' })
    const { schedules } = (await get('/v1/schedules?trouble=true')).json()
    expect(schedules).toMatchObject([{ name: 'yearly', trouble: [{ kind: 'failing' }], lastRun: { status: 'dead' } }])
  })

  it('whose input cannot be decoded is shown without its input, and with the reason', async () => {
    const { send, broker } = await setup()
    await send('', request)
    const state = await broker.schedules.find('yearly')
    const { input: _, ...template } = state.record.template
    const unreadableInput = { encoded: '7b7d', reason: 'wrong key' }
    const record = { ...state.record, template: template as typeof state.record.template, unreadableInput }
    const view = JSON.parse(JSON.stringify(scheduleView({ ...state, record }, 1)))
    expect(scheduleViewSchema.parse(view)).toEqual(view)
    expect(view).not.toHaveProperty('input')
    expect(view.trouble).toMatchObject([{ kind: 'unreadable', detail: expect.stringMatching(/wrong key$/) }])
  })

  it('is not available while Redis is down', async () => {
    const { get, broker } = await setup()
    broker.trouble = 'down'
    expect(problemIn(await get('/v1/schedules'))).toMatchObject({ status: 503, code: 'redis_unavailable' })
  })
})

describe('POST /v1/schedules/sync', () => {
  it("stores the catalogue's schedules, and a dry run only says what it would do", async () => {
    const { send, get } = await setup()
    const created = { changes: [{ name: 'nightly', queue: 'cpu', action: 'created', fields: [] }] }
    expect((await send('/sync?dryRun=true')).json()).toEqual({ dryRun: true, ...created })
    expect((await get('/v1/schedules')).json().schedules).toEqual([])
    expect((await send('/sync')).json()).toEqual({ dryRun: false, ...created })
    expect((await get('/v1/schedules/nightly')).json()).toMatchObject({ source: 'catalogue', cron: '0 3 * * *' })
    await send('', { ...request, name: 'nightly', by: 'ann' })
    expect((await get('/v1/schedules/nightly')).json()).toMatchObject({ source: 'catalogue', cron: '0 0 1 1 *' })
    const { changes } = (await send('/sync')).json()
    expect(changes).toMatchObject([{ action: 'changed' }])
    expect(changes[0].fields).toContainEqual({ field: 'cron', from: '0 0 1 1 *', to: '0 3 * * *' })
  })
})
