// Defines the state machine of an attempt, which is one run of a task's handler.
import type { AttemptState } from '@bullpen/contract'
import type { Transitions } from './state-machine.ts'

/**
 * An attempt is NEW when its task has been fetched. The runner then starts the handler, or ends the attempt if the task has been
 * cancelled, the context has been closed or a timeout has expired. An attempt leaves IN_PROCESS when its handler ends, a timeout
 * expires, the task is cancelled or the attempt's context is closed. Every other state is final.
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
