// Implements `ctx.once`, which runs a step once per task and stores its result for later attempts.
import { BullpenError, type TaskContext, type TaskId } from '@bullpen/contract'
import { keyProblem } from '@bullpen/contract/isolate'
import type { StepStore } from '../ports/steps.ts'
import { digestOf, hex, type Sha256 } from '../task/digest.ts'
import { jsonText } from '../task/payload/json-text.ts'
import { messageOf } from '../verdict/thrown.ts'

const MAX_STEP_NAME_LENGTH = 128
/**
 * The length of a step's idempotency key, in bytes. The key is long enough that two steps never share one, and short enough for
 * any HTTP header.
 */
const KEY_BYTES = 16

/** Returns a step's idempotency key: 32 hexadecimal digits that are the same for a given task and step on every machine. */
export function stepKey(id: TaskId, step: string, sha256: Sha256): string {
  return hex(digestOf(['step', id, step], sha256).subarray(0, KEY_BYTES))
}

export class Steps {
  readonly #store: StepStore
  readonly #running = new Map<string, Promise<string>>()
  /**
   * The results of steps that ran but could not be stored. When such a step is retried, its result is stored without running the
   * step again.
   */
  readonly #done = new Map<string, string>()

  constructor(store: StepStore) {
    this.#store = store
  }

  readonly once: TaskContext['once'] = async (step, run) => {
    const message = keyProblem(step, 1, MAX_STEP_NAME_LENGTH)
    if (message !== undefined) {
      throw new BullpenError('invalid_request', `invalid step name: ${message}`, {
        errors: [{ parameter: 'step', message }],
      })
    }
    // The result is parsed for each caller, so that callers do not see each other's changes and get the same value as a later
    // attempt.
    return JSON.parse(await (this.#running.get(step) ?? this.#begin(step, run)))
  }

  #begin(step: string, run: (key: string) => unknown): Promise<string> {
    const running = this.#run(step, run)
    this.#running.set(step, running)
    running.catch(() => this.#running.delete(step))
    return running
  }

  async #run(step: string, run: (key: string) => unknown): Promise<string> {
    const { key, result } = await this.#store.findStep(step)
    if (result !== undefined) return result
    const done = this.#done.get(step) ?? asJson(await run(key), step)
    this.#done.set(step, done)
    return this.#store.storeStep(step, done)
  }
}

function asJson(result: unknown, step: string): string {
  let json: string | undefined
  try {
    json = jsonText(result, 'result')
  } catch (cause) {
    const message = `the result of step ${step} cannot be stored as JSON: ${messageOf(cause)}`
    throw new BullpenError('invalid_result', message, { cause })
  }
  if (json !== undefined) return json
  const what = result === undefined ? 'undefined; return null instead' : typeof result
  throw new BullpenError('invalid_result', `the result of step ${step} cannot be stored as JSON: it is ${what}`)
}
