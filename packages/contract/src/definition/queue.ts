// Queue definitions, for queues that need more than a name.
import { BullpenError } from '../errors/errors.ts'
import { QUEUE_NAME } from '../task/task-id.ts'
import { suggestion } from './nearest.ts'

/** What happens to the waiting tasks of a queue when its whole fleet is drained in any mode but light. */
export const ON_SHUTDOWN = ['keep', 'cancel'] as const

export type OnShutdown = (typeof ON_SHUTDOWN)[number]

export interface QueueOptions {
  /** Starts with a lower-case letter, then lower-case letters, digits, dots, hyphens and underscores; at most 40. */
  readonly name: string
  /**
   * What happens to tasks that are not running (waiting, scheduled, retrying, requeued) when the whole fleet of the queue is
   * drained by command, in any mode but light. `keep`, the default: they stay until the queue is resumed. `cancel`: they are
   * cancelled with reason `queue_shutdown`, and callers that wait for them are notified. The drain of a single worker cancels
   * nothing.
   */
  readonly onShutdown?: OnShutdown
}

export interface QueueDefinition {
  readonly name: string
  readonly onShutdown: OnShutdown
}

/** What {@link defineQueue} returned, as opposed to unchecked objects of the same shape. */
const definitions = new WeakSet<object>()

const SETTINGS: readonly string[] = ['name', 'onShutdown'] satisfies readonly (keyof QueueOptions)[]

export const QUEUE_NAME_RULE =
  'expected a lower-case letter, then lower-case letters, digits, dots, hyphens and underscores, at most 40 characters'

/**
 * Defines a queue for the `queue` setting of task definitions. A queue that needs only a name can be given there as text.
 * Pure: nothing is registered.
 *
 * @example
 * const reports = defineQueue({ name: 'reports', onShutdown: 'cancel' })
 * @throws BullpenError `invalid_definition`.
 */
export function defineQueue(options: QueueOptions): QueueDefinition {
  const { name, onShutdown = 'keep' } = options
  const fail = (problem: string): never => {
    throw new BullpenError('invalid_definition', `queue ${JSON.stringify(name)}: ${problem}`)
  }
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) fail(`${unknown} is not a setting of a queue${suggestion(unknown, SETTINGS)}`)
  if (typeof name !== 'string' || !QUEUE_NAME.test(name)) fail(`invalid name; ${QUEUE_NAME_RULE}`)
  if (!ON_SHUTDOWN.includes(onShutdown)) {
    fail(`onShutdown is ${JSON.stringify(onShutdown)}; expected 'keep' or 'cancel'`)
  }
  const definition = Object.freeze({ name, onShutdown })
  definitions.add(definition)
  return definition
}

/** The definition of a name or of what {@link defineQueue} returned; undefined for anything else. */
export function queueOf(given: unknown): QueueDefinition | undefined {
  if (typeof given === 'string') return QUEUE_NAME.test(given) ? { name: given, onShutdown: 'keep' } : undefined
  return definitions.has(given as object) ? (given as QueueDefinition) : undefined
}
