// A queue that says more of itself than its name.
import { BullpenError } from '../errors/errors.ts'
import { QUEUE_NAME } from '../task/task-id.ts'
import { nearest } from './nearest.ts'

/** What becomes of a queue's waiting tasks when its whole fleet is drained otherwise than lightly. */
export const ON_SHUTDOWN = ['keep', 'cancel'] as const

export type OnShutdown = (typeof ON_SHUTDOWN)[number]

export interface QueueOptions {
  readonly name: string
  /**
   * What becomes of tasks that nobody runs (waiting, scheduled, retrying, handed back) when the queue's whole fleet is
   * drained by command, otherwise than lightly. Default `keep`: they stay until the queue is resumed. `cancel`: they end as
   * cancelled, reason `queue_shutdown`, and whoever waits for one is told. A process that ends alone cancels nothing.
   */
  readonly onShutdown?: OnShutdown
}

export interface QueueDefinition {
  readonly name: string
  readonly onShutdown: OnShutdown
}

/** A look-alike that nobody has checked is none. */
const definitions = new WeakSet<object>()

const SETTINGS: readonly string[] = ['name', 'onShutdown'] satisfies readonly (keyof QueueOptions)[]

/**
 * Defines a queue, for the `queue` of task definitions; one that needs no more than a name is given as text. Pure.
 *
 * @throws BullpenError `invalid_definition`.
 */
export function defineQueue(options: QueueOptions): QueueDefinition {
  const { name, onShutdown = 'keep' } = options
  const wrong = (message: string): never => {
    throw new BullpenError('invalid_definition', `queue ${JSON.stringify(name)}: ${message}`)
  }
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) {
    const hint = nearest(unknown, SETTINGS)
    wrong(`${unknown} is not a setting of a queue${hint === undefined ? '' : `; did you mean ${hint}?`}`)
  }
  if (typeof name !== 'string' || !QUEUE_NAME.test(name)) wrong(NAME_RULE)
  if (!ON_SHUTDOWN.includes(onShutdown)) wrong(`onShutdown is ${JSON.stringify(onShutdown)}; it is 'keep' or 'cancel'`)
  const definition = Object.freeze({ name, onShutdown })
  definitions.add(definition)
  return definition
}

export const NAME_RULE = "a queue's name is lower-case letters, digits, dots and underscores, at most 40"

/** As {@link defineQueue} made it, or undefined when `given` is something else. */
export function queueOf(given: unknown): QueueDefinition | undefined {
  if (typeof given === 'string') return QUEUE_NAME.test(given) ? { name: given, onShutdown: 'keep' } : undefined
  return definitions.has(given as object) ? (given as QueueDefinition) : undefined
}
