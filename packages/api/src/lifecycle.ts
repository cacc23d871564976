// Defines the phases of an API as a table of the transitions that listen() and close() may make.
import { BullpenError } from '@bullpen/contract'
import { assertTransition, type Transitions } from '@bullpen/engine/internal'

/** `opening` means that listen() has been called. `draining` means that close() has been called and requests are finishing. */
export type ApiPhase = 'new' | 'opening' | 'running' | 'draining' | 'closed'

export const API_TRANSITIONS: Transitions<ApiPhase> = {
  /** A new API goes straight to draining if it is closed before it listens. */
  new: ['opening', 'draining'],
  /** An API that is opening goes straight to draining if an address is already in use or close() is called first. */
  opening: ['running', 'draining'],
  running: ['draining'],
  draining: ['closed'],
  closed: [],
}

export class ApiLifecycle {
  #phase: ApiPhase = 'new'

  get phase(): ApiPhase {
    return this.#phase
  }

  moveTo(next: ApiPhase): void {
    assertTransition('an API', API_TRANSITIONS, this.#phase, next)
    this.#phase = next
  }

  /** @throws BullpenError `wrong_state` if listen() or close() has already been called. */
  beginListening(): void {
    if (this.#phase !== 'new') {
      throw new BullpenError(
        'wrong_state',
        `listen() can be called only once, on a new API; this API is ${this.#phase}`,
      )
    }
    this.moveTo('opening')
  }
}
