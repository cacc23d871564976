// Tests which circuit breakers a queue accepts, and which of them a task may depend on.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../catalogue.ts'
import { defineQueue } from '../queue.ts'
import { defineTask } from '../task-definition.ts'

const input = z.object({})

test('a breaker has defaults for every setting', () => {
  expect(defineQueue({ name: 'mail' }).breakers).toBeUndefined()
  expect(defineQueue({ name: 'mail', breakers: {} }).breakers).toBeUndefined()
  expect(defineQueue({ name: 'mail', breakers: { smtp: {} } }).breakers).toEqual({
    smtp: {
      failureRate: 0.5,
      slowCallMs: undefined,
      slowCallRate: 0.5,
      minimumCalls: 20,
      windowMs: 60_000,
      openMs: 30_000,
      maxOpenMs: 300_000,
      probes: 1,
      failureCodes: undefined,
    },
  })
})

test('a breaker has the settings of its queue', () => {
  const smtp = {
    failureRate: 0.2,
    slowCallDuration: '5s',
    slowCallRate: 1,
    minimumCalls: 5,
    window: '10s',
    openFor: '10m',
    probes: 3,
    failureCodes: ['http_503', 'run_timeout'],
  } as const
  expect(defineQueue({ name: 'mail', breakers: { smtp } }).breakers?.['smtp']).toEqual({
    failureRate: 0.2,
    slowCallMs: 5_000,
    slowCallRate: 1,
    minimumCalls: 5,
    windowMs: 10_000,
    openMs: 600_000,
    // The default would be shorter than openFor.
    maxOpenMs: 600_000,
    probes: 3,
    failureCodes: ['http_503', 'run_timeout'],
  })
})

test('a task depends on each service once, in the order of their names', () => {
  const queue = defineQueue({ name: 'mail', breakers: { smtp: {}, crm: {} } })
  expect(defineTask({ name: 'mail.one', queue, input }).dependsOn).toEqual([])
  expect(defineTask({ name: 'mail.two', queue, input, dependsOn: ['smtp', 'crm', 'smtp'] }).dependsOn).toEqual([
    'crm',
    'smtp',
  ])
})

test.each([
  [['smpt'], `dependsOn names "smpt", but queue 'mail' has no breaker with this name; expected one of smtp, crm`],
  [['smpt'], 'did you mean smtp?'],
  [['constructor'], 'dependsOn names "constructor"'],
  [[], 'dependsOn is []; expected the names of services'],
  ['smtp', `dependsOn is "smtp"; expected the names of services, such as ['smtp']`],
])('a task that depends on %j is refused', (dependsOn, message) => {
  const queue = defineQueue({ name: 'mail', breakers: { smtp: {}, crm: {} } })
  // Plain JavaScript may pass what the types refuse.
  expect(() => defineTask({ name: 'mail.one', queue, input, dependsOn: dependsOn as never })).toThrow(
    expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
  )
})

test('a task of a queue without breakers depends on nothing', () => {
  expect(() => defineTask({ name: 'mail.one', queue: 'mail', input, dependsOn: ['smtp'] })).toThrow(
    `dependsOn names "smtp", but queue 'mail' has no breakers; add breakers: { "smtp": {} } to its defineQueue`,
  )
})

test('a task depends on at most eight services', () => {
  const names = Array.from({ length: 9 }, (_, i) => `service-${i}`)
  const queue = defineQueue({ name: 'mail', breakers: Object.fromEntries(names.map((name) => [name, {}])) })
  expect(() => defineTask({ name: 'mail.one', queue, input, dependsOn: names })).toThrow(
    'dependsOn has 9 services; expected at most 8',
  )
})

test('a catalogue refuses two definitions of a queue with different breakers', () => {
  const queue = defineQueue({ name: 'mail', breakers: { smtp: {} } })
  const one = defineTask({ name: 'mail.one', queue, input, dependsOn: ['smtp'] })
  const two = defineTask({ name: 'mail.two', queue: 'mail', input })
  expect(() => defineCatalogue(one, two)).toThrow(/breakers of queue 'mail' is \{"smtp".* in 'mail.one' and undefined/)
})

test.each([
  [true, 'breakers is true; expected an object such as { smtp: { failureRate: 0.5 } }'],
  [{ SMTP: {} }, 'breakers has a service named "SMTP"; expected a lower-case letter'],
  [{ smtp: true }, 'breakers.smtp is true; expected an object such as { failureRate: 0.5 }, or {} for the defaults'],
  [{ smtp: { failRate: 1 } }, 'breakers.smtp.failRate is not a setting; expected failureRate, slowCallDuration'],
  [{ smtp: { failRate: 1 } }, 'did you mean failureRate?'],
  [{ smtp: { failureRate: 0 } }, 'breakers.smtp.failureRate is 0; expected a share of more than 0 and at most 1'],
  [{ smtp: { failureRate: 50 } }, 'breakers.smtp.failureRate is 50'],
  [{ smtp: { slowCallRate: 1 } }, 'breakers.smtp.slowCallRate requires breakers.smtp.slowCallDuration'],
  [{ smtp: { slowCallDuration: '1s', slowCallRate: 2 } }, 'breakers.smtp.slowCallRate is 2'],
  [{ smtp: { minimumCalls: 0 } }, 'breakers.smtp.minimumCalls is 0; expected a whole number from 1 to 1000000'],
  [{ smtp: { probes: 1.5 } }, 'breakers.smtp.probes is 1.5; expected a whole number from 1 to 100'],
  [{ smtp: { maxOpenFor: '10s' } }, `breakers.smtp.maxOpenFor is '10s'; expected at least openFor, which is '30s'`],
  [{ smtp: { failureCodes: [] } }, 'breakers.smtp.failureCodes is []; expected at least one code'],
])('the breakers %j are refused', (breakers, message) => {
  expect(() => defineQueue({ name: 'mail', breakers: breakers as never })).toThrow(
    expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
  )
})

test.each([
  [{ window: '100ms' }, `breakers.smtp.window of queue mail is "100ms"; expected a duration from '1s' to '1h'`],
  [{ openFor: 30 }, `breakers.smtp.openFor of queue mail is 30; expected a duration with a unit`],
  [{ slowCallDuration: '0s' }, 'breakers.smtp.slowCallDuration of queue mail is "0s"'],
])('the durations %j are refused', (smtp, message) => {
  expect(() => defineQueue({ name: 'mail', breakers: { smtp } as never })).toThrow(
    expect.objectContaining({ code: 'invalid_duration', message: expect.stringContaining(message) }),
  )
})

test('a queue has at most 32 breakers', () => {
  const breakers = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`service-${i}`, {}]))
  expect(() => defineQueue({ name: 'mail', breakers })).toThrow('breakers has 33 services; expected at most 32')
})
