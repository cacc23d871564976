// Tests that commands are refused over HTTP if the definitions do not have what they limit or set.
import { type CommandView, defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { problemIn, testApi } from '../api.fixture.ts'

const io = { input: z.object({}), output: z.object({}) }
const reports = defineQueue({ name: 'reports', fairness: true, limits: { permits: { db: 10 } }, breakers: { crm: {} } })
const catalogue = defineCatalogue(
  defineTask({ name: 'reports.render', queue: reports, concurrency: 5, ...io }),
  defineTask({ name: 'reports.send', queue: reports, ...io }),
  defineTask({ name: 'mail.send', queue: 'mail', ...io }),
)

async function commandApi() {
  const api = await testApi({ catalogue })
  const send = (payload: object) => api.ask({ method: 'POST', url: '/v1/commands', payload })
  return { ...api, send }
}

const onReports = { action: 'limit', queue: 'reports' }
const onMail = { action: 'limit', queue: 'mail' }
const noTurns =
  "/queue: queue 'mail' has no fairness, so its concurrency keys cannot be limited; define the queue with fairness: true"
const uncounted = (task: string) =>
  `/task: the definition of task '${task}' has no concurrency, so its tasks are not counted and cannot be limited`

test.each([
  [{ ...onReports, task: 'reports.render', concurrency: 3 }],
  [{ ...onReports, permits: { db: 3 } }],
  [{ ...onReports, concurrencyKey: 'acme', concurrency: 3 }],
  [{ ...onReports, queue: 'reports', action: 'breaker', service: 'crm', to: 'open' }],
])('the command %j is accepted', async (spec) => {
  const { send } = await commandApi()
  expect((await send(spec)).json<CommandView>()).toMatchObject({ spec, outcome: 'done' })
})

test.each([
  [
    { ...onReports, task: 'reports.send', concurrency: 3 },
    `${uncounted('reports.send')}; expected one of reports.render, or add a concurrency to the definition`,
  ],
  [{ ...onMail, task: 'mail.send', concurrency: 3 }, `${uncounted('mail.send')}; add a concurrency to the definition`],
  [
    { ...onReports, task: 'reports.rendr', concurrency: 'none' },
    "/task: queue 'reports' has no task definition 'reports.rendr'; expected one of reports.render",
  ],
  [
    { ...onMail, task: 'mail.sent', concurrency: 3 },
    "/task: queue 'mail' has no task definition 'mail.sent'; none of its definitions has a concurrency",
  ],
  [
    { ...onMail, task: 'reports.render', concurrency: 3 },
    "/task: task 'reports.render' is in queue 'reports'; specify that queue",
  ],
  [
    { ...onReports, permits: { db: 3, gpu: 1 } },
    "/permits: queue 'reports' has no permits named 'gpu'; expected one of db",
  ],
  [
    { ...onMail, permits: { db: 'none' } },
    "/permits: queue 'mail' has no permits named 'db'; its definition has no limits.permits",
  ],
  [{ ...onMail, concurrencyKey: 'acme', concurrency: 3 }, noTurns],
  [{ ...onMail, concurrencyPerKey: 'none' }, noTurns],
  [{ ...onMail, ratePerKey: { max: 1, per: '1s' } }, noTurns],
  [
    { action: 'breaker', queue: 'reports', service: 'smtp', to: 'open' },
    "/service: queue 'reports' has no circuit breaker 'smtp'; expected one of crm",
  ],
  [
    { action: 'breaker', queue: 'mail', service: 'smtp', to: 'open' },
    "/service: queue 'mail' has no circuit breaker 'smtp'; its definition has no breakers",
  ],
])('the command %j is refused, because the definitions do not have its target', async (spec, detail) => {
  const { send, fleet } = await commandApi()
  expect(problemIn(await send(spec))).toMatchObject({ status: 400, code: 'invalid_request', detail })
  expect(await fleet.commands(10)).toEqual([])
})

test('limits that no definition has any more can be removed, but not changed', async () => {
  const { send, fleet } = await commandApi()
  const limiters = [
    { kind: 'definition', name: 'mail.send', capacity: 3, inUse: 0 },
    { kind: 'permits', name: 'smtp', capacity: 3, inUse: 0 },
  ] as const
  fleet.set('mail', { limiters, perConcurrencyKey: { ofSingleKeys: 1 } })
  const removals = [
    { ...onMail, task: 'mail.send', concurrency: 'none' },
    { ...onMail, permits: { smtp: 'none' } },
    { ...onMail, concurrencyKey: 'acme', concurrency: 'none', rate: 'none' },
  ]
  for (const [at, spec] of removals.entries()) expect((await send({ ...spec, id: `c${at}` })).statusCode).toBe(200)
  for (const spec of [
    { ...onMail, task: 'mail.send', concurrency: 4 },
    { ...onMail, permits: { smtp: 4 } },
    { ...onMail, permits: { smtp: 'none', db: 'none' } },
    { ...onMail, concurrencyKey: 'acme', concurrency: 'none', rate: { max: 1, per: '1s' } },
  ]) {
    expect(problemIn(await send(spec))).toMatchObject({ code: 'invalid_request' })
  }
  // When a command is repeated, it has already removed its limits.
  fleet.set('mail', {})
  for (const [at, spec] of removals.entries()) expect((await send({ ...spec, id: `c${at}` })).statusCode).toBe(200)
})
