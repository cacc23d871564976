// Keeps the tasks that a handler registers for the end of its task: follow-ups and compensations.
//
// A compensation is stored at once, before the step that it undoes, and so is a follow-up of a failure or of any end, because another
// process may end the task. A follow-up of a success is sent with the attempt's commit, because only the attempt that completes the
// task can cause the success.
import { BullpenError, type RegisteredOptions } from '@bullpen/contract'
import { FOLLOW_UP_LETTERS, MAX_FOLLOW_UP_BYTES, MAX_FOLLOW_UPS } from '@bullpen/contract/internal'
import { type FollowUpOrigin, successTasks } from '../follow-ups/defined.ts'
import { type RegisteredTask, registeredTask } from '../follow-ups/registered-task.ts'
import { storedTemplate } from '../follow-ups/template.ts'
import type { RegisteredKind } from '../ports/steps.ts'
import type { DecodedTask } from './decode.ts'
import { type Definitions, definitionFor, type RunningAttempt } from './running-attempt.ts'

/** What a registration is called in errors, and what the registered tasks are called. */
const REGISTERING = {
  compensation: ['register the compensation', 'compensations'],
  failure: ['register the follow-up', 'follow-ups'],
  end: ['register the follow-up', 'follow-ups'],
} as const satisfies Record<RegisteredKind, readonly [act: string, plural: string]>

export class RegisteredTasks {
  readonly #attempt: RunningAttempt
  readonly #definitions: Definitions
  /** A line for each follow-up, by its identity. */
  #followUps: ReadonlyMap<string, string> = new Map()
  #hasRegistered = false

  constructor(attempt: RunningAttempt, definitions: Definitions) {
    this.#attempt = attempt
    this.#definitions = definitions
  }

  /** Works like `TaskContext.onSuccess`, but takes the name of the follow-up's definition. */
  onSuccess(name: string, input: unknown, options: RegisteredOptions): void {
    const { identity, template } = this.#register('add the follow-up', name, input, options)
    const lines = new Map(this.#followUps).set(identity, FOLLOW_UP_LETTERS.success + template)
    this.#setFollowUps(lines, 'add the follow-up', name)
  }

  #setFollowUps(lines: ReadonlyMap<string, string>, act: string, name: string): void {
    if (lines.size > MAX_FOLLOW_UPS || byteLength([...lines.values()]) > MAX_FOLLOW_UP_BYTES) {
      throw this.#tooMany(act, name, 'follow-ups')
    }
    this.#followUps = lines
  }

  /** Adds the follow-ups that the definition has for a success with this output. They count towards the same limits. */
  addDefined({ definition, input, depth }: Pick<DecodedTask, 'definition' | 'input' | 'depth'>, output: unknown): void {
    const { id, fetched } = this.#attempt
    const lines = new Map(this.#followUps)
    for (const [i, task] of successTasks(definition, { id, input, output }, { ...this.#origin(), depth }).entries()) {
      // An identity of the handler's own follow-ups contains a colon.
      lines.set(`${i}`, FOLLOW_UP_LETTERS.success + JSON.stringify(storedTemplate(task, fetched.codec)))
    }
    this.#setFollowUps(lines, 'add the follow-ups of', definition.name)
  }

  /**
   * Works like `TaskContext.compensate` or its counterpart for the kind, but takes the name of the registered task's definition, and
   * resolves with false if the attempt has lost the lock.
   */
  async register(kind: RegisteredKind, name: string, input: unknown, options: RegisteredOptions): Promise<boolean> {
    const [act, plural] = REGISTERING[kind]
    const { identity, template } = this.#register(act, name, input, options)
    const registered = await this.#attempt.fetched.steps.register(kind, identity, template)
    if (registered === 'full') throw this.#tooMany(act, name, plural)
    this.#hasRegistered ||= registered === 'stored'
    return registered === 'stored'
  }

  /** The lines of the follow-ups, or undefined if there are none. */
  get followUps(): string | undefined {
    return this.#followUps.size === 0 ? undefined : [...this.#followUps.values()].join('\n')
  }

  /** Whether this attempt has stored a registration. */
  get hasRegistered(): boolean {
    return this.#hasRegistered
  }

  /** @throws BullpenError as `TaskContext.compensate` does. */
  #register(act: string, name: string, input: unknown, options: RegisteredOptions): RegisteredTask {
    const definition = definitionFor(act, this.#attempt, this.#definitions, name)
    return registeredTask(definition, input, options, this.#origin(), this.#attempt.fetched.codec)
  }

  #origin(): FollowUpOrigin {
    const { correlationId, traceContext, apiKeyName } = this.#attempt
    return { correlationId, traceContext, apiKeyName, passesOnApiKey: apiKeyName !== undefined }
  }

  #tooMany(act: string, name: string, kind: string): BullpenError {
    return new BullpenError(
      'payload_too_large',
      `${this.#attempt.id} cannot ${act} ${name}: a task may have at most ${MAX_FOLLOW_UPS} ${kind}, which together take at most ${MAX_FOLLOW_UP_BYTES} bytes`,
    )
  }
}

/** Returns the total size of these texts in UTF-8. */
function byteLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + new TextEncoder().encode(text).length, 0)
}
