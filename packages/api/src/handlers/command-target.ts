// Refuses commands that would have no effect, because the definitions do not have what they limit or set.
import type { BullpenError, Catalogue } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { type Command, invalidRequest, type LimiterStatus, type QueueSettings } from '@bullpen/engine/internal'
import type { ApiContext } from '../http/context.ts'
import { knownQueues } from '../http/known-names.ts'

type LimitSpec = Extract<CommandSpec, { action: 'limit' }>

/** Something that a command limits, although no definition has it. */
interface Missing {
  readonly refusal: BullpenError
  /** Returns whether the command only removes limits that are in force, which another command has set. */
  isRemoved(settings: QueueSettings): boolean
}

/**
 * Refuses a command if the catalogue does not have what it limits or sets. If a definition has lost its turns, permits or
 * concurrency, 'none' still removes the limits that commands have set.
 *
 * @throws BullpenError `queue_not_found` or `invalid_request`.
 */
export async function assertHasTarget(
  { id, spec }: Pick<Command, 'id' | 'spec'>,
  { catalogue, fleet, apiKeyNames }: Pick<ApiContext, 'catalogue' | 'fleet' | 'apiKeyNames'>,
): Promise<void> {
  const { queue } = spec
  if (spec.action === 'limit') assertKnown(spec.apiKeyName, apiKeyNames)
  if (queue === undefined) return
  knownQueues(catalogue, queue)
  if (spec.action === 'breaker') assertHasBreaker(spec, catalogue)
  if (spec.action !== 'limit') return
  const missing = [missingTurns, missingConcurrency, missingPermits].flatMap((find) => find(spec, queue, catalogue))
  if (missing.length === 0) return
  const settings = await fleet.queueSettings(queue)
  const refused = missing.find((each) => !each.isRemoved(settings))
  // A command that is repeated may already have removed the limits.
  if (refused !== undefined && (await fleet.command(id)) === undefined) throw refused.refusal
}

/** The error does not repeat the name, which may be a part of a key. */
function assertKnown(apiKeyName: string | undefined, known: readonly string[]): void {
  if (apiKeyName === undefined || known.includes(apiKeyName)) return
  throw invalidRequest('/apiKeyName', `no API key has this name; expected one of ${known.join(', ')}`)
}

function assertHasBreaker({ queue, service }: Extract<CommandSpec, { action: 'breaker' }>, catalogue: Catalogue): void {
  const services = Object.keys(catalogue.queue(queue).breakers ?? {})
  if (services.includes(service)) return
  const expected = services.length === 0 ? 'its definition has no breakers' : `expected one of ${services.join(', ')}`
  throw invalidRequest('/service', `queue '${queue}' has no circuit breaker '${service}'; ${expected}`)
}

/** The limits of concurrency keys apply only where the keys have lanes. */
function missingTurns(spec: LimitSpec, queue: string, catalogue: Catalogue): readonly Missing[] {
  const { concurrencyKey, concurrency, rate, concurrencyPerKey, ratePerKey } = spec
  const ofKeys = [concurrencyPerKey, ratePerKey, ...(concurrencyKey === undefined ? [] : [concurrency, rate])]
  const limits = ofKeys.filter((limit) => limit !== undefined)
  if (limits.length === 0 || catalogue.queue(queue).fairness !== undefined) return []
  const message = `queue '${queue}' has no fairness, so its concurrency keys cannot be limited`
  return [
    {
      refusal: invalidRequest('/queue', `${message}; define the queue with fairness: true`),
      isRemoved: ({ perConcurrencyKey }) =>
        perConcurrencyKey !== undefined && limits.every((limit) => limit === 'none'),
    },
  ]
}

/** The tasks of a definition are counted only if it has a concurrency. */
function missingConcurrency(
  { task, concurrency }: LimitSpec,
  queue: string,
  { definitions }: Catalogue,
): readonly Missing[] {
  if (task === undefined || concurrency === undefined) return []
  const limited = definitions.filter((each) => each.queue === queue && each.concurrency !== undefined)
  const names: readonly string[] = limited.map(({ name }) => name)
  if (names.includes(task)) return []
  const refusal = invalidRequest('/task', whyUnlimited(task, queue, definitions, names))
  return [missingLimiter({ kind: 'definition', name: task }, concurrency, refusal)]
}

/** `limited` are the definitions of the queue that can be limited. */
function whyUnlimited(
  task: string,
  queue: string,
  definitions: Catalogue['definitions'],
  limited: readonly string[],
): string {
  const expected = limited.length === 0 ? undefined : `expected one of ${limited.join(', ')}`
  const definition = definitions.find(({ name }) => name === task)
  if (definition === undefined) {
    return `queue '${queue}' has no task definition '${task}'; ${expected ?? 'none of its definitions has a concurrency'}`
  }
  if (definition.queue !== queue) return `task '${task}' is in queue '${definition.queue}'; specify that queue`
  const problem = `the definition of task '${task}' has no concurrency, so its tasks are not counted and cannot be limited`
  const advice = 'add a concurrency to the definition'
  return `${problem}; ${expected === undefined ? advice : `${expected}, or ${advice}`}`
}

function missingPermits({ permits = {} }: LimitSpec, queue: string, catalogue: Catalogue): readonly Missing[] {
  const defined = Object.keys(catalogue.queue(queue).permits ?? {})
  const expected =
    defined.length === 0 ? 'its definition has no limits.permits' : `expected one of ${defined.join(', ')}`
  return Object.entries(permits).flatMap(([name, count]) => {
    if (defined.includes(name)) return []
    const refusal = invalidRequest('/permits', `queue '${queue}' has no permits named '${name}'; ${expected}`)
    return [missingLimiter({ kind: 'permits', name }, count, refusal)]
  })
}

function missingLimiter(
  { kind, name }: Pick<LimiterStatus, 'kind' | 'name'>,
  capacity: number | 'none',
  refusal: BullpenError,
): Missing {
  return {
    refusal,
    isRemoved: ({ limiters = [] }) =>
      capacity === 'none' && limiters.some((limiter) => limiter.kind === kind && limiter.name === name),
  }
}
