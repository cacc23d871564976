// The steps of one attempt: each runs once for its task, and its result is kept for the starts that follow.
import { BullpenError, type TaskContext, type TaskId } from '@bullpen/contract'
import type { StepStore } from '../ports/steps.ts'
import type { Sha256 } from '../task/child-task.ts'

const MAX_STEP_NAME_LENGTH = 128
/** Enough that no two steps share a key, and short enough for any header. */
const KEY_BYTES = 16

/** 32 characters of 0-9 and a-f, the same for the same task and step on every machine. */
export function stepKey(id: TaskId, step: string, sha256: Sha256): string {
  // A length before each part: no two pairs make the same text.
  const text = ['step', id, step].map((part) => `${part.length}:${part}`).join('')
  return Array.from(sha256(text).subarray(0, KEY_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export class Steps {
  readonly #keeper: StepStore
  readonly #running = new Map<string, Promise<string>>()
  /** What has been done is not done again because it could not be kept. */
  readonly #done = new Map<string, string>()

  constructor(keeper: StepStore) {
    this.#keeper = keeper
  }

  readonly once: TaskContext['once'] = async (step, run) => {
    if (typeof step !== 'string' || step.length < 1 || step.length > MAX_STEP_NAME_LENGTH) {
      const message = `got ${typeof step === 'string' ? `${step.length} characters` : typeof step}`
      throw new BullpenError(
        'invalid_request',
        `the name of a step is text of 1 to ${MAX_STEP_NAME_LENGTH} characters`,
        {
          errors: [{ path: 'step', message }],
        },
      )
    }
    // Parsed for each caller: what one does to it is not seen by another, and it is what a later start will get.
    return JSON.parse(await (this.#running.get(step) ?? this.#begin(step, run)))
  }

  #begin(step: string, run: (key: string) => unknown): Promise<string> {
    const running = this.#run(step, run)
    this.#running.set(step, running)
    running.catch(() => this.#running.delete(step))
    return running
  }

  async #run(step: string, run: (key: string) => unknown): Promise<string> {
    const { key, result } = await this.#keeper.findStep(step)
    if (result !== undefined) return result
    const done = this.#done.get(step) ?? asJson(await run(key), step)
    this.#done.set(step, done)
    return this.#keeper.storeStep(step, done)
  }
}

function asJson(result: unknown, step: string): string {
  let json: string | undefined
  try {
    json = JSON.stringify(result)
  } catch (cause) {
    throw new BullpenError('invalid_result', `the result of step ${step} can't be kept as JSON: ${String(cause)}`, {
      cause,
    })
  }
  if (json !== undefined) return json
  const what = result === undefined ? 'undefined; return null where there is nothing to say' : typeof result
  throw new BullpenError('invalid_result', `the result of step ${step} can't be kept as JSON: it is ${what}`)
}
