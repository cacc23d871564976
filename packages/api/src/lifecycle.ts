// The phases of an API, as a table: what listen() and close() may do, and when.
import { BullpenError } from '@bullpen/contract'
import { assertTransition, type Transitions } from '@bullpen/engine/internal'

/** `opening`: listen() has been called. `draining`: close() has been called, and requests finish. */
export type ApiPhase = 'new' | 'opening' | 'running' | 'draining' | 'closed'

export const API_TRANSITIONS: Transitions<ApiPhase> = {
  /** Straight to draining: closed without having listened. */
  new: ['opening', 'draining'],
  /** Straight to draining: an address was taken, or close() came first. */
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

  /** @throws BullpenError `wrong_state` when listen() was called before, or close(). */
  beginListening(): void {
    if (this.#phase !== 'new') {
      throw new BullpenError('wrong_state', `listen() starts a new API once; this one is ${this.#phase}`)
    }
    this.moveTo('opening')
  }
}
