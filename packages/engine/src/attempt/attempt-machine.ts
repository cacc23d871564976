// The attempt's machine: the seeds' task states and who moves an attempt between them.
import type { AttemptState } from '@bullpen/contract'
import type { Transitions } from '../pool/state-machine.ts'

/** In: the consumer makes it NEW; the runner starts it; handler, timer, cancel or context end it. Nobody moves an end on. */
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
