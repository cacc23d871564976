// Decides what the end of an attempt shows about the services that its task depends on.
import type { BreakerSettings, QueueDefinition, TaskDefinition } from '@bullpen/contract'
import type { Outcome, ServiceCall } from '../ports/attempt-result.ts'

/** Codes of failures that do not come from a service: `ctx.enqueue` rejects with them. */
const OWN_CODES: readonly string[] = ['redis_unavailable', 'redis_full']

/** The reasons of panics and timeouts that count as failed calls by default. */
const FAILED_BY_DEFAULT: readonly string[] = ['unexpected_error', 'run_timeout', 'heartbeat_timeout']

/** Returns the services that a task depends on in a queue, which may be another one than that of its definition. */
export function servicesOf(
  { dependsOn }: Pick<TaskDefinition, 'dependsOn'>,
  { breakers = {} }: Pick<QueueDefinition, 'breakers'>,
): readonly string[] | undefined {
  const services = dependsOn.filter((service) => Object.hasOwn(breakers, service))
  return services.length === 0 ? undefined : services
}

/**
 * Returns the calls that an attempt has made of the services that its task depends on. Undefined if it has shown
 * nothing about them.
 */
export function serviceCalls(
  { dependsOn, queueSettings: { breakers = {} } }: Pick<TaskDefinition, 'dependsOn' | 'queueSettings'>,
  outcome: Outcome,
  durationMs: number,
): readonly ServiceCall[] | undefined {
  if (dependsOn.length === 0) return undefined
  const isOnly = dependsOn.length === 1
  const calls = dependsOn.flatMap((service) => {
    const settings = breakers[service]
    const failed = settings && hasFailed(outcome, settings, isOnly)
    if (settings === undefined || failed === undefined) return []
    const { slowCallMs = Number.POSITIVE_INFINITY } = settings
    return [{ service, failed, slow: durationMs >= slowCallMs, settings }]
  })
  return calls.length === 0 ? undefined : calls
}

/**
 * Returns whether a call has failed, or undefined if the outcome does not show it. The handler has been started.
 * `isOnly` is false if the task depends on other services as well: after a failure of one of them, it may not have
 * called this one.
 */
function hasFailed(outcome: Outcome, { failureCodes }: BreakerSettings, isOnly: boolean): boolean | undefined {
  switch (outcome.kind) {
    case 'returned':
      return false
    case 'declared': {
      const { code, retryable } = outcome.failure
      if (OWN_CODES.includes(code)) return undefined
      if (failureCodes?.includes(code) ?? retryable) return true
      // After a failure that another attempt would repeat, the service has answered, for example with the status 404.
      return isOnly ? false : undefined
    }
    case 'panicked':
    case 'timed_out':
      return (failureCodes ?? FAILED_BY_DEFAULT).includes(outcome.reason) || undefined
    // These say nothing about the service. One that limits its rate works, and the limit already holds the queue.
    case 'closed':
    case 'stopped':
    case 'snoozed':
    case 'rate_limited':
    case 'unsupported':
      return undefined
  }
}
