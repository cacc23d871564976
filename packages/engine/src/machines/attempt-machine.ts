// The state machine of an attempt, which is one run of a task's handler.
import type { AttemptState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

/**
 * In NEW, the task has been fetched. The runner either starts the handler or ends the attempt, if it finds a cancel, a closed
 * context or a passed timeout first. An attempt leaves IN_PROCESS when its handler ends, a timeout passes, the task is cancelled
 * or the attempt's context is closed. Every other state is final.
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
