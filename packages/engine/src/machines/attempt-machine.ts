// The state machine of an attempt: one run of a task's handler.
import type { AttemptState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

/**
 * NEW: fetched; the runner starts the handler, or ends the attempt when it finds a cancel, a closed context or a passed timeout
 * first. IN_PROCESS: left by the handler, a timer, a cancel or the context. Every other state is final.
 */
export const ATTEMPT_TRANSITIONS = {
  NEW: ['IN_PROCESS', 'TERMINATED_STOP_SIGNAL', 'TERMINATED_CTX_CLOSED', 'TERMINATED_TIMEOUT'],
  IN_PROCESS: [
    'DONE_SUCCESS',
    'DONE_ERROR',
    'RECOVER_ERR',
    'TERMINATED_STOP_SIGNAL',
    'TERMINATED_CTX_CLOSED',
    'TERMINATED_TIMEOUT',
  ],
  DONE_SUCCESS: [],
  DONE_ERROR: [],
  RECOVER_ERR: [],
  TERMINATED_STOP_SIGNAL: [],
  TERMINATED_CTX_CLOSED: [],
  TERMINATED_TIMEOUT: [],
} as const satisfies Transitions<AttemptState>
